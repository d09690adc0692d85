"""The multiply-add of a product: floats one at a time, or 8-bit integers in groups along `k`.

For integers, a lane has a group of adjacent elements along `k`, whose products one instruction adds: four
with a dot product of uint8 by int8, or two with 16-bit products, to which any processor widens bytes. Both
are exact (instructions that add products of bytes in 16 bits are not). On a processor that multiplies only
signed bytes, 128 is subtracted from the unsigned ones, and the accumulators begin at 128 times the sums of
the columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.compilation.backends.cpu.emit.emitter import Kind, Register
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter

Groups = Literal[1, 2, 4]  # adjacent elements along `k` in one lane
Dot = Literal[
    "vpdpbusd", "pmaddwd", "usdot", "sdot", "sadalp", "smull"
]  # the instruction that adds the products
GROUPS: dict[Dot, Groups] = {"vpdpbusd": 4, "pmaddwd": 2, "usdot": 4, "sdot": 4, "sadalp": 2, "smull": 2}
QUAD = 4
_WORD_BITS = 32
_LOWS = 0x0F0F0F0F  # the low four bits of four bytes
_FOUR = "4"
_MIDDLE = 128  # subtracted from unsigned bytes to make them signed
_WORD = 0x80808080  # the sign bits of four bytes
_LOW, _NEXT = 0xFF, 0xFF00  # the first and the second byte


class Floats:
    """Fused multiply-add in order; panels may have narrower elements, and uint8 is offset by -128.

    A line of a panel has `steps` steps of `k`, which are multiplied in parts: `offsets` are the bytes of the
    factors of each in a row of `a`, which has `row_bytes` for a line.
    """

    group, taken, steps = 1, 0, 1
    offsets: Sequence[int] = (0,)

    def __init__(self, e: Emitter, element: str, panels: str, lanes: int) -> None:
        """Create terms for an element type; `panels` is the element type of the panels if it differs."""
        panels = panels or element
        self._e, self._kind = e, kind_of(element, lanes)
        self._element, self._panels = element, panels
        self.factor_bytes = self.row_bytes = element_bytes(element)
        self.lane_bytes = element_bytes(panels)

    def column(self, address: Register) -> Register:
        """Emit the load of a vector of a panel, as floats."""
        e, lanes = self._e, self._kind.lanes
        if self._panels == self._element:
            return e.load(address, self._kind, align=lanes * self.lane_bytes)
        x = e.load(address, kind_of(self._panels, lanes), align=lanes * self.lane_bytes)
        return cast(e, x, self._panels, self._element)

    def field(self, x: Register, number: int) -> Register:
        """Return the numbers at a place of what `column` loaded, which is only the first one here."""
        if number:
            raise ValueError("a column has one number")
        return x

    def factor(self, address: Register) -> Register:
        """Emit the load of an element of a row, broadcast to all lanes."""
        return self._e.splat(self._e.load(address, Kind(self._kind.scalar)), self._kind.lanes)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit the multiply-add."""
        return self._e.fma(x, y, total)


