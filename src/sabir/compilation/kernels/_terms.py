"""How a product multiplies and adds: by floats one at a time, or by integers of 8 bits in small groups.

The integers of one lane are a group of neighbours along `k`, whose products one instruction adds up: four by
the dot product of unsigned and signed bytes, or two of 16 bits, to which any processor widens bytes. Both are
exact; an instruction that adds products of bytes in 16 bits is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sabir.compilation.kernels._body import element_bytes, kind_of
from sabir.compilation.kernels._casts import cast
from sabir.compilation.kernels._emitter import Kind, Register

if TYPE_CHECKING:
    from sabir.compilation.kernels._emitter import Emitter

Groups = Literal[1, 2, 4]  # neighbours along `k` in one lane
QUAD = 4
_LOW, _NEXT = 0xFF, 0xFF00  # the first and the second byte


class Floats:
    """Fused multiplication and addition, in order; panels may hold narrower numbers, uint8 less 128."""

    group = 1

    def __init__(self, e: Emitter, element: str, panels: str, lanes: int) -> None:
        """Take the element type, and that of the panels if it is another one."""
        panels = panels or element
        self._e, self._kind = e, kind_of(element, lanes)
        self._element, self._panels = element, panels
        self.factor_bytes = element_bytes(element)
        self.lane_bytes = element_bytes(panels)

    def column(self, address: Register) -> Register:
        """Emit the load of a vector of a panel, as floats."""
        e, lanes = self._e, self._kind.lanes
        if self._panels == self._element:
            return e.load(address, self._kind, align=64)
        x = e.load(address, kind_of(self._panels, lanes), align=lanes * self.lane_bytes)
        return cast(e, x, self._panels, self._element)

    def factor(self, address: Register) -> Register:
        """Emit the load of an element of a row, in every lane."""
        return self._e.splat(self._e.load(address, Kind(self._kind.scalar)), self._kind.lanes)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit a sum with products."""
        return self._e.fma(x, y, total)


class Integers:
    """Sums of the products of uint8 by int8, in int32."""

    def __init__(self, e: Emitter, group: Groups, lanes: int) -> None:
        self._e, self.group, self._lanes = e, group, lanes
        self.factor_bytes = 1
        self.lane_bytes = group

    def column(self, address: Register) -> Register:
        """Emit the load of a vector of a panel: bytes, or 16 bits of each."""
        e, count = self._e, self._lanes * self.group
        x = e.load(address, Kind("i8", count), align=count)
        return x if self.group == QUAD else e.convert("sext", x, "i16")

    def factor(self, address: Register) -> Register:
        """Emit the load of a group of a row, in every lane."""
        e = self._e
        if self.group == QUAD:
            return self._spread(e.load(address, Kind("i32"), align=1))
        pair = e.convert("zext", e.load(address, Kind("i16"), align=1), "i32")
        low = e.binary("and", pair, e.constant(pair.kind, _LOW))
        high = e.binary("and", pair, e.constant(pair.kind, _NEXT))
        return self._spread(e.binary("or", low, e.binary("shl", high, e.constant(pair.kind, 8))))

    def rest(self, address: Register, last: Register) -> Register:
        """Emit the load of the last group of a row, whose last element has the index `last` in it.

        What follows repeats it, and meets zeros in the panel.
        """
        e = self._e
        found = e.constant(Kind("i32"), 0)
        for place in range(self.group):
            here = e.offset(address, e.least(e.index(place), last))
            byte = e.convert("zext", e.load(here, Kind("i8")), "i32")
            moved = e.binary("shl", byte, e.constant(byte.kind, place * 8 * QUAD // self.group))
            found = e.binary("or", found, moved)
        return self._spread(found)

    def _spread(self, x: Register) -> Register:
        """Return a group in every lane, as bytes or as 16 bits of each."""
        e = self._e
        wide = e.splat(x, self._lanes)
        kind = self._kind
        return e.value(kind, f"bitcast {wide} to {kind}")

    @property
    def _kind(self) -> Kind:
        count = self._lanes * self.group
        return Kind("i8", count) if self.group == QUAD else Kind("i16", count)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit a sum with products."""
        e, bits = self._e, self._lanes * 32
        if self.group == QUAD:
            return e.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total.kind, total, x, y)
        name = "llvm.x86.avx512.pmaddw.d.512" if bits > 256 else "llvm.x86.avx2.pmadd.wd"  # ruff: ignore[magic-value-comparison]  the bits of a vector
        return e.binary("add", total, e.call(name, total.kind, x, y))
