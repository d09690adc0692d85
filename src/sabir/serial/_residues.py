"""The residue of a message: collected when it is read, and restored when it is written."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from google.protobuf.message import DecodeError

from sabir.base import TextError, WireError, quote
from sabir.ir import Residue, binding_places, bound_opsets, canonical_domain
from sabir.proto import unknown_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OPSETS = "opset_import"
Entry: TypeAlias = tuple[str, int, bytes]  # as in `Residue.entries`
_STR = frozenset({str})


def texts(proto: Any, *fields: str) -> list[str]:
    """Return string fields of a message; raises TextError for one that is not UTF-8."""
    found = [getattr(proto, f) for f in fields]
    if not _STR.issuperset(map(type, found)):
        field, text = next((f, t) for f, t in zip(fields, found, strict=True) if type(t) is not str)
        raise TextError(f"{proto.DESCRIPTOR.name}.{field} is not UTF-8: {quote(text)}")
    return found


class TextFields:
    """String fields of one message class, which are read together: faster than by `texts`, for each node."""

    __slots__ = ("_get", "names")

    def __init__(self, first: str, second: str, *more: str) -> None:
        self.names = (first, second, *more)
        self._get = attrgetter(*self.names)

    def of(self, proto: Any) -> tuple[str, ...]:
        """Return the texts of a message; raises TextError as `texts` does."""
        found = self._get(proto)
        if not _STR.issuperset(map(type, found)):
            texts(proto, *self.names)
        return found


def names(values: Iterable[Any], what: str) -> list[str]:
    """Return a repeated string field; raises TextError for an entry that is not UTF-8."""
    found = list(values)
    for text in found:
        if type(text) is not str:
            raise TextError(f"{what} {quote(text)} is not UTF-8")
    return found


_PAIR_TEXTS = TextFields("key", "value")


class ResidueCollector:
    """Collects, while a message is read, what no part of the model represents."""

    # there is one for every node and value, and most of them collect nothing
    _wire = b""
    _repeated: tuple[str, ...] = ()
    _entries: tuple[Entry, ...] = ()
    _absent: tuple[str, ...] = ()
    _places: tuple[tuple[str, int], ...] = ()

    def __init__(self, proto: Any, *, unknown: bool) -> None:
        """Take the message; `unknown` says whether any message of the model has unknown fields."""
        self._proto, self._unknown = proto, unknown

    def keep(self, message: Any) -> None:
        """Keep the content of a message of the same class, to be merged when this one is written again."""
        self._wire += message.SerializeToString()

    def keep_duplicates(self, field: str, entries: Mapping[int, tuple[str, Any]]) -> None:
        """Keep the duplicate entries of a list by place, each with its name."""
        if not entries:
            return
        alone = type(self._proto)()
        getattr(alone, field).extend(entry for _, entry in entries.values())
        self.keep(alone)
        self._repeated += tuple([name for name, _ in entries.values()])
        self._places += tuple([(field, place) for place in entries])

    def absent(self, field: str) -> None:
        """Note a field that is absent, though the model has a value for it."""
        self._absent += (field,)

    def repeated(self, name: str) -> None:
        """Note a name that is there twice."""
        self._repeated += (name,)

    def pairs(self, field: str) -> dict[str, str] | None:
        """Return a list of pairs as a dict, None where it is empty; raises TextError as `texts` does."""
        pairs = getattr(self._proto, field)
        if not pairs:
            return None
        found: dict[str, str] = {}
        duplicates: dict[int, tuple[str, Any]] = {}
        odd: list[Entry] = []  # a field is absent, or there are other ones
        is_known = not self._unknown
        for place, pair in enumerate(pairs):
            key, value = _PAIR_TEXTS.of(pair)
            if key in found:
                duplicates[place] = key, pair
                continue
            found[key] = value
            if not (key and value and is_known) and pair.ByteSize() != _plain_size(key, value):
                odd.append((field, place, pair.SerializeToString()))
        self._entries += tuple(odd)
        self.keep_duplicates(field, duplicates)
        return found

    def listed(self, field: str) -> list[tuple[str, str]]:
        """Return a list of string pairs, duplicates included; raises TextError as `texts` does."""
        found: list[tuple[str, str]] = []
        odd: list[Entry] = []
        for place, pair in enumerate(getattr(self._proto, field)):
            key, value = texts(pair, "key", "value")
            found.append((key, value))
            if pair.ByteSize() != _plain_size(key, value):
                odd.append((field, place, pair.SerializeToString()))
        self._entries += tuple(odd)
        return found

    def opsets(self) -> dict[str, int]:
        """Return the imports that apply, by domain as it is spelled; raises TextError as `texts` does."""
        listed = [(texts(entry, "domain")[0], entry.version) for entry in self._proto.opset_import]
        applying = frozenset(binding_places(listed))
        duplicates: dict[int, tuple[str, Any]] = {}
        odd: list[Entry] = []
        for place, entry in enumerate(self._proto.opset_import):
            domain = listed[place][0]
            if place not in applying:
                duplicates[place] = domain, entry
                continue
            if not domain and not entry.HasField("domain"):
                self.absent(OPSETS)
            if self._unknown or not entry.HasField("version"):
                odd.append((OPSETS, place, entry.SerializeToString()))
        self._entries += tuple(odd)
        self.keep_duplicates(OPSETS, duplicates)
        return {domain: version for place, (domain, version) in enumerate(listed) if place in applying}

    def residue(self, optional: Iterable[str] = ()) -> Residue | None:
        """Return the residue, with those of the `optional` fields that are present but empty."""
        proto = self._proto
        wire = self._wire + unknown_bytes(proto) if self._unknown else self._wire
        empty = tuple([f for f in optional if not getattr(proto, f) and proto.HasField(f)])
        if not (wire or empty or self._entries or self._absent or self._repeated):
            return None
        return Residue(wire, empty, self._repeated, self._entries, self._absent, self._places)


def restore(residue: Residue | None, proto: Any) -> None:
    """Write the residue of a message into one that is written again.

    Raises WireError for the residue of another message: in a text it may be anything.
    """
    if residue is None:
        return
    try:
        _restore(residue, proto)
    except (AttributeError, TypeError, ValueError, DecodeError) as error:
        raise WireError(f"the residue of a {proto.DESCRIPTOR.name} does not belong to it: {error}") from error


def _restore(residue: Residue, proto: Any) -> None:
    if residue.wire:
        proto.MergeFromString(residue.wire)
    if residue.places:
        _restore_places(residue.places, proto)
    for field, place, wire in residue.entries:
        entries = getattr(proto, field)
        if 0 <= place < len(entries):
            _restore_entry(entries[place], wire)
    for field in residue.empty:
        if not proto.HasField(field):
            # protobuf distinguishes an empty field from an absent one
            setattr(proto, field, getattr(proto, field))


def _restore_places(places: Iterable[tuple[str, int]], proto: Any) -> None:
    """Move the entries that `wire` appended to their places."""
    by_field: dict[str, set[int]] = {}
    for field, place in places:
        by_field.setdefault(field, set()).add(place)
    for field, wanted in by_field.items():
        _move_last(getattr(proto, field), wanted)


def _move_last(entries: Any, places: set[int]) -> None:
    """Move the last entries of a list, as many as there are places, to these places."""
    before = list(entries)
    first, last = before[: -len(places)], before[-len(places) :]
    after: list[Any] = []
    remaining, moving = iter(first), iter(last)
    for place in range(len(before)):
        preferred, other = (moving, remaining) if place in places else (remaining, moving)
        entry = next(preferred, None)
        after.append(next(other) if entry is None else entry)
    if any(a is not b for a, b in zip(after, before, strict=True)):
        del entries[:]
        entries.extend(after)


def _restore_entry(entry: Any, wire: bytes) -> None:
    """Write a pair as it was in the file; where its value has changed, only the other fields."""
    old: Any = type(entry)()
    old.ParseFromString(wire)
    key, value = (f.name for f in entry.DESCRIPTOR.fields[:2])
    if getattr(old, key) != getattr(entry, key):
        return
    if getattr(old, value) != getattr(entry, value):
        old.MergeFrom(entry)
    entry.CopyFrom(old)


def drop_outdated_imports(opsets: Mapping[str, int], field: Any) -> None:
    """Drop the duplicate imports of the file by which, since an edit, another version would apply."""
    bound = bound_opsets(opsets)
    kept = [e for e in field if canonical_domain(e.domain) in bound]
    kept = [e for e in kept if e.version <= bound[canonical_domain(e.domain)]]
    if len(kept) < len(field):
        del field[:]
        field.extend(kept)


def write_entries(entries: dict[str, str] | None, field: Any) -> None:
    """Write metadata into a repeated field; raises WireError for an entry that is not text."""
    for key, value in (entries or {}).items():
        try:
            field.add(key=key, value=value)
        except (TypeError, ValueError) as error:
            entry = f"the metadata entry {quote(key)} with the value {quote(value)}"
            raise WireError(f"{entry} cannot be written: {error}") from error


def _plain_size(key: str, value: str) -> int:
    """Return the size of a pair that has both fields and nothing else."""
    return sum(1 + _varint_size(len(t.encode())) + len(t.encode()) for t in (key, value))


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))
