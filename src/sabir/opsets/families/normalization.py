"""Normalisations: means and variances over some axes, and what they make of each element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.ranks import check_least_rank, check_rank
from sabir.opsets.families.shapes import same_dim
from sabir.schema import BFLOAT16, FLOATS, element_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Dim, TensorType
    from sabir.opsets.typing import Array

STASHES = element_types(FLOATS | BFLOAT16)  # to normalise in
_PARAMETERS = "scale", "B", "mean", "var"
_BLOCK = 1 << 18  # bytes of input that are passed over while they are in the cache


class Statistics(NamedTuple):
    """A mean and a variance for each channel (or for whatever else was not averaged over)."""

    mean: Array
    variance: Array

    def moved(self, batch: Statistics, momentum: float) -> tuple[Array, Array]:
        """Return the running statistics after a batch, in the types of this one."""
        mean, variance = (
            (old.astype(np.float64) * momentum + new.reshape(old.shape) * (1 - momentum)).astype(old.dtype)
            for old, new in zip(self, batch, strict=True)
        )
        return mean, variance


def statistics(x: Array, axes: Sequence[int]) -> Statistics:
    """Return mean and population variance of `x` over some axes."""
    count = math.prod(x.shape[a] for a in axes)
    mean = np.add.reduce(x, axis=tuple(axes), dtype=np.float64, keepdims=True) / np.float64(count)
    spread = np.add.reduce(np.square(x - mean), axis=tuple(axes)) / np.float64(count)
    return Statistics(mean.reshape(spread.shape), spread)


def scaled(x: Array, known: Statistics, scale: Array, bias: Array, epsilon: float) -> Array:
    """Return `(x - mean) / sqrt(variance + epsilon) * scale + bias`, as one multiplication and one addition.

    All but `x` (N, C, ...) have one element for each channel, or one for each place of an item.
    """
    factor = scale.astype(np.float64) / np.sqrt(known.variance.astype(np.float64) + epsilon)
    shift = bias.astype(np.float64) - known.mean.astype(np.float64) * factor
    wide = widened(x)
    y = wide * over_places(factor, wide)
    y += over_places(shift, wide)
    return y.astype(x.dtype, copy=False)


def stashed(x: Array, stash: np.dtype[Any]) -> Array:
    """Return `x` as the type to normalise in holds it: a half is rounded to, and computed with as float32."""
    return widened(x.astype(stash, copy=False))


def standardized(rows: Array, epsilon: float) -> Array:
    """Return the rows of a matrix of floats with zero mean and unit variance, `epsilon` added to it."""
    y = np.empty_like(rows)
    count = rows.dtype.type(rows.shape[1])
    for part in _parts(rows):
        deviation = np.subtract(
            rows[part], np.add.reduce(rows[part], axis=1, keepdims=True) / count, out=y[part]
        )
        variance = np.add.reduce(np.square(deviation), axis=1, keepdims=True) / count
        deviation /= np.sqrt(variance + rows.dtype.type(epsilon))
    return y


def of_unit_mean_square(rows: Array, epsilon: float) -> Array:
    """Return the rows of a matrix of floats divided by `sqrt(mean(row ** 2) + epsilon)`."""
    y = np.empty_like(rows)
    count = rows.dtype.type(rows.shape[1])
    for part in _parts(rows):
        mean = np.add.reduce(np.square(rows[part]), axis=1, keepdims=True) / count
        np.divide(rows[part], np.sqrt(mean + rows.dtype.type(epsilon)), out=y[part])
    return y


def _parts(rows: Array) -> Iterator[slice]:
    """Yield blocks of rows that stay in the cache while they are passed over."""
    step = max(1, _BLOCK // max(1, rows.shape[1] * rows.itemsize))
    return (slice(first, first + step) for first in range(0, len(rows) if rows.size else 0, step))


def over_places(parameter: Array, x: Array) -> Array:
    """Return a parameter per channel, or per place, in the type of `x` (N, C, ...), fit to broadcast."""
    spread = (1,) * max(0, x.ndim - 1 - parameter.ndim)
    return parameter.reshape(*parameter.shape, *spread).astype(x.dtype)


def channels(x: TensorType | Array, *parameters: TensorType | Array) -> Dim:
    """Return the number of channels that `x` (N, C, ...) and parameters, 1-D of one element each, share."""
    check_least_rank("X", x, 1)
    for name, parameter in zip(_PARAMETERS, parameters, strict=False):
        check_rank(name, parameter, 1)
    dims: list[Dim] = [p.shape[0] for p in parameters if p.shape is not None]
    if x.shape is not None:  # a vector of items has one channel
        dims.insert(0, x.shape[1] if len(x.shape) > 1 else 1)
    return same_dim(dims, "channels")
