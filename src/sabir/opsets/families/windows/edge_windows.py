"""Convolutions whose windows are partly outside of the image: results that read the same taps form a part.

Dilated windows reach far. Taps that are outside of the image for all results are removed. If the other taps
read much padding, each part of the results becomes a separate convolution by the taps that are inside. This
removes only products with zeros: the bits are the same if all filters are finite, which callers ensure.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.opsets.families.windows.windows import Window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Expression
    from sabir.opsets.families.windows.windows import WindowAxis

_MOST_TAPS = 16  # along an axis that is divided
_MOST_INSIDE = 0.9  # of the taps of an axis that is divided
_MOST_PARTS = 9  # each part has separate filters in memory
_LEAST_RESULTS = 4  # of a part along its axis: with fewer, the tiles of a product are mostly empty


class EdgePart(NamedTuple):
    """Results of an axis, `first` to before `end`, that read the taps `low` to before `high`."""

    first: int
    end: int
    low: int
    high: int


def parts_along(axis: WindowAxis) -> list[EdgePart]:
    """Return the parts of the results along an axis; a single part reads all taps, with padding."""
    whole = [EdgePart(0, axis.windows, 0, axis.kernel)]
    if axis.kernel > _MOST_TAPS:
        return whole
    runs = [axis.run(tap) for tap in range(axis.kernel)]
    edges = sorted({0, axis.windows, *(e for r in runs if r.start < r.stop for e in (r.start, r.stop))})
    found: list[EdgePart] = []
    for first, end in pairwise(edges):
        inside = [tap for tap, run in enumerate(runs) if run.start <= first and end <= run.stop]
        if not inside or end - first < _LEAST_RESULTS:
            return whole
        found.append(EdgePart(first, end, inside[0], inside[-1] + 1))
    read = sum((part.end - part.first) * (part.high - part.low) for part in found)
    return found if read <= _MOST_INSIDE * axis.windows * axis.kernel else whole


def _known_axes(x: Expression, window: Window) -> Sequence[WindowAxis] | None:
    """Return the windows along each axis of an image (N, C, ...); None if a size is symbolic."""
    lengths = [n for n in x.shape[2:] if isinstance(n, int)]
    if len(lengths) < x.rank - 2 or not all(isinstance(k, int) for k in window.kernel):
        return None
    return window.axes(lengths)


def trimmed(x: Expression, w: Expression, window: Window) -> tuple[Expression, Window]:
    """Return the filters (M, C, ...) and windows without the outer taps that read only padding.

    With a dilation larger than the image, one of three taps remains.
    """
    axes = _known_axes(x, window)
    if axes is None or window.ceil:
        return w, window
    kept: list[tuple[int, int]] = []
    pads: list[tuple[int, int]] = []
    for axis in axes:
        low, high = axis.taps.start, axis.taps.stop
        begin, end = axis.begin - low * axis.dilation, axis.end - (axis.kernel - high) * axis.dilation
        if low == high or min(begin, end) < 0:
            low, high, begin, end = 0, axis.kernel, axis.begin, axis.end
        kept.append((low, high))
        pads.append((begin, end))
    kernel = tuple(high - low for low, high in kept)
    if kernel == window.kernel:
        return w, window
    return _cut(w, kept), Window(kernel, window.strides, window.dilations, tuple(pads))


def by_parts(
    x: Expression, w: Expression, window: Window,
    convolve: Callable[[Expression, Expression, Window], Expression],
) -> Expression | None:  # fmt: skip
    """Return `x` (N, C, ...) convolved with `w` (M, C, ...) part by part; None if that saves little.

    `convolve` computes a part of the image by a part of the filters, without padding along divided axes.
    """
    axes = _known_axes(x, window)
    if axes is None:
        return None
    parts = [parts_along(axis) for axis in axes]
    if not 1 < math.prod(map(len, parts)) <= _MOST_PARTS:
        return None

    def joined(chosen: list[EdgePart]) -> Expression:
        if len(chosen) < len(axes):
            found = [joined([*chosen, part]) for part in parts[len(chosen)]]
            return found[0] if len(found) == 1 else loops.join(found, 2 + len(chosen))
        read = [
            _Read.of(part, axis, is_divided=len(p) > 1)
            for part, axis, p in zip(chosen, axes, parts, strict=True)
        ]
        inside = _cut(x, [(r.start, r.stop) for r in read])
        taps = _cut(w, [(part.low, part.high) for part in chosen])
        kernel, pads = tuple(part.high - part.low for part in chosen), tuple(r.pads for r in read)
        return convolve(inside, taps, Window(kernel, window.strides, window.dilations, pads))

    return joined([])


class _Read(NamedTuple):
    """The elements of an axis that a part reads, `start` to before `stop`, and the padding around them."""

    start: int
    stop: int
    pads: tuple[int, int]

    @classmethod
    def of(cls, part: EdgePart, axis: WindowAxis, *, is_divided: bool) -> _Read:
        """Return the elements that a part of an axis reads: all, if the axis is not divided."""
        if not is_divided:
            return cls(0, axis.length, (axis.begin, axis.end))
        low = part.first * axis.stride - axis.begin + part.low * axis.dilation
        high = (part.end - 1) * axis.stride - axis.begin + (part.high - 1) * axis.dilation
        return cls(low, high + 1, (0, 0))


def _cut(x: Expression, ranges: Sequence[tuple[int, int]]) -> Expression:
    """Return a part of a tensor along the axes after the second one."""
    starts = [0, 0, *(start for start, _ in ranges)]
    sizes = [*x.shape[:2], *(stop - start for start, stop in ranges)]
    return loops.cut(x, starts, sizes, [1] * x.rank)
