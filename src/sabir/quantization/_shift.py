"""The mean error of a product's output channels over runs, and how much of it is no chance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from sabir.ir import Array

_LEAST_RUNS = 2  # between which errors can vary


class Shift:
    """The mean error of each output channel: the float result less the quantized one.

    The mean over a few runs has an error of its own, which would go into the bias. Its size is known from how
    much the runs differ; `trust` is the part of the mean square that is left without it, between 0 and 1.
    Multiplied by it, the mean has the least expected error (James and Stein, 1961). With one run it is 1.

    >>> shift = Shift(channels=1)
    >>> shift.begin(np.array([6.0]), size=2, square=18.0).tolist()  # then a run finds the error 1
    [3.0]
    >>> shift.end(np.array([1.0]))
    >>> shift.begin(np.array([6.0]), size=2, square=18.0).tolist()  # of which 0.5 are from the first run
    [2.0]
    >>> shift.end(np.array([2.0]))
    >>> shift.mean.tolist(), shift.trust  # errors of 1 and 3: the variance of their mean is 1
    ([2.0], 0.75)
    """

    def __init__(self, channels: int) -> None:
        """Know of no run yet."""
        self.mean: Array = np.zeros(channels)
        self.count = 0
        self._runs = self._added = 0
        self._square = 0.0
        self._moments: Array = np.zeros((3, channels))  # sums of the errors to the powers 0, 1 and 2

    def begin(self, total: Array, size: int, square: float) -> Array:
        """Count one more run; return the mean over all runs of the float results less their corrected parts.

        `total` has the sums of the channels in this run, `size` is the number of elements of the result,
        `square` the sum of their squares. The mean error is what is returned, less the sum of quantized
        results divided by `count`.
        """
        before = self.mean * self.count
        self._added = size // len(self.mean)
        self._square += square
        self.count += self._added
        return (before + total.reshape(-1)) / max(self.count, 1)

    def end(self, mean: Array) -> None:
        """Learn the mean error with the run that has begun."""
        if self._added:
            error = self.mean + (mean - self.mean) * (self.count / self._added)
            self._runs += 1
            self._moments += float(self._added) ** 2 * np.stack((np.ones_like(error), error, error**2))
        self.mean = mean

    @property
    def trust(self) -> float:
        """The part of the mean square of the mean error that is no chance."""
        square = float(np.square(self.mean).sum())
        if self._runs < _LEAST_RUNS or not square:
            return 1.0
        weights, errors, squares = self._moments
        spread = float((squares - 2 * self.mean * errors + np.square(self.mean) * weights).sum())
        variance = max(spread, 0.0) / self.count**2 * self._runs / (self._runs - 1)
        return max(0.0, 1 - variance / square)

    @property
    def correction(self) -> Array:
        """What goes into the bias, for each channel."""
        return self.mean * self.trust

    @property
    def relative(self) -> float:
        """The root mean square of the correction, divided by that of the float results."""
        if not self._square:
            return 0.0
        return float(np.sqrt(np.square(self.correction).sum() * self.count / self._square))
