"""Statistics of the elements of a tensor, and the types of values of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.elements import element
from sabir.ir import TensorType

if TYPE_CHECKING:
    from sabir.ir import Array

_BLOCK = 1 << 22  # elements whose statistics are computed at a time, so that a mapped tensor stays mapped


class Statistics(NamedTuple):
    """Statistics of the elements of one tensor; `minimum` to `mean` are over its `finite` elements.

    >>> statistics_of(np.float32([1, 3, np.nan])).mean
    2.0
    """

    minimum: float | None
    maximum: float | None
    mean: float | None
    finite: int
    zeros: int
    nans: int


def statistics_of(array: Array) -> Statistics | None:
    """Return the statistics of an array of numbers; None for texts and complex numbers.

    >>> statistics_of(np.array(['a'])) is None
    True
    """
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
            with np.errstate(over="ignore", invalid="ignore"):
                total += float(finite.sum())
            count += finite.size
    if not count:
        return Statistics(None, None, None, 0, zeros, nans)
    return Statistics(least, most, total / count, count, zeros, nans)


def type_text(value: Any) -> str:
    """Return the type of a value of a run: `float[1,10]`, `sequence of 3`, `map of 2`, `nothing`.

    >>> type_text(np.zeros((1, 10), np.float32))
    'float[1,10]'
    """
    match value:
        case None:
            return "nothing"
        case list():
            return f"sequence of {len(cast('list[Any]', value))}"
        case dict():
            return f"map of {len(cast('dict[Any, Any]', value))}"
        case _:
            array = np.asarray(value)
            return str(TensorType(element(array.dtype), array.shape))
