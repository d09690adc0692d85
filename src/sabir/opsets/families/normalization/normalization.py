"""Normalisations: means and variances over some axes, and the elements normalised by them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.elements import DOUBLE, FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.families.numbers.sums import summed, sums_of_squares
from sabir.opsets.families.shapes.ranks import check_least_rank, check_rank
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.schema import BFLOAT16, FLOATS, Attribute, element_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Dim
    from sabir.opsets.typing import Array

STASHES = element_types(FLOATS | BFLOAT16)  # the types in which a normalisation can be computed
EPSILON = Attribute("epsilon", "float", "Added to the variance, so that it is not 0.", default=1e-05)
_PARAMETERS = "scale", "B", "mean", "var"
_BLOCK = 1 << 18  # bytes of input that are normalised at a time, so that they stay in the cache


def common_type(x: ElementType, scale: ElementType) -> ElementType:
    """Return the element type in which a tensor is scaled by a scale that may have another type."""
    if x is scale:
        return x
    return DOUBLE if DOUBLE in {x, scale} else FLOAT


class Moments(NamedTuple):
    """A mean and a variance for each channel, or for each position that was not averaged over."""

    mean: Array
    variance: Array

    def updated(self, batch: Moments, momentum: float) -> tuple[Array, Array]:
        """Return the running statistics after a batch, in the element types of `self`."""
        mean, variance = (
            (old.astype(np.float64) * momentum + new.reshape(old.shape) * (1 - momentum)).astype(old.dtype)
            for old, new in zip(self, batch, strict=True)
        )
        return mean, variance


def statistics(x: Array, axes: Sequence[int]) -> Moments:
    """Return mean and population variance of `x` over some axes."""
    count = math.prod(x.shape[a] for a in axes)
    mean = summed(x, axes, keepdims=True, dtype=np.dtype(np.float64)) / np.float64(count)
    spread = summed(np.square(x - mean), axes) / np.float64(count)
    return Moments(mean.reshape(spread.shape), spread)


def scaled(x: Array, moments: Moments, scale: Array, bias: Array, epsilon: float) -> Array:
    """Return `(x - mean) / sqrt(variance + epsilon) * scale + bias`, as one multiplication and one addition.

    All but `x` (N, C, ...) have one element for each channel, or one for each position of an item.
    """
    factor = scale.astype(np.float64) / np.sqrt(moments.variance.astype(np.float64) + epsilon)
    shift = bias.astype(np.float64) - moments.mean.astype(np.float64) * factor
    wide = widened(x)
    y = wide * over_positions(factor, wide)
    y += over_positions(shift, wide)
    return y.astype(x.dtype, copy=False)


def stashed(x: Array, stash: np.dtype[Any]) -> Array:
    """Return `x` rounded to the type to normalise in; 16-bit floats are then widened to float32."""
    return widened(x.astype(stash, copy=False))


def standardized(rows: Array, epsilon: float) -> Array:
    """Return the rows of a matrix minus their mean, divided by `sqrt(variance + epsilon)`."""
    y = np.empty_like(rows)
    count = rows.dtype.type(rows.shape[1])
    for part in _parts(rows):
        deviation = np.subtract(rows[part], summed(rows[part], 1, keepdims=True) / count, out=y[part])
        variance = summed(np.square(deviation), 1, keepdims=True) / count
        deviation /= np.sqrt(variance + rows.dtype.type(epsilon))
    return y


class Normalized(NamedTuple):
    """Normalised rows of a matrix, and their statistics as columns."""

    rows: Array
    mean: Array
    inverse: Array  # 1 / sqrt(variance + epsilon)


def normalized(rows: Array, epsilon: float) -> Normalized:
    """Return the rows of a matrix with zero mean and unit variance, and the statistics of each."""
    count = np.float32(rows.shape[1])
    mean = summed(rows, 1, keepdims=True) / count
    y = computed(np.subtract, rows, mean)
    variance = sums_of_squares(y) / count
    inverse = 1 / np.sqrt(variance + np.float32(epsilon))
    y *= inverse
    return Normalized(y, mean, inverse)


def normalized_by_squares(rows: Array, epsilon: float) -> Normalized:
    """Return the rows of a matrix divided by `sqrt(mean(row ** 2) + epsilon)`; no mean is subtracted."""
    inverse = 1 / np.sqrt(sums_of_squares(rows) / np.float32(rows.shape[1]) + np.float32(epsilon))
    return Normalized(computed(np.multiply, rows, inverse), np.zeros_like(inverse), inverse)


def of_unit_mean_square(rows: Array, epsilon: float) -> Array:
    """Return the rows of a matrix divided by `sqrt(mean(row ** 2) + epsilon)`."""
    y = np.empty_like(rows)
    count = rows.dtype.type(rows.shape[1])
    for part in _parts(rows):
        mean = summed(np.square(rows[part]), 1, keepdims=True) / count
        np.divide(rows[part], np.sqrt(mean + rows.dtype.type(epsilon)), out=y[part])
    return y


def _parts(rows: Array) -> Iterator[slice]:
    """Yield blocks of rows that fit into the cache."""
    step = max(1, _BLOCK // max(1, rows.shape[1] * rows.itemsize))
    return (slice(first, first + step) for first in range(0, len(rows) if rows.size else 0, step))


def over_positions(parameter: Array, x: Array) -> Array:
    """Return a parameter per channel, or per position, so that it broadcasts to `x` (N, C, ...)."""
    spread = (1,) * max(0, x.ndim - 1 - parameter.ndim)
    return parameter.reshape(*parameter.shape, *spread).astype(x.dtype)


def channels(x: TensorType | Array, *parameters: TensorType | Array) -> Dim:
    """Return the number of channels of `x` (N, C, ...), which each 1-D parameter must have as its length."""
    check_least_rank("X", x, 1)
    for name, parameter in zip(_PARAMETERS, parameters, strict=False):
        check_rank(name, parameter, 1)
    dims: list[Dim] = [p.shape[0] for p in parameters if p.shape is not None]
    if x.shape is not None:  # a 1-D input has one channel
        dims.insert(0, x.shape[1] if len(x.shape) > 1 else 1)
    return same_dim(dims, "channels")


def normalized_type(x: TensorType, *parameters: TensorType) -> TensorType:
    """Return the type of `x` (N, C, ...), whose channels the parameters may determine."""
    count = channels(x, *parameters)
    return TensorType(x.element, x.shape and (*x.shape[:1], *(count,) * (len(x.shape) > 1), *x.shape[2:]))
