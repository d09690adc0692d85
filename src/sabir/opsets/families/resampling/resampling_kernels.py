"""Resampling as tensor expressions, axis by axis: each new element is a weighted sum of a few old ones.

For known sizes the indices and weights are constant tables, equal to those of the evaluation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.ir import Expr
from sabir.loops import INTEGERS, Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.resampling import resampling_lines
from sabir.opsets.families.resampling.resampling import (
    CROP,
    OUTWARD,
    Interpolation,
    ResampledAxis,
    coordinates,
    exactly_scaled,
    tap_table,
)
from sabir.opsets.families.resampling.resizing import STRETCH, scaled_axes, sized_axes
from sabir.opsets.families.windows.tap_kernels import weighted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from sabir.loops import Size, Sizes
    from sabir.opsets.families.resampling.resampling_lines import Line
    from sabir.opsets.typing import Array


class _Along(NamedTuple):
    """An axis that is resampled, with known sizes or with the coordinates of its new indices."""

    axis: int
    length: Size
    known: ResampledAxis | None
    line: Line | None
    scale: Fraction | None


def by_scales(
    x: Expression, scales: Sequence[float], numbers: Sequence[int], lengths: Sizes, how: Interpolation,
    part: Array | None = None,
) -> Expression:  # fmt: skip
    """Return `x` with some axes scaled; `lengths` is the shape of the result, as far as it is inferred."""
    if len(scales) != len(numbers) or not all(0 < s < math.inf for s in scales):
        raise NotLowered("the scales are no positive numbers, one for each axis")
    known = scaled_axes([_counted(d) for d in x.shape], numbers, np.array(scales), part)
    found: list[_Along] = []
    exact: list[Any] = [*lengths]
    for axis in numbers:
        size, scale = x.shape[axis], known[axis].scale
        if part is None and isinstance(size, Expr):
            exact[axis] = exactly_scaled(size, scale)  # inference leaves unreadable scales to the run
        length = exact[axis]
        if isinstance(size, int):
            found.append(_Along(axis, length, known[axis], None, scale))
        elif scale != 1 or part is not None:
            line = resampling_lines.of_scale(how.coordinates, scale, size, length)
            found.append(_Along(axis, length, None, line, scale))
    return _resampled(x, found, tuple(exact), how)


def by_sizes(
    x: Expression, sizes: Sequence[Size], numbers: Sequence[int], lengths: Sizes, how: Interpolation,
    policy: str, part: Array | None = None,
) -> Expression:  # fmt: skip
    """Return `x` with some axes resized; `lengths` is the shape of the result."""
    if policy != STRETCH and not all(isinstance(n, int) for n in (*x.shape, *sizes)):
        raise NotLowered("the scales are known at run time only")
    wanted = np.array([_counted(n) for n in sizes], np.int64)
    known = sized_axes([_counted(d) for d in x.shape], numbers, wanted, part, policy)
    found: list[_Along] = []
    for axis, length in zip(numbers, sizes, strict=True):
        size = x.shape[axis]
        if isinstance(size, int) and isinstance(length, int):
            found.append(_Along(axis, lengths[axis], known[axis], None, known[axis].scale))
        elif size != length or part is not None:
            line = resampling_lines.of_sizes(how.coordinates, size, length)
            found.append(_Along(axis, length, None, line, None))
    return _resampled(x, found, lengths, how)


def _counted(size: Size) -> int:
    """Return a size; 1 for a symbolic one."""
    return size if isinstance(size, int) else 1


def _resampled(x: Expression, axes: Sequence[_Along], lengths: Sizes, how: Interpolation) -> Expression:
    crops = how.coordinates == CROP
    changed = [a for a in axes if a.known is None or not a.known.is_kept(crops=crops)]
    if any(x.shape[a.axis] == 0 and a.length != 0 for a in changed):
        raise NotLowered("an axis without elements has none to resample")
    if 0 in lengths:
        return kernels.filled(x.element, 0, lengths)
    changed.sort(key=_order)
    y = _working(x, how) if changed else x
    for along in changed:
        y = _nearest(y, along, how) if how.mode == "nearest" else _interpolated(y, along, how)
    y = y if y.element == x.element else kernels.rounded_to(y, x.element)
    for along in changed if crops else ():
        y = _extrapolated(y, along, how)
    return y


def _order(along: _Along) -> tuple[float, int]:
    """Return the order of axes: those that shrink most first; of those that grow, the last axis last."""
    scale = float(along.scale or 1)
    return scale, -along.axis if scale > 1 else along.axis


def _working(x: Expression, how: Interpolation) -> Expression:
    """Return `x` in the type in which it is resampled."""
    loops.check_element(x.element)
    if how.mode == "nearest":
        return x
    loops.check_computed(x.element)
    if x.element == "bool":
        raise NotLowered("flags cannot be interpolated")
    return loops.cast(x, "double") if x.element in INTEGERS else x


def _rounding(how: Interpolation, along: _Along) -> str:
    if how.nearest != OUTWARD:
        return how.nearest
    return "ceil" if along.scale is not None and along.scale < 1 else "floor"


def _nearest(x: Expression, along: _Along, how: Interpolation) -> Expression:
    if along.known is not None:
        found = tap_table(along.known, how).indices.ravel()
        step = _step(found)
        if step is not None:
            return _each(x, along.axis, int(found[0]), len(found), step)
        indices = loops.tensor(found.astype(np.int32))
    elif along.line is not None:
        found = resampling_lines.nearest(along.line, along.length, _rounding(how, along))
        indices = resampling_lines.clipped(found, x.shape[along.axis])
    else:
        return x
    return loops.take(x, indices, along.axis)


def _step(indices: Array) -> int | None:
    """Return the constant, nonzero step of indices; None without one."""
    distances = np.unique(np.diff(indices))
    return int(distances[0]) if len(distances) == 1 and distances[0] > 0 else None


def _each(x: Expression, axis: int, start: int, count: int, step: int) -> Expression:
    """Return `count` elements of an axis from `start`, in steps."""
    starts = [start if i == axis else 0 for i in range(x.rank)]
    sizes = [count if i == axis else d for i, d in enumerate(x.shape)]
    return loops.cut(x, starts, sizes, [step if i == axis else 1 for i in range(x.rank)])


def _interpolated(x: Expression, along: _Along, how: Interpolation) -> Expression:
    if along.known is not None:
        indices, weights = tap_table(along.known, how)
        places = loops.tensor(np.ascontiguousarray(indices.T, np.int32))
        factors = np.asarray(weights, element(x.element).dtype)
        return weighted(x, along.axis, places, loops.tensor(np.ascontiguousarray(factors.T)))
    if along.line is None:
        return x
    size = x.shape[along.axis]
    return weighted(x, along.axis, *resampling_lines.taps(along.line, along.length, size, how, along.scale))


def _extrapolated(x: Expression, along: _Along, how: Interpolation) -> Expression:
    """Return `x` with the extrapolation value at coordinates outside of the tensor."""
    if along.known is None:
        return x
    at = coordinates(along.known, CROP)
    outside = (at < 0) | (at > along.known.size - 1)
    flags = loops.reshape(loops.tensor(outside), (along.length, *(1,) * (x.rank - along.axis - 1)))
    number = np.array(how.extrapolation).astype(element(x.element).dtype).item()
    return loops.where(flags, loops.number(x.element, number), x)
