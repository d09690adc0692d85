"""Formulas on registers in Python's notation.

`Lanes` is a register together with the emitter that computes with it: `x * y + 1.0` emits two instructions.
An operand that is a number is a constant in every lane.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.emitter import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register


class Format(NamedTuple):
    """The constants of a floating-point type that formulas need."""

    scalar: str
    integer: str  # the integer type of the same width
    fraction: int  # bits of the fraction
    bias: int
    code: str  # of struct

    @property
    def magic(self) -> float:
        """A number whose sum with a small number has the rounded integer in its low bits."""
        return 1.5 * 2.0**self.fraction

    @property
    def least(self) -> float:
        """The least positive normal number."""
        return 2.0 ** (1 - self.bias)

    def nearest(self, number: float) -> float:
        """Return a number rounded to this type."""
        return struct.unpack(f"<{self.code}", struct.pack(f"<{self.code}", number))[0]

    def pattern(self, number: float) -> int:
        """Return the bits of a number."""
        return int.from_bytes(struct.pack(f"<{self.code}", number), "little")


FLOAT = Format("float", "i32", 23, 127, "f")
DOUBLE = Format("double", "i64", 52, 1023, "d")
_FORMATS = {"float": FLOAT, "double": DOUBLE}


_WIDE = Kind("float", 16)
_CURRENT_ROUNDING = 4


class Lanes:  # ruff: ignore[too-many-public-methods]  the operators of formulas
    """A register in a formula: floats, integers (signed, where that matters) or truth values."""

    __slots__ = ("e", "register")

    def __init__(self, e: Emitter, register: Register) -> None:
        self.e, self.register = e, register

    @property
    def kind(self) -> Kind:
        """The register's type."""
        return self.register.kind

    @property
    def format(self) -> Format:
        """The floating-point type, float or double."""
        return _FORMATS[self.kind.scalar]

    def like(self, other: Lanes | float) -> Lanes:
        """Return an operand as lanes; a number becomes a constant of this type."""
        return other if isinstance(other, Lanes) else Lanes(self.e, self.e.constant(self.kind, other))

    def _binary(self, whole: str, real: str, other: Lanes | float) -> Lanes:
        op = real if self.kind.is_float else whole
        return Lanes(self.e, self.e.binary(op, self.register, self.like(other).register))

    def __add__(self, other: Lanes | float) -> Lanes:
        return self._binary("add", "fadd", other)

    def __sub__(self, other: Lanes | float) -> Lanes:
        return self._binary("sub", "fsub", other)

    def __rsub__(self, other: float) -> Lanes:
        return self.like(other) - self

    def __mul__(self, other: Lanes | float) -> Lanes:
        return self._binary("mul", "fmul", other)

    def __truediv__(self, other: Lanes | float) -> Lanes:
        return self._binary("", "fdiv", other)

    def __rtruediv__(self, other: float) -> Lanes:
        return self.like(other) / self

    def __neg__(self) -> Lanes:
        if self.kind.is_float:
            return Lanes(self.e, self.e.unary("fneg", self.register))
        return self.like(0) - self

    def __and__(self, other: Lanes | int) -> Lanes:
        return self._binary("and", "", other)

    def __or__(self, other: Lanes | int) -> Lanes:
        return self._binary("or", "", other)

    def __xor__(self, other: Lanes | int) -> Lanes:
        return self._binary("xor", "", other)

    def __invert__(self) -> Lanes:
        return self ^ -1

    def __lshift__(self, count: Lanes | int) -> Lanes:
        return self._binary("shl", "", count)

    def __rshift__(self, count: Lanes | int) -> Lanes:
        return self._binary("ashr", "", count)

    def unsigned_shift(self, count: Lanes | int) -> Lanes:
        """Shift right, with zeros from the left."""
        return self._binary("lshr", "", count)

    def compare(self, op: str, other: Lanes | float) -> Lanes:
        """Compare by a predicate such as `icmp ult` or `fcmp uno`."""
        return Lanes(self.e, self.e.compare(op, self.register, self.like(other).register))

    def __lt__(self, other: Lanes | float) -> Lanes:
        return self.compare("fcmp olt" if self.kind.is_float else "icmp slt", other)

    def __le__(self, other: Lanes | float) -> Lanes:
        return self.compare("fcmp ole" if self.kind.is_float else "icmp sle", other)

    def __gt__(self, other: Lanes | float) -> Lanes:
        return self.compare("fcmp ogt" if self.kind.is_float else "icmp sgt", other)

    def __ge__(self, other: Lanes | float) -> Lanes:
        return self.compare("fcmp oge" if self.kind.is_float else "icmp sge", other)

    def equals(self, other: Lanes | float) -> Lanes:
        """Compare; nothing equals NaN."""
        return self.compare("fcmp oeq" if self.kind.is_float else "icmp eq", other)

    def differs(self, other: Lanes | float) -> Lanes:
        """Compare; NaN differs from everything."""
        return self.compare("fcmp une" if self.kind.is_float else "icmp ne", other)

    @property
    def is_nan(self) -> Lanes:
        """The lanes that are NaN."""
        return self.compare("fcmp uno", self)

    def convert(self, op: str, scalar: str) -> Lanes:
        """Emit a conversion, as `sext` or `fptrunc`."""
        return Lanes(self.e, self.e.convert(op, self.register, scalar))

    @property
    def bits(self) -> Lanes:
        """The bits of floats as integers."""
        return self.convert("bitcast", self.format.integer)

    def floats(self, form: Format) -> Lanes:
        """Return the floats whose bits these integers are."""
        return self.convert("bitcast", form.scalar)

    def intrinsic(self, name: str, *others: Lanes | float) -> Lanes:
        """Call an intrinsic of one type."""
        return Lanes(self.e, self.e.intrinsic(name, self.register, *(self.like(o).register for o in others)))

    def __abs__(self) -> Lanes:
        return self.intrinsic("fabs")

    def signed_as(self, other: Lanes) -> Lanes:
        """Return the magnitudes with the signs of `other` (copysign)."""
        return self.intrinsic("copysign", other)

    @property
    def sqrt(self) -> Lanes:
        """The square root."""
        return self.intrinsic("sqrt")


