"""Casts between element types, equal to those of `sabir.opsets.families.numbers.casting`.

A float outside the range of int32 or int64, or NaN, becomes the least integer; narrower integers are the low
bits of such a conversion. A float outside the range of a small float becomes its infinity or NaN, if it has
one; float8e8m0 is rounded up. Truth values are i1 lanes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.lanes import FLOAT, Lanes, where
from sabir.compilation.backends.cpu.emit.small_floats import (
    EXPONENTS,
    SMALL_FLOATS,
    decoded,
    encoded,
    power_decoded,
    power_encoded,
)

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register

SMALL_INTEGERS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}  # their bits
_NARROW = frozenset({*SMALL_INTEGERS, *SMALL_FLOATS, EXPONENTS, "bfloat16"})
SCALARS = {
    "float": "float",
    "double": "double",
    "float16": "half",
    "bfloat16": "i16",
    **dict.fromkeys((*SMALL_INTEGERS, *SMALL_FLOATS, EXPONENTS), "i8"),
    "bool": "i1",
    **{f"{sign}int{bits}": f"i{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


def cast(e: Emitter, x: Register, source: str, target: str) -> Register:
    """Emit a conversion between two element types, by their names in `SCALARS`."""
    return _cast(Lanes(e, x), source, target).register


def same_bits(e: Emitter, x: Register, target: str) -> Register:
    """Emit the bits of elements as another type of the same width; a truth value is a byte."""
    if x.kind.scalar == "i1":
        x = e.convert("zext", x, "i8")
    scalar = SCALARS[target]
    return x if x.kind.scalar == scalar else e.convert("bitcast", x, scalar)


def _cast(x: Lanes, source: str, target: str) -> Lanes:
    scalar = SCALARS[target]
    if source == target:
        return x
    if source in _NARROW:
        return _cast(*_widened(x, source), target)
    if target in _NARROW:
        return _narrowed(x, source, target)
    if target == "bool":
        return x.differs(0)
    if x.kind.is_float:
        return _between_floats(x, scalar) if scalar in _FLOATS else _to_integer(x, target)
    unsigned = source == "bool" or source.startswith("u")
    if scalar == "half":  # integers above the precision of float are infinite in half
        return _cast(x, source, "float").convert("fptrunc", "half")
    if scalar in _FLOATS:
        return x.convert("uitofp" if unsigned else "sitofp", scalar)
    return _resized(x, scalar, unsigned=unsigned)


def _widened(x: Lanes, source: str) -> tuple[Lanes, str]:
    """Return elements of a storage type as bytes or floats, and the element type of the result."""
    if source in SMALL_INTEGERS:
        return _extended(x, source), "uint8" if source.startswith("u") else "int8"
    if source in SMALL_FLOATS:
        return decoded(x, SMALL_FLOATS[source]), "float"
    if source == EXPONENTS:
        return power_decoded(x), "float"
    return (_resized(x, "i32", unsigned=True) << _BRAIN).floats(FLOAT), "float"  # the upper half


def _narrowed(x: Lanes, source: str, target: str) -> Lanes:
    if target in SMALL_INTEGERS:
        byte = _cast(x, source, "uint8" if target.startswith("u") else "int8")
        return byte & (1 << SMALL_INTEGERS[target]) - 1
    if target == EXPONENTS:
        return power_encoded(_cast(x, source, "double"))
    wide = _cast(x, source, "float")
    return encoded(wide, SMALL_FLOATS[target]) if target in SMALL_FLOATS else _brain(wide)


def _extended(x: Lanes, source: str) -> Lanes:
    """Return integers of 2 or 4 bits as bytes."""
    sign = 1 << SMALL_INTEGERS[source] - 1
    low = x & 2 * sign - 1
    return low if source.startswith("u") else (low ^ sign) - sign


def _brain(x: Lanes) -> Lanes:
    """Return floats rounded to their upper half, ties to even; NaN keeps its sign."""
    bits = x.bits
    odd = bits.unsigned_shift(_BRAIN) & 1
    near = (bits + odd + ((1 << _BRAIN - 1) - 1)).unsigned_shift(_BRAIN)
    quiet = bits.unsigned_shift(_BRAIN) & 0x8000 | 0x7FC0
    return _resized(where(x.is_nan, quiet, near), "i16")


_BRAIN = 16  # bits that bfloat16 has less than float
_FLOATS = ("half", "float", "double")  # by size


def _resized(x: Lanes, scalar: str, *, unsigned: bool = False) -> Lanes:
    bits = x.kind.of(scalar).bits
    if bits == x.kind.bits:
        return x
    if bits < x.kind.bits:
        return x.convert("trunc", scalar)
    return x.convert("zext" if unsigned else "sext", scalar)


def _between_floats(x: Lanes, scalar: str) -> Lanes:
    if _FLOATS.index(scalar) > _FLOATS.index(x.kind.scalar):
        return x.convert("fpext", scalar)
    if (x.kind.scalar, scalar) == ("double", "half"):  # no processor does this in one step
        x = _rounded_to_odd(x)
    return x.convert("fptrunc", scalar)


def _rounded_to_odd(x: Lanes) -> Lanes:
    """Return doubles as floats that round to the same half: truncated, with the last bit set if inexact."""
    near = x.convert("fptrunc", "float")
    back = near.convert("fpext", "double")
    beyond = abs(back) > abs(x)
    cut = where(beyond, near.bits - 1, near.bits)
    inexact = (back < x) | (back > x)
    return where(inexact, cut | 1, cut).floats(near.format)


def _to_integer(x: Lanes, target: str) -> Lanes:
    if x.kind.scalar == "half":
        x = x.convert("fpext", "float")
    if target == "uint64":
        half = 2.0**63
        upper = x >= half
        low = _truncated(where(upper, x - half, x), 64)
        return where(upper, low ^ (1 << 63), low)
    return _resized(_truncated(x, 64 if target in {"int64", "uint32"} else 32), SCALARS[target])


def _truncated(x: Lanes, bits: int) -> Lanes:
    """Return floats as int32 or int64; the least integer for those out of range."""
    fits = abs(x) < 2.0 ** (bits - 1)
    return where(fits, where(fits, x, 0.0).convert("fptosi", f"i{bits}"), -(1 << bits - 1))
