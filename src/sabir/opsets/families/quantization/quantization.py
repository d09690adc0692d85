"""Linear quantization: `y = saturate(round(x / scale) + zero)`, and back `(y - zero) * scale`.

A scale and its zero point apply to the whole tensor (one element), to each index of an axis (a vector), or to
each block of an axis (a tensor of the same rank with one element for each block). NaN becomes the least
integer, as in onnxruntime; the standard does not define it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.elements import BFLOAT16, DOUBLE, FLOAT, FLOAT8E8M0, FLOAT16, element
from sabir.ir import TensorType, ceil_div, is_one, may_be_equal
from sabir.opsets.families.numbers.casting import converted
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.shapes.ranks import (
    check_alike,
    check_broadcast,
    check_one,
    check_rank,
    check_shape,
)
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.schema import FLOATS, Attribute, Unconvertible, at_least, tensors

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Dim, Shape, Value
    from sabir.opsets.typing import Array
    from sabir.schema import Version

_HALVES = {FLOAT16, BFLOAT16}
PRECISIONS = FLOATS | tensors("bfloat16")  # the types in which a quotient can be computed
AXIS = Attribute("axis", "int", "The axis along which scales differ, if they do.", default=1)
BLOCK_SIZE = Attribute(
    "block_size",
    "int",
    "The number of elements along `axis` that share a scale; 0: no blocks.",
    default=0,
    values=at_least(0),
)
_EXACT_IN_FLOAT = float(1 << 24)  # integers up to here are exact in float32
_LEAST_STEP = 64  # of the inner dimension of a product; BLAS is slow with less
_BLOCK = 1 << 17  # elements that are quantized at a time, so that they stay in the cache
_NARROW = 16  # bits: such integers and their differences are exact in float32


def spread(parameter: Array, shape: tuple[int, ...], axis: int, block_size: int) -> Array:
    """Return a scale or zero point so that it broadcasts to a tensor of this shape."""
    if parameter.size == 1:
        return parameter.reshape(())
    if parameter.ndim == 1 and not (block_size and len(shape) == 1):
        axis = axis_in(axis, len(shape))
        if len(parameter) != shape[axis]:
            raise ValueError(f"{len(parameter)} scales do not match axis {axis} of a tensor {list(shape)}")
        return parameter.reshape(-1, *(1,) * (len(shape) - 1 - axis))
    axis = axis_in(axis, len(shape))
    blocks = -(-shape[axis] // block_size) if block_size > 0 else None
    if parameter.shape != (*shape[:axis], blocks, *shape[axis + 1 :]):
        raise ValueError(
            f"scales of shape {list(parameter.shape)} do not match {list(shape)} in blocks of {block_size} "
            f"along axis {axis}"
        )
    each = np.repeat(parameter, block_size, axis=axis)
    return each[(slice(None),) * axis + (slice(shape[axis]),)]


def precision_of(x: ElementType, scale: ElementType, wanted: int = 0) -> ElementType:
    """Return the type to divide in: `wanted` if it is set, else the type of the scale.

    A power of two (float8e8m0) does not change the precision of `x`; integers are divided exactly.
    """
    if wanted:
        return element(wanted)
    if scale is FLOAT8E8M0:
        return x if x.is_float else FLOAT
    return scale if scale.is_float else DOUBLE


def quantized(
    x: Array, scale: Array, zero: Array | None, to: ElementType, precision: ElementType, *,
    saturate: bool = True,
) -> Array:  # fmt: skip
    """Return `x / scale + zero` in the type `to`; scale and zero point must broadcast to `x`."""
    if x.size > _BLOCK and not scale.ndim and (zero is None or not zero.ndim):
        flat: Array = x.reshape(-1)
        y: Array = np.empty(x.size, to.dtype)
        for first in range(0, x.size, _BLOCK):
            part = slice(first, first + _BLOCK)
            y[part] = quantized(flat[part], scale, zero, to, precision, saturate=saturate)
        return y.reshape(x.shape)
    q = _quotient(x, scale, precision)
    if not to.is_integer:
        if zero is not None:
            q += zero.astype(q.dtype)
        return converted(q, to, saturate=saturate)
    np.rint(q, out=q)
    return saturated(q, zero, to)


def saturated(q: Array, zero: Array | None, to: ElementType) -> Array:
    """Return integers in a float array plus a zero point as integers of type `to`; overwrites `q`."""
    if zero is not None:
        q += zero.astype(q.dtype)  # exact inside the range of `to`; only numbers far outside are rounded
    least = -(1 << to.bits - 1) if to.is_signed else 0
    np.clip(q, least, least + (1 << to.bits) - 1, out=q)
    missing = np.isnan(q)
    if missing.any():
        q[missing] = least
    return q.astype(np.int32).astype(to.dtype) if to.is_packed else q.astype(to.dtype)


def _quotient(x: Array, scale: Array, precision: ElementType) -> Array:
    wide = np.float64 if precision is DOUBLE else np.float32
    q: Array = np.empty(x.shape, wide)
    np.divide(_rounded(x, precision).astype(wide, copy=False), _rounded(scale, precision).astype(wide), out=q)
    return q.astype(precision.dtype).astype(wide) if precision in _HALVES else q


def _rounded(x: Array, precision: ElementType) -> Array:
    return x.astype(precision.dtype, copy=False) if precision in _HALVES else x


def dequantized(x: Array, scale: Array, zero: Array | None, to: ElementType) -> Array:
    """Return `(x - zero) * scale`, multiplied in float32 and rounded once to the type `to`."""
    y: Array = np.empty(x.shape, np.float32)
    np.multiply(centred(x, zero).astype(np.float32, copy=False), scale.astype(np.float32), out=y)
    return y.astype(to.dtype, copy=False)


def centred(x: Array, zero: Array | None) -> Array:
    """Return `x - zero` exactly: 32-bit integers as int64, others as float32."""
    wide = np.float32 if element(x.dtype).bits <= _NARROW else np.int64
    y: Array = x.astype(wide)
    if zero is None:
        return y
    centre = zero.astype(wide)
    return np.subtract(y, centre, out=y) if y.shape else np.asarray(y - centre)


# ---------------------------------------------------------------- products of quantized numbers


def exact_kind(most: float) -> type[np.float32 | np.float64]:
    """Return the float type in which sums of integers up to `most` are exact.

    BLAS multiplies floats many times faster than numpy multiplies integers.
    """
    return np.float32 if most <= _EXACT_IN_FLOAT else np.float64


def largest(x: Array, axis: int | tuple[int, ...] = ()) -> float:
    """Return the greatest magnitude, or the greatest sum of magnitudes along some axes."""
    if not axis:
        return max(float(x.max(initial=0)), -float(x.min(initial=0)))
    return float(np.maximum.reduce(np.add.reduce(np.abs(x), axis=axis), axis=None, initial=0))


def exact_matmul(a: Array, b: Array) -> Array:
    """Return the exact `a @ b` of integers in float arrays, as integers in a float array."""
    kind = exact_kind(largest(a) * largest(b, -2 if b.ndim > 1 else 0))
    if kind is a.dtype.type or a.ndim == 0 or b.ndim == 0:
        return np.asarray(matmul(a.astype(kind, copy=False), b.astype(kind, copy=False)))
    step = max(_LEAST_STEP, _BLOCK * a.shape[-1] // max(1, a.size, b.size))
    y = _part_of_product(a, b, slice(0, step), kind)
    for first in range(step, a.shape[-1], step):  # so that the wider copies of the operands are small
        y += _part_of_product(a, b, slice(first, first + step), kind)
    return y


def _part_of_product(a: Array, b: Array, inner: slice, kind: type[np.float32 | np.float64]) -> Array:
    rows = b[inner] if b.ndim == 1 else b[..., inner, :]
    return np.asarray(matmul(a[..., inner].astype(kind), rows.astype(kind)))


def wrapped(y: Array) -> Array:
    """Return integers in a float array as int32, with overflow wrapping around."""
    row: Array = y.reshape(-1)
    whole: Array = np.empty(row.shape, np.int32)
    for first in range(0, row.size, _BLOCK):
        whole[first : first + _BLOCK] = row[first : first + _BLOCK].astype(np.int64)
    return whole.reshape(y.shape)


def along_rows(name: str, parameter: Array, matrix: Array) -> Array:
    """Return a scale or zero point, possibly one for each row, so that it broadcasts to `matrix`."""
    check_rows(name, parameter, matrix)
    if parameter.size == 1:
        return parameter.reshape(())
    return parameter[:, None] if parameter.ndim == 1 else parameter


def along_columns(name: str, parameter: Array, matrix: Array) -> Array:
    """Return a scale or zero point, possibly one for each column, so that it broadcasts to `matrix`."""
    check_columns(name, parameter, matrix)
    return parameter.reshape(()) if parameter.size == 1 else parameter


def along_filters(name: str, parameter: Array, w: Array) -> Array:
    """Return a scale or zero point, possibly one for each filter, so that it broadcasts to `w` (M, ...)."""
    check_filters(name, parameter, len(w))
    return parameter.reshape(()) if parameter.size == 1 else parameter.reshape(-1, *(1,) * (w.ndim - 1))


def requantized(y: Array, factor: Array, zero: Array, to: ElementType) -> Array:
    """Return `y * factor + zero` as `to`, rounded before the zero point is added; may overwrite `y`."""
    q: Array = y if y.dtype == np.float32 else y.astype(np.float32)
    np.multiply(q, factor, out=q)
    if to.is_integer:
        return saturated(np.rint(q, out=q), zero, to)
    return converted(q + zero.astype(np.float32), to)


# ---------------------------------------------------------------- types and shapes


def require_types(older: Version, *inputs: Value | None) -> None:
    """Raise Unconvertible if an older version does not admit the type of an operand."""
    for port, value in zip(older.inputs, inputs, strict=False):
        signature = value.type.signature if value is not None and isinstance(value.type, TensorType) else None
        if signature is not None and signature not in port.allowed:
            raise Unconvertible(f"{older} does not admit {signature} for {port.name!r}")


def check_parameter(x: TensorType, parameter: TensorType | None, axis: int, block_size: int) -> None:
    """Raise InferenceError if a scale or zero point does not match the shape of `x`."""
    if parameter is None or x.shape is None or not parameter.shape or parameter.size == 1:
        return
    if len(parameter.shape) == 1 and not (block_size and len(x.shape) == 1):
        length = parameter.shape[0]
        if is_one(length) is False:
            _check_equal(x, parameter, length, x.shape[axis_in(axis, len(x.shape))])
        return
    axis = axis_in(axis, len(x.shape))
    if len(parameter.shape) != len(x.shape) or block_size < 0 or (parameter.is_static and not block_size):
        raise InferenceError(f"scales {parameter} do not match {x} in blocks of {block_size}")
    for i, (dim, length) in enumerate(zip(parameter.shape, x.shape, strict=True)):
        if block_size and parameter.is_static:
            _check_equal(x, parameter, dim, ceil_div(length, block_size) if i == axis else length)


def check_pair(scale: TensorType | Array, zero: TensorType | Array | None) -> None:
    """Raise InferenceError if scale and zero point differ in shape, unless each has one element."""
    if zero is not None and not scale.size == zero.size == 1:
        check_alike(["the scale", "the zero point"], [scale, zero])


def check_rows(name: str, parameter: TensorType | Array | None, matrix: TensorType | Array) -> None:
    """Raise InferenceError unless a parameter has one element, or one for each row of (..., M, K).

    The latter is (M), or (..., M, 1) with the rank of the matrix.
    """
    if _is_several(parameter) and matrix.shape is not None:
        if parameter is not None and len(parameter.shape or ()) == 1 < len(matrix.shape):
            check_shape(name, parameter, matrix.shape[-2])
        else:
            _check_stack(name, parameter, matrix.shape, (*matrix.shape[:-1], 1))


def check_columns(name: str, parameter: TensorType | Array | None, matrix: TensorType | Array) -> None:
    """Raise InferenceError unless a parameter has one element, or one for each column of (..., K, N).

    The latter is (N), or (..., 1, N) with the rank of the matrix.
    """
    if _is_several(parameter) and matrix.shape is not None:
        if parameter is not None and len(parameter.shape or ()) == 1 < len(matrix.shape):
            check_shape(name, parameter, matrix.shape[-1])
        else:
            _check_stack(name, parameter, matrix.shape, (*matrix.shape[:-2], 1, *matrix.shape[-1:]))


def check_filters(name: str, parameter: TensorType | Array | None, filters: Dim) -> None:
    """Raise InferenceError unless a parameter has one element, or one for each filter."""
    if _is_several(parameter):
        check_shape(name, parameter, filters)


def _is_several(parameter: TensorType | Array | None) -> bool:
    return parameter is not None and not may_be_equal(parameter.size, 1)


def _check_stack(name: str, parameter: TensorType | Array | None, matrix: Shape, target: Shape) -> None:
    if len(matrix) < 2:  # ruff: ignore[magic-value-comparison]  a matrix
        check_one(name, parameter)
    check_rank(name, parameter, len(matrix))
    check_broadcast(name, parameter, target)


def _check_equal(x: TensorType, parameter: TensorType, found: Dim, needed: Dim) -> None:
    if not may_be_equal(found, needed):
        raise InferenceError(f"scales {parameter} do not match {x}: {found} is not {needed}")
