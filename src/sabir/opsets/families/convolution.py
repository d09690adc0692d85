"""Convolution as matrix products over gathered windows."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.families.windows import Axis, Run
    from sabir.opsets.typing import Array

# Bytes of windows gathered at a time: a block that stays in the cache makes the product faster than one large
# one. Heavy weights are read again for each block, which grows with them there, up to a limit.
_BLOCK = 4 << 20
_LARGEST_BLOCK = 32 << 20


def convolve(x: Array, w: Array, axes: Sequence[Axis], group: int) -> Array:
    """Correlate `x` (N, C, *lengths) with `w` (M, C/group, *kernel), laid out by `axes`."""
    if w.shape[0] % group or x.shape[1] != w.shape[1] * group:
        raise InferenceError(f"channels {x.shape[1]} and weights {w.shape} do not go with {group} groups")
    counts = [a.windows for a in axes]
    matrix = w.reshape(group, w.shape[0] // group, math.prod(w.shape[1:]))
    if all(a.kernel == 1 and a.begin == a.end == 0 for a in axes):
        picked = x[..., *(slice(0, a.windows * a.stride, a.stride) for a in axes)]
        y = matrix @ picked.reshape(len(x), group, w.shape[1], math.prod(counts))
        return y.reshape(len(x), w.shape[0], *counts)
    y = np.empty((len(x), *matrix.shape[:2], math.prod(counts)), np.result_type(x, w))
    split = x.reshape(len(x), group, w.shape[1], *x.shape[2:])
    columns = _Columns(axes, w.dtype)
    blocks = list(_blocks(matrix.shape, counts, w.nbytes, w.itemsize))
    for item in range(len(x)):
        phases, result = _phases(split[item], axes[-1]), y[item]
        for groups, box, place in blocks:
            gathered = columns.gather([p[groups] for p in phases], box)
            np.matmul(matrix[groups], gathered, out=result[groups, :, place])
    return y.reshape(len(x), w.shape[0], *counts)


def _phases(image: Array, last: Axis) -> list[Array]:
    """Split the last axis by its stride, once: each tap then reads elements that lie side by side."""
    if last.stride == 1 or last.kernel == 1:
        return [image]
    return [np.ascontiguousarray(image[..., p :: last.stride]) for p in range(last.stride)]


class _Columns:
    """The windows of an image as the columns of a matrix, in buffers that blocks of one shape share."""

    def __init__(self, axes: Sequence[Axis], dtype: np.dtype[np.generic]) -> None:
        self.axes, self.dtype = axes, dtype
        self.kernel = tuple(a.kernel for a in axes)
        self.buffers: dict[tuple[int, ...], Array] = {}

    def gather(self, phases: Sequence[Array], box: Sequence[slice]) -> Array:
        """Return (groups, channels * taps, windows) of the windows in `box`."""
        sizes = tuple(b.stop - b.start for b in box)
        groups, channels = phases[0].shape[:2]
        shape = (groups, channels, *self.kernel, *sizes)
        if shape not in self.buffers:
            self.buffers[shape] = np.zeros(shape, self.dtype)
        buffer = self.buffers[shape]
        runs = [
            [a.run(t, b.start, b.stop) for t in range(a.kernel)] for a, b in zip(self.axes, box, strict=True)
        ]
        for tap, chosen in zip(np.ndindex(self.kernel), itertools.product(*runs), strict=True):
            self._copy(buffer[:, :, *tap], phases, box, chosen)
        return buffer.reshape(groups, channels * math.prod(self.kernel), math.prod(sizes))

    def _copy(
        self, column: Array, phases: Sequence[Array], box: Sequence[slice], runs: Sequence[Run]
    ) -> None:
        """Copy what one tap reads; its padding is zero from the start, unless another block was there."""
        if any(
            b.stop - b.start < a.windows and r.stop - r.start < b.stop - b.start
            for a, b, r in zip(self.axes, box, runs, strict=True)
        ):
            column[...] = 0
        *outer, last = (r.source for r in runs)
        image = phases[0]
        if len(phases) > 1:
            begin: int = last.start
            first, phase = divmod(begin, len(phases))
            image, last = phases[phase], slice(first, first + runs[-1].stop - runs[-1].start)
        target = (slice(r.start - b.start, r.stop - b.start) for b, r in zip(box, runs, strict=True))
        column[..., *target] = image[..., *outer, last]


def _blocks(
    weights: tuple[int, int, int], counts: Sequence[int], heavy: int, itemsize: int
) -> Iterator[tuple[slice, tuple[slice, ...], slice]]:
    """Yield groups, windows, and the flat place of these windows in the output, a block at a time."""
    group, _, taps = weights
    fitting = max(1, min(max(_BLOCK, heavy), _LARGEST_BLOCK) // (itemsize * max(1, taps)))  # columns
    whole = math.prod(counts)
    several = min(group, max(1, fitting // max(1, whole)))
    steps = _steps(counts, fitting)
    starts = [range(0, n, s) for n, s in zip(counts, steps, strict=True)]
    for first in range(0, group, several):
        for corner in itertools.product(*starts):
            box = tuple(slice(c, min(c + s, n)) for c, s, n in zip(corner, steps, counts, strict=True))
            place = int(np.ravel_multi_index(corner, counts))
            size = math.prod(b.stop - b.start for b in box)
            yield slice(first, min(first + several, group)), box, slice(place, place + size)


def _steps(counts: Sequence[int], most: int) -> list[int]:
    """Return the sides of a box of at most this many places that is contiguous in the whole."""
    steps: list[int] = []
    for i, n in enumerate(counts):
        inner = math.prod(counts[i + 1 :])
        fitting = min(n, max(1, most // max(1, inner)))
        blocks = max(1, -(-n // max(1, fitting)))
        steps.append(max(1, -(-n // blocks)))  # blocks of even size, so that they share a buffer
        if inner <= most:
            return [*steps, *(max(1, c) for c in counts[i + 1 :])]
    return steps
