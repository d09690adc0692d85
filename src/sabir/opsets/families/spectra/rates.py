"""Samples of a sound at a lower rate: a sinc filter with a Kaiser window, which delays nothing."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import spend_work
from sabir.opsets.families.shapes.sizes import allotted, set_aside, spend_operations

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_CROSSINGS = 32  # of zero on each side of the filter
_CUTOFF = 0.95  # of half of the new rate, below which the filter passes
_BETA = 9.0  # of the Kaiser window: what the filter stops is below 1e-4


def resampled(x: Array, before: int, after: int) -> Array:
    """Return samples at the rate `after` of samples at the rate `before`, which is higher; both are floats.

    The result has `ceil(len(x) * after / before)` samples. The sound is silent outside of `x`. Frequencies up
    to 0.9 times half of the new rate are kept, and those above that half are removed.

    >>> times = np.arange(4800) / 48000
    >>> y = resampled(np.sin(2 * np.pi * 1000 * times), 48000, 16000)
    >>> bool(np.allclose(y[50:-50], np.sin(2 * np.pi * 1000 * np.arange(1600) / 16000)[50:-50], atol=1e-4))
    True
    """
    common = math.gcd(before, after)
    step, phases = before // common, after // common  # result m is at the place m * step / phases
    reach = math.ceil(_CROSSINGS * before / (after * _CUTOFF))
    (count,) = allotted((-(-len(x) * phases // step),), np.dtype(np.float64), len(x))
    set_aside(2 * reach + len(x), 8, "samples around a sound")
    spend_work(2 * 8 * reach * count)
    spend_operations(min(phases, count))
    padded = np.concatenate([np.zeros(reach), x, np.zeros(reach)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach) if count else padded[:0]
    y = np.zeros(count)
    for phase in range(min(phases, count)):
        first, part = divmod(phase * step, phases)
        y[phase::phases] = windows[first + 1 :: step][: -(-(count - phase) // phases)] @ _filter(
            part / phases, reach, _CUTOFF * after / before
        )
    return y


def _filter(part: float, reach: int, cutoff: float) -> Array:
    """Return the weights of the samples around a place that is `part` behind the sample `reach - 1`."""
    away = part - np.arange(1 - reach, reach + 1)
    window = np.i0(_BETA * np.sqrt(np.maximum(1 - (away / reach) ** 2, 0))) / np.i0(_BETA)
    return cutoff * np.sinc(cutoff * away) * window