def where(condition: Lanes, a: Lanes | float, b: Lanes | float) -> Lanes:
    """Return `a` where the condition is true, else `b`; one of both may be a number."""
    model = a if isinstance(a, Lanes) else b
    if not isinstance(model, Lanes):
        raise TypeError("one branch must be lanes")
    e = condition.e
    return Lanes(e, e.select(condition.register, model.like(a).register, model.like(b).register))


def fma(a: Lanes, b: Lanes | float, c: Lanes | float) -> Lanes:
    """Return a * b + c, rounded once."""
    return a.intrinsic("fma", b, c)


def clamped(x: Lanes, low: float, high: float) -> Lanes:
    """Return the nearest numbers within bounds; NaN stays NaN."""
    x = where(x > high, high, x)
    return where(x < low, low, x)


def polynomial(x: Lanes, coefficients: Sequence[float]) -> Lanes:
    """Return the value of a polynomial, lowest coefficient first, by Horner's rule."""
    *rest, last = coefficients
    total = x.like(last)
    for c in reversed(rest):
        total = fma(total, x, c)
    return total


def rounded(x: Lanes, factor: float) -> tuple[Lanes, Lanes]:
    """Return the integer nearest to x * factor, below 2**21, as a float and as an integer."""
    form = x.format
    shifted = fma(x, factor, form.magic)
    return shifted - form.magic, shifted.bits - form.pattern(form.magic)


def as_floats(n: Lanes, form: Format) -> Lanes:
    """Convert small integers of the same width, without an instruction for the conversion."""
    return (n + form.pattern(form.magic)).floats(form) - form.magic


def power_of_two(n: Lanes, form: Format) -> Lanes:
    """Return 2**n, for the exponents of normal numbers."""
    return ((n + form.bias) << form.fraction).floats(form)


def scaled(x: Lanes, n: Lanes) -> Lanes:
    """Return x * 2**n, rounded once, where half of `n` is an exponent of normal numbers."""
    if x.kind == _WIDE:
        return _scaled_wide(x, as_floats(n, x.format))
    half = n >> 1
    return x * power_of_two(half, x.format) * power_of_two(n - half, x.format)


def _scaled_wide(x: Lanes, n: Lanes) -> Lanes:
    """Return x * 2**n by an instruction of AVX-512, the only one with vectors of 16 floats."""
    e = x.e
    every, usual = e.constant(Kind("i16"), -1), e.constant(Kind("i32"), _CURRENT_ROUNDING)
    name = "llvm.x86.avx512.mask.scalef.ps.512"
    return Lanes(e, e.call(name, x.kind, x.register, n.register, x.register, every, usual))


def sum_of(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return the rounded sum and its error, if |a| >= |b| or a is 0."""
    total = a + b
    return total, b - (total - a)


def exact_sum_of(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """Return the rounded sum and its error, for any magnitudes; the error of an infinite sum is NaN."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def product_of(a: Lanes, b: Lanes | float) -> tuple[Lanes, Lanes]:
    """Return the rounded product and its error."""
    product = a * b
    return product, fma(a, b, -product)


class Long(NamedTuple):
    """An unevaluated sum of two numbers of one type, with the digits of both (double-double)."""

    high: Lanes
    low: Lanes

    def times(self, other: Long | tuple[float, float]) -> Long:
        """Return the product with another sum of two numbers."""
        product, lost = product_of(self.high, other[0])
        return Long(product, fma(self.high, other[1], fma(self.low, other[0], lost)))
