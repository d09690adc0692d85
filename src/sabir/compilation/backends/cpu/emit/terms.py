"""How a product multiplies and adds: by floats one at a time, or by integers of 8 bits in small groups.

The integers of one lane are a group of neighbours along `k`, whose products one instruction adds up: four by
the dot product of unsigned and signed bytes, or two of 16 bits, to which any processor widens bytes. Both are
exact; an instruction that adds products of bytes in 16 bits is not. Where a processor multiplies signed bytes
only, 128 is taken from the unsigned ones, and the sums of the columns times 128 is where a sum begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.compilation.backends.cpu.emit.emitter import Kind, Register
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Emitter

Groups = Literal[1, 2, 4]  # neighbours along `k` in one lane
Dot = Literal[
    "vpdpbusd", "pmaddwd", "usdot", "sdot", "sadalp", "smull"
]  # the instruction that adds up products
GROUPS: dict[Dot, Groups] = {"vpdpbusd": 4, "pmaddwd": 2, "usdot": 4, "sdot": 4, "sadalp": 2, "smull": 2}
QUAD = 4
_MIDDLE = 128  # what is taken from unsigned bytes where they are to be signed
_WORD = 0x80808080  # of a group of four bytes
_LOW, _NEXT = 0xFF, 0xFF00  # the first and the second byte


class Floats:
    """Fused multiplication and addition, in order; panels may hold narrower numbers, uint8 less 128."""

    group, taken = 1, 0

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
            return e.load(address, self._kind, align=lanes * self.lane_bytes)
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

    def __init__(self, e: Emitter, dot: Dot, lanes: int) -> None:
        self._e, self._dot, self._lanes = e, dot, lanes
        self.group = GROUPS[dot]
        self.factor_bytes = 1
        self.lane_bytes = self.group
        self.taken = _MIDDLE if dot == "sdot" else 0

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
        return self.groups(self._e.splat(x, self._lanes))

    def groups(self, x: Register) -> Register:
        """Return the group in the 32 bits of each lane as bytes or as 16 bits of each."""
        e, kind = self._e, self._kind
        signed = e.binary("xor", x, e.constant(x.kind, _WORD)) if self.taken else x
        return e.value(kind, f"bitcast {signed} to {kind}")

    @property
    def _kind(self) -> Kind:
        count = self._lanes * self.group
        return Kind("i8", count) if self.group == QUAD else Kind("i16", count)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit a sum with products."""
        e, bits = self._e, self._lanes * 32
        match self._dot:
            case "vpdpbusd":
                return e.call(f"llvm.x86.avx512.vpdpbusd.{bits}", total.kind, total, x, y)
            case "usdot" | "sdot":
                name = f"llvm.aarch64.neon.{self._dot}.{total.kind.suffix}.{x.kind.suffix}"
                return e.call(name, total.kind, total, x, y)
            case "smull":
                wide = e.binary("mul", e.convert("sext", x, "i32"), e.convert("sext", y, "i32"))
                return e.binary("add", total, e.binary("add", *map(self._each_second, (wide, wide), (0, 1))))
            case "sadalp":  # each product of bytes fits into 16 bits
                pairs = e.binary("mul", x, y)
                name = f"llvm.aarch64.neon.saddlp.{total.kind.suffix}.{x.kind.suffix}"
                return e.binary("add", total, e.call(name, total.kind, pairs))
            case _:
                name = "llvm.x86.avx512.pmaddw.d.512" if bits > 256 else "llvm.x86.avx2.pmadd.wd"  # ruff: ignore[magic-value-comparison]  the bits of a vector
                return e.binary("add", total, e.call(name, total.kind, x, y))

    def _each_second(self, x: Register, first: int) -> Register:
        e, lanes = self._e, self._lanes
        places = ", ".join(f"i32 {place}" for place in range(first, 2 * lanes, 2))
        return e.value(Kind("i32", lanes), f"shufflevector {x}, {x.kind} poison, <{lanes} x i32> <{places}>")