class Packed(Floats):
    """Floats times integers of 2 or 4 bits, which words of panels pack along `k`."""

    def __init__(self, e: Emitter, integer: str, lanes: int, *, middle: int, lookup: bool) -> None:
        """Create terms for `int4`, `uint4`, `int2` or `uint2`, minus `middle`.

        With `lookup`, an instruction of AVX-512 looks up values by the lowest four bits of 16 words.
        """
        super().__init__(e, "float", "int32", lanes)
        self._signed, self._bits = not integer.startswith("u"), int(integer[-1])
        self._middle, self._lookup = middle, lookup
        self.steps = _WORD_BITS // self._bits
        self.offsets = range(0, self.steps * self.factor_bytes, self.factor_bytes)
        self.row_bytes = self.steps * self.factor_bytes

    def column(self, address: Register) -> Register:
        """Emit the load of a vector of words."""
        return self._e.load(address, self._words, align=self._kind.lanes * self.lane_bytes)

    def field(self, x: Register, number: int) -> Register:
        """Emit the integers at place `number` of words, as floats."""
        e, place = self._e, number * self._bits
        if self._lookup:
            return self._looked_up(self._shifted("lshr", x, place))
        if self._signed:
            high = self._shifted("shl", x, _WORD_BITS - self._bits - place)
            return e.convert("sitofp", self._shifted("ashr", high, _WORD_BITS - self._bits), "float")
        low = e.binary("and", self._shifted("lshr", x, place), e.constant(x.kind, (1 << self._bits) - 1))
        low = e.binary("sub", low, e.constant(x.kind, self._middle)) if self._middle else low
        return e.convert("sitofp", low, "float")

    def _shifted(self, op: str, x: Register, places: int) -> Register:
        return self._e.binary(op, x, self._e.constant(x.kind, places)) if places else x

    def _looked_up(self, x: Register) -> Register:
        e, kind, count = self._e, self._kind, 1 << self._bits
        numbers = [n - (count if self._signed and n >= count // 2 else self._middle) for n in range(count)]
        row = numbers * (kind.lanes // count)
        table = Register(f"<{', '.join(f'float {float(n)}' for n in row)}>", kind)
        return e.call("llvm.x86.avx512.permvar.sf.512", kind, table, x)

    @property
    def _words(self) -> Kind:
        return Kind("i32", self._kind.lanes)


class Rounded(Packed):
    """Elements of int8 times integers of 4 or 8 bits in words, as floats: their sums are exact.

    Each eight elements of a row, for a word of 4 bits, are those of even and then of odd places.
    """

    def __init__(self, e: Emitter, integer: str, lanes: int, *, lookup: bool) -> None:
        super().__init__(e, integer, lanes, middle=0, lookup=lookup and integer[-1] == _FOUR)
        odd = self.steps // 2
        self.offsets = range(self.steps) if self.steps == QUAD else [n % 2 * odd + n // 2 for n in range(8)]
        self.factor_bytes, self.row_bytes = 1, self.steps

    def factor(self, address: Register) -> Register:
        """Emit the load of an element of a row as a float, broadcast to all lanes."""
        x = self._e.convert("sitofp", self._e.load(address, Kind("i8")), "float")
        return self._e.splat(x, self._kind.lanes)


class Dotted(Packed):
    """Elements of int8 times integers of 4 or 8 bits in words, in fours, summed in int32.

    The order of the elements is that of `Rounded`.
    """

    def __init__(self, e: Emitter, integer: str, lanes: int) -> None:
        super().__init__(e, integer, lanes, middle=0, lookup=False)
        self.offsets, self.factor_bytes, self.row_bytes = range(0, self.steps, QUAD), 1, self.steps

    def field(self, x: Register, number: int) -> Register:
        """Emit the bytes of every second integer of 4 bits, from place `number` on; all bytes for 8 bits."""
        if self.steps == QUAD:
            return x
        return self._e.binary(
            "and", self._shifted("lshr", x, number * self._bits), self._e.constant(x.kind, _LOWS)
        )

    def factor(self, address: Register) -> Register:
        """Emit the load of four elements of a row, broadcast to all lanes."""
        return self._e.splat(self._e.load(address, Kind("i32"), align=1), self._kind.lanes)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit the multiply-add."""
        kind = Kind("i8", self._kind.lanes * QUAD)
        x, y = (self._e.value(kind, f"bitcast {each} to {kind}") for each in (x, y))
        return self._e.call(f"llvm.x86.avx512.vpdpbusd.{self._kind.lanes * 32}", total.kind, total, y, x)


class Integers:
    """Products of uint8 by int8, summed in int32."""

    offsets: Sequence[int] = (0,)

    def __init__(self, e: Emitter, dot: Dot, lanes: int) -> None:
        self._e, self._dot, self._lanes = e, dot, lanes
        self.group = self.steps = self.row_bytes = GROUPS[dot]
        self.factor_bytes = 1
        self.lane_bytes = self.group
        self.taken = _MIDDLE if dot == "sdot" else 0

    def column(self, address: Register) -> Register:
        """Emit the load of a vector of a panel: bytes, or 16 bits of each."""
        e, count = self._e, self._lanes * self.group
        x = e.load(address, Kind("i8", count), align=count)
        return x if self.group == QUAD else e.convert("sext", x, "i16")

    def field(self, x: Register, number: int) -> Register:
        """Return what `column` loaded: its groups are multiplied at once."""
        if number:
            raise ValueError("a column has one group")
        return x

    def factor(self, address: Register) -> Register:
        """Emit the load of a group of a row, broadcast to all lanes."""
        e = self._e
        if self.group == QUAD:
            return self._spread(e.load(address, Kind("i32"), align=1))
        pair = e.convert("zext", e.load(address, Kind("i16"), align=1), "i32")
        low = e.binary("and", pair, e.constant(pair.kind, _LOW))
        high = e.binary("and", pair, e.constant(pair.kind, _NEXT))
        return self._spread(e.binary("or", low, e.binary("shl", high, e.constant(pair.kind, 8))))

    def rest(self, address: Register, last: Register) -> Register:
        """Emit the load of the last, partial group of a row; `last` is the index of its last element.

        The rest of the group repeats that element, and is multiplied by zeros of the panel.
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
        """Return a group broadcast to all lanes, as bytes or as 16-bit integers."""
        return self.groups(self._e.splat(x, self._lanes))

    def groups(self, x: Register) -> Register:
        """Return the group in the 32 bits of each lane as bytes or as 16-bit integers."""
        e, kind = self._e, self._kind
        signed = e.binary("xor", x, e.constant(x.kind, _WORD)) if self.taken else x
        return e.value(kind, f"bitcast {signed} to {kind}")

    @property
    def _kind(self) -> Kind:
        count = self._lanes * self.group
        return Kind("i8", count) if self.group == QUAD else Kind("i16", count)

    def add(self, x: Register, y: Register, total: Register) -> Register:
        """Emit the multiply-add."""
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
