"""Parts of a tensor along an axis: their sizes, their types, and views of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from sabir import loops
from sabir.base import InferenceError, check_elements
from sabir.ir import Dim, TensorType, ceil_div, floor_div, may_be_equal, mul, sub, total
from sabir.loops import NotLowered
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import sizes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array
    from sabir.schema import Call

_VIEW = 256  # bytes, about, of a view, without its elements


def parts_of(x: TensorType, axis: int, lengths: TensorType, call: Call) -> tuple[TensorType, ...]:
    """Return the type of each output, with the sizes in the contents of `lengths`."""
    sizes = sizes_in("split", lengths)
    return parts_of_unknown(x, axis, call) if sizes is None else parts(x, axis, sizes, call)


def parts_of_unknown(x: TensorType, axis: int, call: Call) -> tuple[TensorType, ...]:
    """Return the type of each output where the sizes are unknown."""
    return parts(x, axis, (None,) * len(call.outputs), call)


def parts(
    x: TensorType, axis: int, sizes: Sequence[Dim] | None, call: Call, *, whole: bool = True
) -> tuple[TensorType, ...]:
    """Return the type of each output, of equal parts without `sizes`; `whole`: these are all parts."""
    count = len(call.outputs)
    if sizes is not None and len(sizes) != count:
        raise InferenceError(f"there are {len(sizes)} sizes for {count} outputs")
    if x.shape is None:
        return (TensorType(x.element),) * count
    axis, is_told = axis_in(axis, len(x.shape)), sizes is None or None not in sizes
    if sizes is None:
        sizes = equal(x.shape[axis], count)
    elif whole:
        sizes = _completed(sizes, x.shape[axis])
    shapes = [(*x.shape[:axis], size, *x.shape[axis + 1 :]) for size in sizes]
    known = [s for s in sizes if isinstance(s, int)]
    if x.known is None or len(known) < len(sizes) or not is_told:  # the run finds out whether the sizes fit
        return tuple(TensorType(x.element, s) for s in shapes)
    cuts = _slices(known, axis)
    return tuple(
        contents.moved(TensorType(x.element, s), lambda known, c=c: known[c], x)
        for s, c in zip(shapes, cuts, strict=True)
    )


def _completed(sizes: Sequence[Dim], whole: Dim) -> Sequence[Dim]:
    """Compute unknown sizes: a single one is the remainder, and several are 0 if there is none."""
    known = [s for s in sizes if s is not None]
    rest = sub(whole, total(known))
    if len(known) == len(sizes):
        if not may_be_equal(rest, 0):
            raise InferenceError(f"sizes with the sum {total(known)} do not fit a dimension of {whole}")
        return sizes
    if isinstance(rest, int) and rest < 0:
        raise InferenceError(f"sizes with a sum of {total(known)} or more do not fit a dimension of {whole}")
    follows = rest == 0 or len(known) == len(sizes) - 1
    return [rest if s is None and follows else s for s in sizes]


def equal(size: Dim, count: int) -> list[Dim]:
    """Return the sizes of equal parts; raises InferenceError where `count` does not divide `size`."""
    if isinstance(size, int) and size % count:
        raise InferenceError(f"a dimension of {size} cannot be divided into {count} equal parts")
    return [floor_div(size, count)] * count


def uneven(size: Dim, count: int) -> list[Dim]:
    """Return the sizes of equal parts; the last may be smaller."""
    part = ceil_div(size, count)
    last = sub(size, mul(part, count - 1))
    if isinstance(last, int) and last < 0:
        raise InferenceError(f"a dimension of {size} is too short for {count} parts of {part}")
    return [part] * (count - 1) + [last]


def cut(x: Array, sizes: Sequence[Dim], axis: int) -> tuple[Array, ...]:
    """Return views of the parts; raises ValueError unless their sizes add up to the dimension."""
    check_parts(len(sizes), x)
    numbers = [n for n in sizes if isinstance(n, int)]
    if sum(numbers) != x.shape[axis] or any(n < 0 for n in numbers):
        raise ValueError(f"sizes {numbers} do not add up to a dimension of {x.shape[axis]}")
    return tuple(x[c] for c in _slices(numbers, axis))


def lower_parts(x: Expression, sizes: Sequence[Dim], axis: int) -> tuple[Expression, ...]:
    """Return the parts as tensor expressions; raises NotLowered if they may not add up to the axis."""
    numbers = [n for n in sizes if n is not None]
    whole = total(sizes)
    inside = all(loops.at_least(n, 0) for n in numbers)
    if whole is None or not inside or not loops.equal(whole, x.shape[axis]):
        raise NotLowered(
            f"whether sizes {[*map(str, sizes)]} add up to {x.shape[axis]} is known at run time only"
        )
    found: list[Expression] = []
    start: Size = 0
    for size in numbers:
        found.append(loops.narrow(x, axis, start, size))
        start += size
    return tuple(found)


def check_parts(count: int, x: Array) -> None:
    """Raise LimitError where a tensor would be divided into too many parts."""
    check_elements(count, x.size, what="the parts", width=_VIEW)


def _slices(sizes: Sequence[int], axis: int) -> list[tuple[slice, ...]]:
    bounds = itertools.accumulate(sizes, initial=0)
    return [(*(slice(None),) * axis, slice(a, b)) for a, b in itertools.pairwise(bounds)]
