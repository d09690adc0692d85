"""Padding as tensor expressions."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from sabir import loops
from sabir.ir import dim_max
from sabir.loops import Expression, NotLowered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Size, Sizes


def filled(
    x: Expression, begin: Sequence[Size], end: Sequence[Size], number: float, wanted: Sizes
) -> Expression:
    """Return the tensor padded with a number to the shape `wanted`; negative pads remove elements."""
    spans = list(starmap(_span, zip(x.shape, begin, end, strict=True)))
    if any(kept == 0 and n != 0 for (_, kept, _, _), n in zip(spans, x.shape, strict=True)):
        return loops.expand(loops.number(x.element, number), wanted)
    starts, kept, before, after = zip(*spans, strict=True) if spans else ((), (), (), ())
    part = loops.cut(x, starts, kept, [1] * x.rank)
    return loops.pad(part, before, after, number) if any(n != 0 for n in (*before, *after)) else part


def _span(n: Size, before: Size, after: Size) -> tuple[Size, Size, Size, Size]:
    """Return the first element that is kept of an axis, their number, and the padding at each end."""
    first, last = loops.larger(-before, 0), loops.larger(-after, 0)
    if first is None or last is None:
        raise NotLowered(
            f"whether the pads {before} and {after} add or remove elements is known at run time only"
        )
    kept = loops.larger(n - first - last, 0)
    if kept is None:
        raise NotLowered(
            f"whether the pads {before} and {after} remove more than {n} elements is known at run time only"
        )
    return first, kept, before + first, after + last


def _left(n: Size, before: int, after: int) -> Size:
    left = n + min(before, 0) + min(after, 0)
    if not loops.at_least(left, 0):
        raise NotLowered(
            f"whether the pads {before} and {after} remove more than {n} elements is known at run time only"
        )
    return left


def repeated(x: Expression, begin: Sequence[Size], end: Sequence[Size], mode: str) -> Expression:
    """Return the tensor padded with its own elements, by the mode edge, reflect or wrap."""
    for axis, (before, after) in enumerate(zip(begin, end, strict=True)):
        if not isinstance(before, int) or not isinstance(after, int):
            raise NotLowered(f"the pads {before} and {after} depend on the shapes of a run")
        if before or after:
            x = loops.narrow(x, axis, max(0, -before), _left(x.shape[axis], before, after))
            x = _continued(x, axis, max(0, before), max(0, after), mode)
    return x


def _continued(x: Expression, axis: int, before: int, after: int, mode: str) -> Expression:
    """Pad one axis: a join of views if the axis is known to be long enough, else a gather."""
    n = x.shape[axis]
    if not before and not after:
        return x
    if n == 1:
        mode = "edge"
    needed = {"edge": 1, "reflect": max(before, after) + 1, "wrap": max(before, after, 1)}[mode]
    if not loops.at_least(n, needed):
        return loops.take(x, _indices(n, before, after, mode), axis)
    if mode == "edge":
        ends = [_still(x, axis, 0, before), _still(x, axis, n - 1, after)]
    elif mode == "reflect":
        ends = [_backwards(x, axis, before, before), _backwards(x, axis, n - 2, after)]
    else:
        ends = [loops.narrow(x, axis, n - before, before), loops.narrow(x, axis, 0, after)]
    parts = [part for part in (ends[0], x, ends[1]) if part.shape[axis] != 0]
    return loops.join(parts, axis)


def _still(x: Expression, axis: int, place: Size, count: int) -> Expression:
    one = loops.narrow(x, axis, place, 1)
    return loops.expand(one, [count if i == axis else d for i, d in enumerate(x.shape)])


def _backwards(x: Expression, axis: int, start: Size, count: int) -> Expression:
    starts = [start if i == axis else 0 for i in range(x.rank)]
    sizes = [count if i == axis else d for i, d in enumerate(x.shape)]
    return loops.cut(x, starts, sizes, [-1 if i == axis else 1 for i in range(x.rank)])


def _indices(n: Size, before: int, after: int, mode: str) -> Expression:
    """Return the index that each element of a padded axis copies; for an empty axis there is none."""
    index = loops.apply("sub", loops.count((n + (before + after),), 0), before)
    last = loops.sized("int64", n - 1)
    if mode == "edge":
        return loops.apply("min", loops.apply("max", index, 0), last)
    if mode == "wrap":
        return loops.apply("mod", index, loops.sized("int64", dim_max(n, 1)))
    folded = loops.apply("mod", index, loops.sized("int64", dim_max(2 * n - 2, 1)))
    return loops.apply("min", folded, loops.apply("sub", loops.apply("mul", last, 2), folded))
