"""The range of an activation: what is observed in bounded memory, and which part of it integers cover."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Array

_BINS = 4096  # of a histogram; a multiple of 4, so that pairs of bins can be joined around 0
_LEAST_LIMIT = 2.0**-40  # of a histogram: smaller values count as 0
_CANDIDATES = np.linspace(0.3, 1.0, 71)  # parts of the observed range
_LEVELS = 256
_TINY = 1e-12  # a probability, so that no logarithm is infinite


class Quantized(NamedTuple):
    """The parameters of an activation: `(integer - zero) * scale` is the real number."""

    scale: np.float32
    zero: Any


@dataclass(frozen=True)
class RangeChoice:
    """How the range of an activation is chosen: the method, and whether it is symmetric around 0."""

    method: str
    percentile: float
    is_symmetric: bool

    def parameters(self, observed: Observed) -> Quantized:
        """Return scale and zero point: int8 around 0 where symmetric, else uint8."""
        low, high = self.range(observed)
        if self.is_symmetric:
            return Quantized(_scale(max(-low, high), _LEVELS // 2 - 1), np.int8(0))
        scale = _scale(high - low, _LEVELS - 1)
        return Quantized(scale, np.uint8(np.clip(np.rint(-low / scale), 0, _LEVELS - 1)))

    def range(self, observed: Observed) -> tuple[float, float]:
        """Return the least and the largest value that the integers represent; 0 is between them."""
        low, high = min(observed.low, 0.0), max(observed.high, 0.0)
        if self.is_symmetric:
            low, high = -max(-low, high), max(-low, high)
        if self.method == "minmax" or not observed.limit:
            return low, high
        if self.method == "percentile":
            return _percentiles(observed, self.percentile, low, high)
        loss = _squared_error if self.method == "mse" else _divergence
        return _best_part(observed, loss, low, high)


def _scale(width: float, levels: int) -> np.float32:
    scale = np.float32(width / levels)
    return scale if scale > 0 else np.float32(1)


class Observed:
    """The least and the largest element of a value in all runs, and a histogram of fixed size.

    The histogram has equal bins from `-limit` to `limit`. For a larger element the limit doubles, and pairs
    of bins become one, so that no element is needed again. Zeros are counted apart: every range represents
    them exactly, and where many elements are rectified, they would hide the distribution of the others.

    >>> observed = Observed(with_counts=True)
    >>> observed.add(np.float32([-1, 3]))
    >>> observed.low, observed.high, int(observed.counts.sum())
    (-1.0, 3.0, 2)
    """

    def __init__(self, *, with_counts: bool, allow_infinite: bool = False) -> None:
        """Observe nothing yet; `allow_infinite` leaves out elements that are infinite or no number."""
        self._allow_infinite = allow_infinite
        self.low, self.high = np.inf, -np.inf
        self.limit = 0.0
        self.zeros = 0
        self.counts: Array = np.zeros(_BINS if with_counts else 0, np.int64)

    def add(self, array: Array) -> None:
        """Add the elements of one run; raises EvaluationError for those that are infinite or no number."""
        if self._allow_infinite:
            array = array[np.isfinite(array)]
        if not array.size:
            return
        low, high = float(array.min()), float(array.max())
        if not np.isfinite(low) or not np.isfinite(high):
            raise EvaluationError("it has elements that are infinite or no number")
        self.low, self.high = min(self.low, low), max(self.high, high)
        if len(self.counts):
            self._count(array, max(-low, high))

    def _count(self, array: Array, largest: float) -> None:
        if not self.limit:
            self.limit = max(largest, _LEAST_LIMIT)
        while largest > self.limit:
            joined = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.pad(joined, _BINS // 4)
            self.limit *= 2
        places = array.ravel() * np.float32(_BINS / 2 / self.limit)
        places += np.float32(_BINS / 2)
        np.clip(places, 0, _BINS - 1, out=places)
        self.counts += np.bincount(places.astype(np.int32), minlength=_BINS)
        zeros = array.size - int(np.count_nonzero(array))
        self.counts[_BINS // 2] -= zeros
        self.zeros += zeros

    @property
    def centres(self) -> Array:
        """The middle of each bin."""
        return (np.arange(_BINS) + 0.5) * (2 * self.limit / _BINS) - self.limit


def _percentiles(observed: Observed, percentile: float, low: float, high: float) -> tuple[float, float]:
    """Return the range without the outer values in each direction."""
    counts = observed.counts.copy()
    counts[_BINS // 2] += observed.zeros
    below = np.cumsum(counts) / counts.sum()
    part, width = percentile / 100, 2 * observed.limit / _BINS
    first = int(np.searchsorted(below, 1 - part, side="right"))
    last = min(int(np.searchsorted(below, part, side="left")), _BINS - 1)
    return max(low, min(first * width - observed.limit, 0.0)), min(
        high, max((last + 1) * width - observed.limit, 0.0)
    )


def _best_part(
    observed: Observed, loss: Callable[[Observed, float, float], float], low: float, high: float
) -> tuple[float, float]:
    """Return the part of a range with the least loss; both ends shrink alike."""
    part = min(_CANDIDATES[::-1], key=lambda p: loss(observed, low * p, high * p))
    return low * float(part), high * float(part)


def _levels(observed: Observed, low: float, high: float) -> tuple[Array, float]:
    """Return the level of each bin from 0 on, and the distance of two levels."""
    step = max((high - low) / (_LEVELS - 1), _TINY)
    return np.clip(np.rint((observed.centres - low) / step), 0, _LEVELS - 1).astype(np.int64), step


def _squared_error(observed: Observed, low: float, high: float) -> float:
    levels, step = _levels(observed, low, high)
    return float((np.square(levels * step + low - observed.centres) * observed.counts).sum())


def _divergence(observed: Observed, low: float, high: float) -> float:
    """Return the Kullback-Leibler divergence of the clipped distribution from that of the levels.

    The clipped distribution has the outer elements in its first and last bin. That of the levels spreads the
    elements inside evenly over the bins of each level that have any.
    """
    inside = (observed.centres >= low) & (observed.centres <= high)
    if not inside.any():
        return np.inf
    counts = np.where(inside, observed.counts, 0).astype(float)
    clipped = counts.copy()
    first, last = np.flatnonzero(inside)[[0, -1]]
    clipped[first] += observed.counts[:first].sum()
    clipped[last] += observed.counts[last + 1 :].sum()
    levels, _ = _levels(observed, low, high)
    filled = clipped > 0
    sums = np.bincount(levels, counts, _LEVELS)
    bins = np.bincount(levels, filled, _LEVELS)
    spread = np.where(filled, (sums / np.maximum(bins, 1))[levels], 0)
    if not filled.any():
        return np.inf
    p = clipped[filled] / clipped.sum()
    q = np.maximum(spread[filled] / max(spread.sum(), 1), _TINY)
    return float((p * np.log(p / q)).sum())
