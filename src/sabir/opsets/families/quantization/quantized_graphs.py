"""Linear quantization in graphs of operators that every opset has, with the results of the evaluation.

An operand of 8 bits and its zero point are subtracted as floats, where the difference is exact, or as int32
for products of matrices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import UnsupportedError
from sabir.elements import DOUBLE, FLOAT, INT32, INT64
from sabir.ir import Tensor, TensorType
from sabir.opsets.families.equivalents.roundings import nearest
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import ints_of, shape_of, squeezed, unsqueezed
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from typing import Any

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import ShapedBuilder

_BYTE = 8  # bits
_MOST = 255  # the greatest difference of two numbers of 8 bits
_EXACT_IN_FLOAT = 1 << 24  # integers up to here are exact in float32


# ---------------------------------------------------------------- scales and zero points


def single(b: Builder, parameter: Value) -> Value:
    """Return a scale or zero point of one element as a scalar."""
    rank = parameter.type.rank if isinstance(parameter.type, TensorType) else None
    if rank is None:
        return b.Reshape(parameter, as_input(b, "scalar", []))
    return squeezed(b, parameter, range(rank))


def along(b: Builder, parameter: Value, axis: int, x: Value) -> Value:
    """Return a scale or zero point, one or one for each index of an axis, so that it broadcasts to `x`."""
    kind = parameter.type
    if isinstance(kind, TensorType) and kind.size == 1:
        return single(b, parameter)
    rank, own = len(shape_of("input", x)), len(shape_of("scale", parameter))
    if own > 1:
        raise Unconvertible("the scale differs by blocks, and older operators would have to repeat it")
    return unsqueezed(b, parameter, range(1, rank - axis_in(axis, rank))) if own else parameter


def rows(b: Builder, parameter: Value, matrix: Value) -> Value:
    """Return a scale or zero point, one or one for each row, so that it broadcasts to a product."""
    if isinstance(parameter.type, TensorType) and parameter.type.size == 1:
        return single(b, parameter)
    is_vector = len(shape_of("a_scale", parameter)) == 1 < len(shape_of("a", matrix))
    return unsqueezed(b, parameter, [1]) if is_vector else parameter


def columns(b: Builder, parameter: Value) -> Value:
    """Return a scale or zero point, one or one for each column, so that it broadcasts to a product."""
    if isinstance(parameter.type, TensorType) and parameter.type.size == 1:
        return single(b, parameter)
    return parameter


# ---------------------------------------------------------------- numbers


def centred(b: Builder, x: Value, zero: Value | None, to: ElementType) -> Value:
    """Return `x - zero` in a type in which it is exact."""
    wide = b.Cast(x, to=to.number)
    known = None if zero is None else ints_of(b, zero)
    if zero is None or (known is not None and not any(known)):
        return wide
    return b.Sub(wide, b.Cast(zero, to=to.number))


def dequantized(b: Builder, x: Value, scale: Value, zero: Value | None) -> Value:
    """Return `(x - zero) * scale` as float; scale and zero point broadcast to `x`."""
    if element_of(x).bits <= _BYTE:
        return b.Mul(centred(b, x, zero, FLOAT), scale)
    return b.Mul(b.Cast(centred(b, x, zero, INT64), to=FLOAT.number), scale)


def quantized(b: Builder, x: Value, scale: Value, zero: Value | None, to: ElementType) -> Value:
    """Return `x / scale + zero`, rounded before the sum, in a type of 8 bits; both broadcast to `x`."""
    wide = x if element_of(x) is FLOAT else b.Cast(x, to=FLOAT.number)
    return saturated(b, nearest(b, b.Div(wide, scale)), zero, to)


def saturated(b: Builder, q: Value, zero: Value | None, to: ElementType) -> Value:
    """Return integers in a float tensor plus a zero point, limited to a type of 16 bits or fewer."""
    least = -(1 << to.bits - 1) if to.is_signed else 0
    if zero is not None:
        q = b.Add(q, b.Cast(zero, to=FLOAT.number))
    limited = Numbers(b, FLOAT).clipped(q, float(least), float(least + (1 << to.bits) - 1))
    return b.Cast(limited, to=to.number)


def requantized(b: Builder, y: Value, factor: Value, zero: Value) -> Value:
    """Return `y * factor + zero` in the type of the zero point; `y` holds integers in a float tensor."""
    return saturated(b, nearest(b, b.Mul(y, factor)), single(b, zero), element_of(zero))


# ---------------------------------------------------------------- products


def product(b: Builder, a: Value, other: Value, a_zero: Value | None, b_zero: Value | None) -> Value:
    """Return the product of matrices of 8 bits minus their zero points, as int32."""
    left = centred(b, a, None if a_zero is None else rows(b, a_zero, a), INT32)
    right = centred(b, other, None if b_zero is None else columns(b, b_zero), INT32)
    return b.MatMul(left, right)


def convolution(
    b: Builder, x: Value, w: Value, x_zero: Value | None, w_zero: Value | None, **window: Any
) -> Value:
    """Return the convolution of tensors of 8 bits minus their zero points, in a float type that holds it."""
    kind = _kind_of_sums(b, w, w_zero)
    inputs = centred(b, x, None if x_zero is None else single(b, x_zero), kind)
    weights = centred(b, w, None if w_zero is None else along(b, w_zero, 0, w), kind)
    return b.Conv(inputs, weights, **window)


def _kind_of_sums(b: Builder, w: Value, zero: Value | None) -> ElementType:
    """Return float where all sums of products with the filters are exact in it, else double."""
    known = None if zero is None else ints_of(b, zero)
    if isinstance(w.constant, Tensor) and not w.is_input and (zero is None or known is not None):
        array = w.constant.array()
        least = np.array(known or [0], np.int16).reshape(-1, *(1,) * (array.ndim - 1))
        sums = np.abs(array.astype(np.int16) - least).sum(axis=tuple(range(1, array.ndim)), dtype=np.int64)
        return FLOAT if int(sums.max(initial=0)) * _MOST <= _EXACT_IN_FLOAT else DOUBLE
    _, *dims = shape_of("w", w)
    count = 1
    for dim in dims:
        if not isinstance(dim, int):
            return DOUBLE
        count *= dim
    return FLOAT if count * _MOST * _MOST <= _EXACT_IN_FLOAT else DOUBLE


def spread_axis(g: ShapedBuilder, scale: Value, axis: int, x: Value) -> Value:
    """Return the scales along an axis of `x` so that they broadcast to it; one scale stays as it is."""
    if not g.rank(scale) or g.shape(scale) == (1,):
        return scale
    rank = g.rank(x)
    after = [*range(1, rank - axis % rank)]
    return g.Unsqueeze(scale, after) if after else scale


def spread_blocks(g: ShapedBuilder, scale: Value, axis: int, block_size: int, x: Value) -> Value:
    """Return the scales of blocks along an axis of `x`, each repeated for the elements of its block.

    Raises UnsupportedError where the size of the axis is unknown.
    """
    shape = g.shape(x)
    size = None if shape is None else shape[axis]
    if not isinstance(size, int):
        raise UnsupportedError("a gradient of blocks needs the size of their axis, which is unknown")
    return g.Gather(scale, np.arange(size) // block_size, axis=axis)
