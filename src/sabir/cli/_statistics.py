"""Statistics of the elements of a tensor, as `sabir show --weights` and `sabir run` report them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from sabir.ir import Array

_BLOCK = 1 << 22  # elements whose statistics are computed at a time, so that a mapped tensor stays mapped


class Statistics(NamedTuple):
    """Statistics of the elements of one tensor; `minimum` to `mean` are over its `finite` elements."""

    minimum: float | None
    maximum: float | None
    mean: float | None
    finite: int
    zeros: int
    nans: int


def statistics_of(array: Array) -> Statistics | None:
    """Return the statistics of an array of numbers; None for texts and complex numbers."""
    if array.dtype.kind in "OUSc":
        return None
    flat = array.reshape(-1)
    least, most, total, count, zeros, nans = np.inf, -np.inf, 0.0, 0, 0, 0
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK].astype(np.float64)
        finite = block[np.isfinite(block)]
        zeros += int(np.count_nonzero(block == 0))
        nans += int(np.count_nonzero(np.isnan(block)))
        if finite.size:
            least, most = min(least, float(finite.min())), max(most, float(finite.max()))
            with np.errstate(over="ignore"):
                total += float(finite.sum())
            count += finite.size
    if not count:
        return Statistics(None, None, None, 0, zeros, nans)
    return Statistics(least, most, total / count, count, zeros, nans)
