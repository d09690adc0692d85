"""Floats of at most 8 bits: decoding, and encoding with rounding.

A code is the low bits of a byte: a sign, an exponent and a fraction. Formats differ in the bias, and in the
codes of infinity and NaN. float8e8m0 is only an exponent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from sabir.compilation.backends.cpu.emit.lanes import DOUBLE, FLOAT, Lanes, where

if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGN, _MAGNITUDE = 1 << 31, (1 << 31) - 1  # of the bits of a float
_NAN = 0x7FC00000
_INFINITY = 0x7F800000
EXPONENTS = "float8e8m0"
_EXPONENT_BIAS, _MOST_EXPONENT, _NO_EXPONENT = 127, 254, 255


class SmallFloat(NamedTuple):
    """A format with a sign; `most` is the code of the greatest number.

    `beyond` is the kind of special codes: `ieee` has infinity and NaN, `nan` a NaN of each sign, `unsigned`
    one NaN at the code of -0. `none` has none of them: infinity becomes the greatest number, and NaN the zero
    with the opposite sign.
    """

    bits: int
    fraction: int
    bias: int
    most: int
    beyond: Literal["ieee", "nan", "unsigned", "none"]

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << self.bits - 1

    @property
    def shift(self) -> int:
        """The bits that the fraction of a float has more."""
        return FLOAT.fraction - self.fraction


SMALL_FLOATS: Mapping[str, SmallFloat] = {
    "float8e4m3fn": SmallFloat(8, 3, 7, 0x7E, "nan"),
    "float8e4m3fnuz": SmallFloat(8, 3, 8, 0x7F, "unsigned"),
    "float8e5m2": SmallFloat(8, 2, 15, 0x7B, "ieee"),
    "float8e5m2fnuz": SmallFloat(8, 2, 16, 0x7F, "unsigned"),
    "float6e2m3": SmallFloat(6, 3, 1, 0x1F, "none"),
    "float6e3m2": SmallFloat(6, 2, 3, 0x1F, "none"),
    "float4e2m1": SmallFloat(4, 1, 1, 0x7, "none"),
}


def decoded(code: Lanes, form: SmallFloat) -> Lanes:
    """Return the floats that codes represent, exactly.

    No intermediate number is subnormal as a float: on many processors these are very slow.
    """
    code = code.convert("zext", "i32")
    magnitude = code & form.sign - 1
    bits = (magnitude << form.shift) + (FLOAT.bias - form.bias << FLOAT.fraction)
    next_exponent = (bits + (1 << FLOAT.fraction)).floats(FLOAT)
    bits = where(magnitude < 1 << form.fraction, (next_exponent - 2.0 ** (1 - form.bias)).bits, bits)
    if form.beyond in {"ieee", "nan"}:
        bits = where(magnitude > form.most, _NAN, bits)
    if form.beyond == "ieee":
        bits = where(magnitude.equals(form.most + 1), _INFINITY, bits)
    bits |= (code & form.sign) << 32 - form.bits
    if form.beyond == "unsigned":
        bits = where(code.equals(form.sign), _NAN | _SIGN, bits)
    return bits.floats(FLOAT)


def encoded(x: Lanes, form: SmallFloat) -> Lanes:
    """Return the codes of floats, rounded to nearest, ties to even; out of range they are infinity or NaN."""
    bits = x.bits
    magnitude = bits & _MAGNITUDE
    code = where(abs(x) < 2.0 ** (1 - form.bias), _counted(abs(x), form), _cut(magnitude, form))
    is_beyond, is_nan = code > form.most, magnitude > _INFINITY
    sign = bits.unsigned_shift(32 - form.bits) & form.sign
    match form.beyond:
        case "unsigned":
            signed = where(code.equals(0), code, code | sign)
            return where(is_beyond | is_nan, form.sign, signed).convert("trunc", "i8")
        case "none":
            code = where(is_nan, form.sign, where(is_beyond, form.most, code))
            return (code ^ sign).convert("trunc", "i8")
        case "nan":
            code = where(is_beyond | is_nan, form.most + 1, code)
        case "ieee":
            code = where(is_nan, form.most + 3, where(is_beyond, form.most + 1, code))
    return (code | sign).convert("trunc", "i8")


def _cut(magnitude: Lanes, form: SmallFloat) -> Lanes:
    """Return the codes of normal numbers, from the bits of floats."""
    odd = magnitude.unsigned_shift(form.shift) & 1
    near = (magnitude + odd + ((1 << form.shift - 1) - 1)).unsigned_shift(form.shift)
    return near - (FLOAT.bias - form.bias << form.fraction)


def _counted(x: Lanes, form: SmallFloat) -> Lanes:
    """Return the codes of subnormal numbers, multiples of one step: a float addition rounds them."""
    steps = 2.0 ** (1 - form.bias - form.fraction + FLOAT.fraction)
    return (x + steps).bits - FLOAT.pattern(steps)


def power_decoded(code: Lanes) -> Lanes:
    """Return the powers of two that bytes of float8e8m0 represent, as floats."""
    code = code.convert("zext", "i32")
    bits = where(code.equals(0), 1 << FLOAT.fraction - 1, code << FLOAT.fraction)
    return where(code.equals(_NO_EXPONENT), _NAN, bits).floats(FLOAT)


def power_encoded(x: Lanes) -> Lanes:
    """Return doubles as float8e8m0, rounded up to a power of two; NaN if out of range."""
    bits = x.bits
    up = (bits + ((1 << DOUBLE.fraction) - 1)) >> DOUBLE.fraction  # a negative number remains negative
    code = up - (DOUBLE.bias - _EXPONENT_BIAS)
    fits = (code >= 0) & (code <= _MOST_EXPONENT) & (x > 0.0)
    return where(fits, code, _NO_EXPONENT).convert("trunc", "i8")
