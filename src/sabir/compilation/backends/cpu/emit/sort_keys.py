"""Sort keys: signed integers in the order of the elements of any type, and records of a key and an index.

A record has the key in its upper half and the index in its lower half. So records compare as the elements do,
and equal elements are in the order of their index. NaN is greater than any number, and -0 equals 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.compilation.backends.cpu.emit.elementary import order
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Kind
from sabir.compilation.backends.cpu.emit.lanes import Lanes
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register

_WORD = 4  # bytes of a key, at least


def record_bytes(element: str) -> int:
    """Return the bytes of a record for an element type."""
    return 2 * max(_WORD, element_bytes(element))


class SortRecords:
    """Emits keys and records of an element type; `kind` is the type of a record, `key` that of a key."""

    def __init__(self, e: Emitter, element: str) -> None:
        self.e, self.element = e, element
        width = record_bytes(element) * 8
        self.kind, self.key = Kind(f"i{width}"), Kind(f"i{width // 2}")

    def key_of(self, x: Register) -> Lanes:
        """Emit the keys of elements in registers."""
        found = Lanes(self.e, x)
        if found.kind.is_float:
            return order(found)
        if self.element in {"uint32", "uint64"}:
            return found ^ (
                1 << self.key.bits - 1
            )  # then signed comparison has the order of unsigned integers
        wide = "int32" if self.key.bits == 8 * _WORD else "int64"
        return Lanes(self.e, cast(self.e, x, self.element, wide))

    def record(self, key: Register, index: Register) -> Register:
        """Emit the record of a key and an index."""
        e, scalar = self.e, self.kind.scalar
        high = e.binary("shl", e.convert("sext", key, scalar), e.constant(self.kind, self.key.bits))
        low = index if self.kind == INDEX else e.convert("zext", index, scalar)
        return e.binary("or", high, low)

    def key_in(self, record: Register) -> Register:
        """Emit the key of a record."""
        shifted = self.e.binary("ashr", record, self.e.constant(self.kind, self.key.bits))
        return self.e.convert("trunc", shifted, self.key.scalar)

    def index_in(self, record: Register) -> Register:
        """Emit the index of a record."""
        if self.kind != INDEX:
            return self.e.convert("trunc", record, INDEX.scalar)
        return self.e.binary("and", record, self.e.index((1 << self.key.bits) - 1))
