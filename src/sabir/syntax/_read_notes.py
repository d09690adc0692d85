"""Notes, `@{doc_string: "...", metadata_props: ["k": "v"]}`: what the standard syntax cannot express."""

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

_Item = TypeVar("_Item")


class Pair(NamedTuple):
    """An item of a list that is written `key: value`."""

    key: Any
    value: Any


class Note:
    """One note, or an object in it: each key is taken once, by the reader that knows it."""

    __slots__ = ("_cursor", "_entries", "_known", "start")

    def __init__(self, cursor: Cursor, start: int, entries: dict[str, tuple[int, Any]]) -> None:
        self._cursor, self._entries, self.start = cursor, entries, start
        self._known: list[str] = []

    def text(self, key: str) -> str:
        """Return a string, empty where the key is missing; raises ParseError for another value."""
        return self._take(key, str, "a string", "")

    def name(self) -> str | None:
        """Return the real name of the object, where it differs from the one in the text."""
        return self._take("name", str, "a string", None)

    def number(self, key: str) -> int | None:
        """Return an integer, or None where the key is missing."""
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
        """Return pairs of strings, or None where the key is missing."""
        pairs: list[tuple[str, str]] = []
        for pair in self._items(key, Pair, "pairs of strings"):
            if not isinstance(pair.key, str) or not isinstance(pair.value, str):
                raise self.error(f"{key} takes pairs of strings")
            pairs.append((pair.key, pair.value))
        found = dict(pairs)
        if len(found) < len(pairs):
            raise self.error(f"a key of {key} is there twice")
        return found or None

    def message(self, key: str, message_class: Any) -> bytes:
        """Return the bytes of a message of a class; raises ParseError for others."""
        data = self._take(key, bytes, "bytes, as base64 and a string", b"")
        self._parsed(data, message_class)
        return data

    def dim(self, key: str) -> Dim:
        """Return a dimension: a number, a name or an expression."""
        value = self._take(key, (int, str), "a number or a string", None)
        return read_dim(value) if isinstance(value, str) else value

    def residue(self, message_class: Any) -> Residue | None:
        """Return the residue of a message of a class."""
        note = self._take("residue", Note, "an object in braces", None)
        if note is None:
            return None
        entries = tuple(note.entry(e, message_class) for e in note.objects("entries"))
        places = tuple(note.listed(e, message_class) for e in note.objects("places"))
        wire, empty = note.message("wire", message_class), note.fields("empty", message_class)
        found = Residue(wire, empty, note.texts("repeated"), entries, note.texts("absent"), places)
        note.done()
        return found

    def fields(self, key: str, message_class: Any) -> tuple[str, ...]:
        """Return the names of fields that are present but empty."""
        names = self.texts(key)
        for name in names:
            known = name in message_class.DESCRIPTOR.fields_by_name
            if not known or not isinstance(getattr(message_class(), name), (str, bytes, int, float)):
                owner = message_class.DESCRIPTOR.name
                raise self.error(f"{quote(name)} is not a field of {owner} that can be empty")
        return names

    def entry(self, note: Note, message_class: Any) -> tuple[str, int, bytes]:
        """Return an entry of a list of messages, as in `Residue.entries`."""
        field, place = self._entry_place(note, message_class)
        listed = getattr(message_class(), field)
        wire = note.message("wire", type(listed.add())) if hasattr(listed, "add") else b""
        note.done()
        return field, place, wire

    def listed(self, note: Note, message_class: Any) -> tuple[str, int]:
        """Return the place of an entry in a list, as in `Residue.places`."""
        found = self._entry_place(note, message_class)
        note.done()
        return found

    def _entry_place(self, note: Note, message_class: Any) -> tuple[str, int]:
        field, place = note.text("field"), note.number("place")
        if field not in message_class.DESCRIPTOR.fields_by_name:
            raise note.error(f"{quote(field)} is not a field of {message_class.DESCRIPTOR.name}")
        if place is None or place < 0:
            raise note.error("an entry needs its place in the list")
        return field, place

    def done(self) -> None:
        """Raise ParseError where the note has an unknown key."""
        for key, (start, _) in self._entries.items():
            hint = suggest(key, self._known) or f"; known here are {', '.join(self._known)}"
            raise self._cursor.error(f"a note about this has no key {quote(key)}{hint}", start)

    def error(self, message: str) -> ParseError:
        """Return the error for the whole note."""
        return self._cursor.error(message, self.start)

    def _take(self, key: str, class_: Any, what: str, default: Any) -> Any:
        self._known.append(key)
        start, value = self._entries.pop(key, (self.start, default))
        if value is not default and not isinstance(value, class_):
            raise self._cursor.error(f"{key} takes {what}", start)
        return value

    def _items(self, key: str, class_: type[_Item], what: str) -> tuple[_Item, ...]:
        found: list[Any] = self._take(key, list, f"a list of {what}", [])
        if not all(isinstance(item, class_) for item in found):
            raise self.error(f"{key} takes a list of {what}")
        return tuple(found)

    def _parsed(self, data: bytes, message_class: Any) -> Any:
        try:
            return read_message(message_class, data)
        except WireError as error:
            raise self.error(f"these bytes are no {message_class.DESCRIPTOR.name}: {error}") from None


def read_note(cursor: Cursor) -> Note | None:
    """Read a note, or return None where there is none; raises ParseError."""
    if cursor.tokens[cursor.at] != "@" or cursor.tokens[cursor.at + 1] != "{":
        return None
    cursor.at += 1
    return _object(cursor)


def at_base64(cursor: Cursor) -> bool:
    """Return whether the next value is bytes."""
    return cursor.tokens[cursor.at] == "base64" and cursor.tokens[cursor.at + 1][:1] == '"'


def read_base64(cursor: Cursor) -> bytes:
    """Read `base64 "..."`; raises ParseError."""
    cursor.expect("base64")
    try:
        return base64.b64decode(cursor.string("base64 digits"), validate=True)
    except (ValueError, binascii.Error):
        raise cursor.error("this is not base64", cursor.at - 1) from None


def read_devices(note: Note, node: Node) -> tuple[NodeDevice, ...]:
    """Return the layouts of a node over devices from its note; raises ParseError."""
    values = {v.name: v for v in (*node.outputs, *node.inputs) if v is not None}
    return tuple(_device(d, values) for d in note.objects("device_configurations"))


def _device(note: Note, values: Mapping[str, Value]) -> NodeDevice:
    shardings = tuple(_sharding(s, values) for s in note.objects("sharding_spec"))
    wire = note.message("wire", NodeDeviceConfigurationProto)
    device = NodeDevice(note.text("configuration_id"), shardings, note.number("pipeline_stage"), wire)
    note.done()
    if wire and len(NodeDeviceConfigurationProto.FromString(wire).sharding_spec) != len(shardings):
        raise note.error("`wire` has a different number of shardings")
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
    """Read strings that follow one another: the lines of one text."""
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
            raise cursor.error(f"{key} is there twice", at)
        cursor.expect(":")
        entries[key] = at, _value(cursor)
        if not cursor.skip(","):
            break
    cursor.expect("}", "entries are separated by commas")
    cursor.leave()
    return Note(cursor, start, entries)
