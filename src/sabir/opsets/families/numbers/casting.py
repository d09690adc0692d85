"""Conversion between all element types, on arrays and on known contents.

Where the standard leaves a result open, it is that of x86 processors and onnxruntime, on every machine: a
float outside the range of int32 or int64, or NaN, becomes the least integer, and other integers take the low
bits of the next wider conversion. Numbers become the shorter of fixed and scientific text with eight digits,
as in onnxruntime; text that is not a number raises ValueError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from sabir import schema as types
from sabir.base import quote
from sabir.elements import BOOL, FLOAT8E4M3FN, FLOAT8E4M3FNUZ, FLOAT8E5M2, FLOAT8E5M2FNUZ, FLOAT8E8M0, STRING
from sabir.ir import Expr, lower_bound
from sabir.opsets.families.numbers.arithmetic import as_dim, as_item
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Item
    from sabir.opsets.typing import Array
    from sabir.schema import Version

# the greatest finite values
FLOAT8 = {FLOAT8E4M3FN: 448.0, FLOAT8E4M3FNUZ: 240.0, FLOAT8E5M2: 57344.0, FLOAT8E5M2FNUZ: 57344.0}
_NATIVE = "biuf"  # numpy's numeric kinds; the rest are ml_dtypes and text
_E8M0_BIAS, _E8M0_MOST, _E8M0_NAN = 127, 254, 255
_HALF, _HALFWAY = 0.5, 0.75  # fractions that frexp returns for a power of two, and halfway to the next
_SINGLE, _DOUBLE = 32, 64  # bits
_SPECIAL = {"inf": "INF", "-inf": "-INF", "nan": "NaN", "-nan": "NaN"}


def admit_small_types(older: Version) -> Version:
    """Declare versions 19 to 24 of a conversion, which admit numbers of 8 and of 4 bits; return 24."""
    v19 = older.extend(
        19,
        "Admits the 8-bit floats, and `saturate` determines the result beyond their range.",
        attributes=[
            Attribute(
                "saturate",
                "int",
                "For 8-bit floats, beyond the range: 1 the greatest; 0 infinity or NaN.",
                default=1,
            )
        ],
        widen=dict.fromkeys(("T1", "T2"), types.FLOAT8),
    )
    return v19.widen_stepwise({21: types.INT4, 23: types.FLOAT4}, "T1", "T2").extend(
        24,
        "Admits float8e8m0, with `round_mode` for it.",
        attributes=[
            Attribute(
                "round_mode",
                "string",
                "For float8e8m0: `up`, `down`, or `nearest` with ties up.",
                default="up",
                values=one_of("up", "down", "nearest"),
            )
        ],
        widen=dict.fromkeys(("T1", "T2"), types.FLOAT8E8M0),
    )


def converted(x: Array, to: ElementType, *, saturate: bool = True, round_mode: str = "up") -> Array:
    """Return `x` with its elements as `to`; `saturate` concerns the 8-bit floats, `round_mode` float8e8m0."""
    if x.dtype == to.dtype:
        return x
    if x.dtype == STRING.dtype:
        return _parsed(x, to, saturate=saturate, round_mode=round_mode)
    if to is STRING:
        return _printed(x)
    source = _native(x)
    if to is BOOL:
        return source != 0
    if to.is_integer:
        return _whole(source, to)
    if to in FLOAT8:
        return _float8(source, to, saturate=saturate)
    if to is FLOAT8E8M0:
        return _float8e8m0(source, saturate=saturate, round_mode=round_mode)
    return source.astype(np.int8 if source.dtype == np.bool_ else source.dtype, copy=False).astype(to.dtype)


def _native(x: Array) -> Array:
    """Return the numbers in a native numpy type: small floats as float32, small integers as int8 or uint8."""
    if x.dtype.kind in _NATIVE:
        return x
    if x.dtype in {np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.int2)}:
        return x.astype(np.int8)
    if x.dtype in {np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.uint2)}:
        return x.astype(np.uint8)
    return x.astype(np.float32)


# ---------------------------------------------------------------- integers


def _whole(x: Array, to: ElementType) -> Array:
    """Truncate floats toward zero, then keep the low bits."""
    if x.dtype.kind == "f":
        x = _cut(x, to)
    if to.dtype.kind in "iu":
        return x.astype(to.dtype)
    low = x.astype(np.uint8) & np.uint8((1 << to.bits) - 1)
    if to.is_signed:
        half = np.int8(1 << to.bits - 1)
        return ((low.astype(np.int8) ^ half) - half).astype(to.dtype)
    return low.astype(to.dtype)


def _cut(x: Array, to: ElementType) -> Array:
    """Return floats as integers of the width in which the processor converts them."""
    if to.bits == _DOUBLE and not to.is_signed:
        return _unsigned64(x)
    wide = to.bits == _DOUBLE or (to.bits == _SINGLE and not to.is_signed)
    return _signed(x, _DOUBLE if wide else _SINGLE)


def _signed(x: Array, bits: int) -> Array:
    """Return floats truncated toward zero as int32 or int64; the least integer for one out of range."""
    dtype = np.dtype(f"i{bits // 8}")
    least = np.iinfo(dtype).min
    limit = 2.0 ** (bits - 1)
    wide = x if x.dtype.itemsize * 8 >= bits else x.astype(np.float64)
    fits = (wide > -limit - 1) & (wide < limit)
    if fits.all():
        return wide.astype(dtype)
    return np.where(fits, np.where(fits, wide, 0).astype(dtype), dtype.type(least))


def _unsigned64(x: Array) -> Array:
    """Return floats as uint64; those from 2**63 on are converted by their distance from it."""
    wide, half = x.astype(np.float64), 2.0**63
    upper = wide >= half
    bits = _signed(np.where(upper, wide - half, wide), _DOUBLE).astype(np.uint64)
    return np.where(upper, bits ^ np.uint64(1 << 63), bits)


# ---------------------------------------------------------------- floats of eight bits


def _float8(x: Array, to: ElementType, *, saturate: bool) -> Array:
    wide = x.astype(np.float64 if x.dtype.kind != "f" else np.result_type(x, np.float32), copy=False)
    if saturate:
        most: float = FLOAT8[to]
        wide = np.clip(wide, -most, most)
    return wide.astype(to.dtype)


def _float8e8m0(x: Array, *, saturate: bool, round_mode: str) -> Array:
    """Round to a power of two. Zero, negatives and infinity have no code: they saturate or become NaN."""
    wide = x.astype(np.float64)
    fraction, exponent = np.frexp(wide)  # fraction in [0.5, 1): 0.5 for a power of two
    match round_mode:
        case "up":
            power = exponent - 1 + (fraction > _HALF)
        case "nearest":
            power = exponent - 1 + (fraction >= _HALFWAY)
        case _:
            power = exponent - 1
    code = power + _E8M0_BIAS
    code = np.where(wide == 0, -1, np.where(np.isinf(wide), _E8M0_NAN, code))
    if saturate:
        code = np.clip(code, 0, _E8M0_MOST)
    invalid = (code < 0) | (code > _E8M0_MOST) | np.isnan(wide) | (wide < 0)
    return np.where(invalid, _E8M0_NAN, code).astype(np.uint8).view(FLOAT8E8M0.dtype)


# ---------------------------------------------------------------- text


def _printed(x: Array) -> Array:
    allotted(x.shape, np.dtype(object), x.size)
    source = _native(x)
    if source.dtype.kind == "f":
        text = [_text_of(v) for v in source.ravel().tolist()]
    else:
        text = [str(int(v)) for v in source.ravel().tolist()]
    out: Array = np.empty(len(text), dtype=object)
    out[:] = text
    return out.reshape(x.shape)


def _text_of(value: float) -> str:
    text = f"{value:.8g}"
    return _SPECIAL.get(text, text)


def _parsed(x: Array, to: ElementType, **options: Any) -> Array:
    texts: list[str] = x.ravel().tolist()
    for text in texts:
        if "_" in text or not text.isascii():  # Python accepts both in a number
            raise ValueError(f"{quote(text)} is not a number")
    if to.is_integer:
        bits = [_integer_of(text) & 0xFFFFFFFFFFFFFFFF for text in texts]
        numbers = np.array(bits, np.uint64).reshape(x.shape)
    else:
        numbers = np.array([float(text) for text in texts], np.float64).reshape(x.shape)
    return converted(numbers, to, **options)


def _integer_of(text: str) -> int:
    """Return the integer in a text exactly, or a decimal number truncated."""
    try:
        return int(text)
    except ValueError:
        pass
    value = float(text)
    if not np.isfinite(value):
        raise ValueError(f"{text!r} has no integer value")
    return int(value)


# ---------------------------------------------------------------- known contents


def item_as(item: Item, to: ElementType) -> Item:
    """Return a known element, perhaps a symbol, converted to `to`; None where the result is unknown."""
    if to is BOOL:
        if isinstance(item, Expr):
            return True if (lower_bound(item) or 0) > 0 else None
        return bool(item) if isinstance(item, (int, float)) else None
    return as_item(as_dim(int(item) if isinstance(item, bool) else item), to)
