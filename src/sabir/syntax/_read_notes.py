"""Notes: `@{doc_string: "...", metadata_props: ["k": "v"]}`, what the standard syntax has no words for."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sabir.base import WireError, quote, suggest
from sabir.ir import NodeDevice, Residue, ShardedAxis, Sharding, read_dim
from sabir.proto import NodeDeviceConfigurationProto, read_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sabir.base import ParseError
    from sabir.ir import Dim, Node, Value
    from sabir.syntax._tokens import Cursor

_Kind = TypeVar("_Kind")


class Pair(NamedTuple):
    """An item of a list that is written `key: value`."""

    key: Any
    value: Any


class Note:
    """What one note, or an object in it, says: each key is asked for once, by the reader that knows it."""

    __slots__ = ("_cursor", "_entries", "_known", "start")

    def __init__(self, cursor: Cursor, start: int, entries: dict[str, tuple[int, Any]]) -> None:
        self._cursor, self._entries, self.start = cursor, entries, start
        self._known: list[str] = []

    def text(self, key: str) -> str:
        """Return a string, empty where the key is not there; raises ParseError for another value."""
        return self._take(key, str, "a string", "")

    def name(self) -> str | None:
        """Return the name that is meant in the place of the one in the text, if there is one."""
        return self._take("name", str, "a string", None)

    def number(self, key: str) -> int | None:
        """Return an integer, if the key is there."""
        return self._take(key, int, "an integer", None)

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return a list of integers."""
        return self._items(key, int, "integers")

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of strings."""
        return self._items(key, str, "strings")

    def objects(self, key: str) -> tuple[Note, ...]:
        """Return a list of objects."""
        return self._items(key, Note, "objects in braces")

    def pairs(self, key: str) -> dict[str, str] | None:
        """Return pairs of strings, if the key is there."""
        pairs: list[tuple[str, str]] = []
        for pair in self._items(key, Pair, "pairs of strings"):
            if not isinstance(pair.key, str) or not isinstance(pair.value, str):
                raise self.error(f"{key} takes pairs of strings")
            pairs.append((pair.key, pair.value))
        found = dict(pairs)
        if len(found) < len(pairs):
            raise self.error(f"a key of {key} is given twice")
        return found or None

    def message(self, key: str, kind: Any) -> bytes:
        """Return bytes that are a message of a class; raises ParseError for others."""
        data = self._take(key, bytes, "bytes, as base64 and a string", b"")
        self._parsed(data, kind)
        return data

    def dim(self, key: str) -> Dim:
        """Return a dimension: a number, a name or an expression."""
        value = self._take(key, (int, str), "a number or a string", None)
        return read_dim(value) if isinstance(value, str) else value

    def residue(self, kind: Any) -> Residue | None:
        """Return what is left of a message of a class that no part of the model means."""
        note = self._take("residue", Note, "an object in braces", None)
        if note is None:
            return None
        entries = tuple(note.entry(e, kind) for e in note.objects("entries"))
        places = tuple(note.listed(e, kind) for e in note.objects("places"))
        wire, empty = note.message("wire", kind), note.fields("empty", kind)
        found = Residue(wire, empty, note.texts("repeated"), entries, note.texts("absent"), places)
        note.done()
        return found

    def fields(self, key: str, kind: Any) -> tuple[str, ...]:
        """Return names of the fields of a message that can be there though empty."""
        names = self.texts(key)
        for name in names:
            known = name in kind.DESCRIPTOR.fields_by_name
            if not known or not isinstance(getattr(kind(), name), (str, bytes, int, float)):
                raise self.error(f"{quote(name)} is no field of {kind.DESCRIPTOR.name} that can be empty")
        return names

    def entry(self, note: Note, kind: Any) -> tuple[str, int, bytes]:
        """Return what is left of an entry of a list of messages."""
        field, place = self._entry_place(note, kind)
        listed = getattr(kind(), field)
        wire = note.message("wire", type(listed.add())) if hasattr(listed, "add") else b""
        note.done()
        return field, place, wire

    def listed(self, note: Note, kind: Any) -> tuple[str, int]:
        """Return where an entry of a list belongs."""
        found = self._entry_place(note, kind)
        note.done()
        return found

    def _entry_place(self, note: Note, kind: Any) -> tuple[str, int]:
        field, place = note.text("field"), note.number("place")
        if field not in kind.DESCRIPTOR.fields_by_name:
            raise note.error(f"{quote(field)} is no field of {kind.DESCRIPTOR.name}")
        if place is None or place < 0:
            raise note.error("an entry needs its place in the list")
        return field, place

    def done(self) -> None:
        """Raise ParseError where the note says what nothing here knows."""
        for key, (start, _) in self._entries.items():
            hint = suggest(key, self._known) or f"; known here are {', '.join(self._known)}"
            raise self._cursor.error(f"a note about this knows no {quote(key)}{hint}", start)

    def error(self, message: str) -> ParseError:
        """Return the error for the whole note."""
        return self._cursor.error(message, self.start)

    def _take(self, key: str, kind: Any, what: str, default: Any) -> Any:
        self._known.append(key)
        start, value = self._entries.pop(key, (self.start, default))
        if value is not default and not isinstance(value, kind):
            raise self._cursor.error(f"{key} takes {what}", start)
        return value

    def _items(self, key: str, kind: type[_Kind], what: str) -> tuple[_Kind, ...]:
        found: list[Any] = self._take(key, list, f"a list of {what}", [])
        if not all(isinstance(item, kind) for item in found):
            raise self.error(f"{key} takes a list of {what}")
        return tuple(found)

    def _parsed(self, data: bytes, kind: Any) -> Any:
        try:
            return read_message(kind, data)
        except WireError as error:
            raise self.error(f"these bytes are no {kind.DESCRIPTOR.name}: {error}") from None


def read_note(cursor: Cursor) -> Note | None:
    """Read a note, if one stands here; raises ParseError."""
    if cursor.tokens[cursor.at] != "@" or cursor.tokens[cursor.at + 1] != "{":
        return None
    cursor.at += 1
    return _object(cursor)


def at_base64(cursor: Cursor) -> bool:
    """Return whether bytes stand here."""
    return cursor.tokens[cursor.at] == "base64" and cursor.tokens[cursor.at + 1][:1] == '"'


def read_base64(cursor: Cursor) -> bytes:
    """Read `base64 "..."`; raises ParseError."""
    cursor.expect("base64")
    try:
        return base64.b64decode(cursor.string("base64 digits"), validate=True)
    except (ValueError, binascii.Error):
        raise cursor.error("this is no base64", cursor.at - 1) from None


def read_devices(note: Note, node: Node) -> tuple[NodeDevice, ...]:
    """Return the layouts of a node over devices, as its note tells them; raises ParseError."""
    values = {v.name: v for v in (*node.outputs, *node.inputs) if v is not None}
    return tuple(_device(d, values) for d in note.objects("device_configurations"))


def _device(note: Note, values: Mapping[str, Value]) -> NodeDevice:
    shardings = tuple(_sharding(s, values) for s in note.objects("sharding_spec"))
    wire = note.message("wire", NodeDeviceConfigurationProto)
    device = NodeDevice(note.text("configuration_id"), shardings, note.number("pipeline_stage"), wire)
    note.done()
    if wire and len(NodeDeviceConfigurationProto.FromString(wire).sharding_spec) != len(shardings):
        raise note.error("`wire` has another number of shardings")
    return device


def _sharding(note: Note, values: Mapping[str, Value]) -> Sharding:
    name, devices = note.text("tensor_name"), note.numbers("device")
    groups: list[tuple[int, tuple[int, ...]]] = []
    for group in note.objects("index_to_device_group_map"):
        groups.append((group.number("key") or 0, group.numbers("value")))
        group.done()
    axes = tuple(map(_axis, note.objects("sharded_dim")))
    note.done()
    return Sharding(values.get(name), name, devices, tuple(groups), axes)


def _axis(note: Note) -> ShardedAxis:
    pieces: list[tuple[Dim, int]] = []
    for piece in note.objects("simple_sharding"):
        pieces.append((piece.dim("dim"), piece.number("num_shards") or 0))
        piece.done()
    axis = ShardedAxis(note.number("axis") or 0, tuple(pieces))
    note.done()
    return axis


# values


def _value(cursor: Cursor) -> Any:
    word = cursor.tokens[cursor.at]
    if word[:1] == '"':
        return _lines(cursor)
    if word == "base64":
        return read_base64(cursor)
    if word == "[":
        return _list(cursor)
    if word == "{":
        return _object(cursor)
    return cursor.integer("a string, an integer, base64, a list or an object")


def _lines(cursor: Cursor) -> str:
    """Read strings that follow one another, which are the lines of one text."""
    lines = [cursor.string("a string")]
    while cursor.tokens[cursor.at][:1] == '"':
        lines.append(cursor.string("a string"))
    return "\n".join(lines)


def _list(cursor: Cursor) -> list[Any]:
    found: list[Any] = []
    cursor.enter("values")
    cursor.expect("[")
    while cursor.tokens[cursor.at] != "]":
        value = _value(cursor)
        found.append(Pair(value, _value(cursor)) if cursor.skip(":") else value)
        if not cursor.skip(","):
            break
    cursor.expect("]", "items are separated by commas")
    cursor.leave()
    return found


def _object(cursor: Cursor) -> Note:
    start = cursor.at
    entries: dict[str, tuple[int, Any]] = {}
    cursor.enter("values")
    cursor.expect("{")
    while cursor.tokens[cursor.at] != "}":
        at = cursor.at
        key = cursor.identifier("a key")
        if key in entries:
            raise cursor.error(f"{key} is given twice", at)
        cursor.expect(":")
        entries[key] = at, _value(cursor)
        if not cursor.skip(","):
            break
    cursor.expect("}", "entries are separated by commas")
    cursor.leave()
    return Note(cursor, start, entries)
