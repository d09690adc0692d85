"""What a message says beyond its meaning, set aside on reading and put back on writing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sabir.base import WireError, quote
from sabir.ir import Residue
from sabir.proto import unknown_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OPSETS = "opset_import"
_STR = frozenset({str})


def texts(proto: Any, *fields: str) -> list[str]:
    """Return string fields of a message; raises WireError for one that is no UTF-8."""
    found = [getattr(proto, f) for f in fields]
    if not _STR.issuperset(map(type, found)):
        field, text = next((f, t) for f, t in zip(fields, found, strict=True) if type(t) is not str)
        raise WireError(f"{proto.DESCRIPTOR.name}.{field} is not UTF-8: {quote(text)}")
    return found


def names(values: Iterable[Any], what: str) -> list[str]:
    """Return a repeated string field; raises WireError for an entry that is no UTF-8."""
    found = list(values)
    for text in found:
        if type(text) is not str:
            raise WireError(f"{what} {quote(text)} is not UTF-8")
    return found


def residue_of(
    proto: Any, optional: Iterable[str] = (), *, unknown: bool, wire: bytes = b"",
    repeated: Iterable[str] = (), lists: Iterable[str] = (),
) -> Residue | None:  # fmt: skip
    """Return what is left of a message: unknown fields, and which of the `optional` are there but empty.

    `lists` names fields whose entries the model turns into pairs; their unknown fields are kept by place.
    """
    left = wire + (unknown_bytes(proto) if unknown else b"")
    empty = tuple(f for f in optional if _is_empty(proto, f))
    repeats = tuple(repeated)
    entries = tuple(_unknown_entries(proto, lists)) if unknown else ()
    return Residue(left, empty, repeats, entries) if left or empty or repeats or entries else None


def _unknown_entries(proto: Any, lists: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    for field in lists:
        for place, entry in enumerate(getattr(proto, field)):
            wire = unknown_bytes(entry)
            if wire:
                yield field, place, wire


def _is_empty(proto: Any, field: str) -> bool:
    if field == OPSETS:  # the default domain, spelled out as empty
        return any(not o.domain and o.HasField("domain") for o in proto.opset_import)
    return proto.HasField(field) and not getattr(proto, field)


def restore(residue: Residue | None, proto: Any) -> None:
    """Put back what was left of a message into one that is written again."""
    if residue is None:
        return
    for field, place, wire in residue.entries:
        held = getattr(proto, field)
        if place < len(held):
            held[place].MergeFromString(wire)
    if residue.wire:
        proto.MergeFromString(residue.wire)
    for field in residue.empty:
        if field != OPSETS and not proto.HasField(field):
            setattr(proto, field, getattr(proto, field))  # protobuf tells an empty field from an absent one


def read_entries(proto: Any, field: str) -> tuple[dict[str, str] | None, bytes, tuple[str, ...]]:
    """Return string pairs as a dict, and the pairs whose key came before as wire bytes and by name."""
    pairs = getattr(proto, field)
    if not pairs:
        return None, b"", ()
    found: dict[str, str] = {}
    odd, repeated = type(proto)(), list[str]()
    for pair in pairs:
        key, value = texts(pair, "key", "value")
        if key in found or pair.ByteSize() != _plain_size(key, value):
            getattr(odd, field).add().CopyFrom(pair)
            repeated += [key] if key in found else []
        else:
            found[key] = value
    return found or None, odd.SerializeToString(), tuple(repeated)


def write_entries(entries: dict[str, str] | None, field: Any) -> None:
    """Write string pairs into a repeated field."""
    for key, value in (entries or {}).items():
        field.add(key=key, value=value)


def _plain_size(key: str, value: str) -> int:
    """The size of a pair that has both fields and nothing else."""
    return sum(1 + _varint_size(len(t.encode())) + len(t.encode()) for t in (key, value))


def _varint_size(number: int) -> int:
    return max(1, -(-number.bit_length() // 7))
