"""Resampling as tensor expressions: the old indices of each new one are computed from its number."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.loops import FLOATS, Expression, NotLowered, Stored
from sabir.opsets.families.resampling import COORDINATES, CROP, OUTWARD, Interpolation, ResampledAxis
from sabir.opsets.families.resizing import scaled_axes, sized_axes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size, Sizes
    from sabir.opsets.families.resampling import Coordinates

# whose coordinates depend on the scale alone
_OF_SCALES = frozenset(["half_pixel", "asymmetric", "tf_half_pixel_for_nn"])
_LARGEST = 1 << 31  # of the numbers from which indices are computed: their products are exact


def by_scales(
    x: Expression, scales: Sequence[float], numbers: Sequence[int], lengths: Sizes, how: Interpolation
) -> Expression:
    """Return `x` with some axes scaled; `lengths` is the shape of the result."""
    if len(scales) != len(numbers) or not all(0 < s < math.inf for s in scales):
        raise NotLowered("the scales are no positive numbers, one for each axis")
    shape = [d for d in x.shape if isinstance(d, int)]
    if len(shape) == x.rank:
        return _resampled(x, scaled_axes(shape, numbers, np.array(scales), None), lengths, how)
    if how.coordinates not in _OF_SCALES:
        raise NotLowered("the coordinates depend on sizes that are known at run time only")
    axes = [ResampledAxis(1, 1, Fraction(1))] * x.rank
    for axis, scale in zip(numbers, scales, strict=True):
        axes[axis] = ResampledAxis(1, 1, Fraction(scale))
    return _resampled(x, axes, lengths, how)


def by_sizes(
    x: Expression, sizes: Sequence[Size], numbers: Sequence[int], lengths: Sizes, how: Interpolation,
    policy: str,
) -> Expression:  # fmt: skip
    """Return `x` with some axes resized; `lengths` is the shape of the result."""
    shape = [d for d in x.shape if isinstance(d, int)]
    wanted = [n for n in sizes if isinstance(n, int) and n >= 0]
    if len(shape) < x.rank or len(wanted) < len(numbers):
        raise NotLowered("the scales are known at run time only")
    return _resampled(x, sized_axes(shape, numbers, np.array(wanted), None, policy), lengths, how)


def scales_of(x: Expression | None) -> list[float] | None:
    """Return the contents of a tensor of scales, where they are known."""
    known = x.known if isinstance(x, Stored) else None
    found = [s for s in known or () if isinstance(s, float)]
    return found if known is not None and len(found) == len(known) else None


def _resampled(
    x: Expression, axes: Sequence[ResampledAxis], lengths: Sizes, how: Interpolation
) -> Expression:
    _check(x, how)
    loops.check_element(x.element)
    changed = [i for i, axis in enumerate(axes) if axis.scale != 1 or axis.size != axis.length]
    for i in sorted(changed, key=lambda i: axes[i].scale):
        if x.shape[i] == 0:
            raise NotLowered("an axis without elements has none to resample")
        found = COORDINATES[how.coordinates](axes[i])
        along = _nearest if how.mode == "nearest" else _linear
        x = along(x, i, lengths[i], found, _rounding(how, axes[i]))
    return x


def _check(x: Expression, how: Interpolation) -> None:
    """Raise NotLowered for what no kernel does yet."""
    if how.mode not in {"nearest", "linear"}:
        raise NotLowered(f"no kernel resamples by the mode {how.mode} yet")
    if how.coordinates == CROP:
        raise NotLowered("no kernel resamples a part of a tensor yet")
    if how.antialias or (how.mode == "linear" and how.exclude_outside):
        raise NotLowered("no kernel filters, or leaves out what is outside, yet")
    if how.mode == "linear" and x.element not in FLOATS:
        raise NotLowered(f"no kernel interpolates {x.element} yet")


def _rounding(how: Interpolation, axis: ResampledAxis) -> str:
    return how.nearest if how.nearest != OUTWARD else "ceil" if axis.scale < 1 else "floor"


def _numerators(found: Coordinates, length: Size, factor: int) -> tuple[Expression, int, int]:
    """Return the coordinates of the new indices as whole numbers, plus so many, over a denominator.

    None is negative: their quotients are rounded down. A `factor` makes the denominator a multiple of it.
    """
    whole = math.lcm(found.step.denominator, found.first.denominator) * factor
    more = max(0, -math.floor(found.first)) + 1
    step, first = int(found.step * whole), int((found.first + more) * whole)
    if max(step, first, whole) > _LARGEST:
        raise NotLowered("the scale is no simple fraction")
    number = loops.apply("mul", loops.count((length,), 0), step)
    return loops.apply("add", number, first), more, whole


def _clipped(index: Expression, size: Size) -> Expression:
    return loops.apply("max", loops.apply("min", index, loops.sized("int64", size - 1)), 0)


def _nearest(x: Expression, axis: int, length: Size, found: Coordinates, rounding: str) -> Expression:
    number, more, whole = _numerators(found, length, 2)
    added = {"floor": 0, "ceil": whole - 1, "round_prefer_ceil": whole // 2}
    number = loops.apply("add", number, added.get(rounding, whole // 2 - 1))
    index = loops.apply("sub", loops.apply("div", number, whole), more)
    return loops.take(x, _clipped(index, x.shape[axis]), axis)


def _linear(x: Expression, axis: int, length: Size, found: Coordinates, _: str) -> Expression:
    number, more, whole = _numerators(found, length, 1)
    below = loops.apply("div", number, whole)
    rest = loops.apply("sub", number, loops.apply("mul", below, whole))
    part = loops.apply("div", loops.cast(rest, "double"), whole)
    index = loops.apply("sub", below, more)
    size, tail = x.shape[axis], (1,) * (x.rank - axis - 1)
    total: Expression | None = None
    for place, weight in (
        (index, loops.apply("sub", 1, part)),
        (loops.apply("add", index, 1), part),
    ):
        factor = loops.reshape(loops.cast(weight, x.element), (length, *tail))
        term = loops.apply("mul", loops.take(x, _clipped(place, size), axis), factor)
        total = term if total is None else loops.apply("add", total, term)
    return total or x
