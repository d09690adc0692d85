"""Slice: a part of a tensor, by start, end and step along some axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import TensorType, ceil_div, may_be_equal
from sabir.loops import NotLowered
from sabir.opsets.families.indexing.indexing import TO_THE_END, sliced_dim, sliced_start, span
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.shapes import axes_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim, Item, Known
    from sabir.loops import Expression, Lowering, Size
    from sabir.opsets.typing import Array, Ints

Operand = TypeVar("Operand")


def infer(
    data: TensorType, starts: TensorType, ends: TensorType, /, *others: TensorType | None
) -> TensorType:
    """The type of the part; `others` are axes and steps.

    Raises InferenceError for vectors of different lengths.
    """
    axes, steps = axes_and_steps(others)
    _check_vectors(starts, ends, axes, steps)
    count = _count(starts, ends, axes, steps)
    places = [*range(count or 0)] if axes is None else contents.ints(axes.known)
    if count is None or places is None:
        return TensorType(data.element, None if data.shape is None else (None,) * len(data.shape))
    gaps: Known = (None,) * count
    step = (1,) * count if steps is None else steps.known or gaps
    return cut(data, starts.known or gaps, ends.known or gaps, places, step)


def axes_and_steps(others: Sequence[Operand | None]) -> tuple[Operand | None, Operand | None]:
    """Return the optional inputs `axes` and `steps`."""
    axes, steps = (*others, None, None)[:2]
    return axes, steps


def _check_vectors(*inputs: TensorType | Array | None) -> None:
    """Raise InferenceError where `starts`, `ends`, `axes` and `steps` are not 1-D, all of one length."""
    length: Dim = None
    for name, x in zip(("starts", "ends", "axes", "steps"), inputs, strict=True):
        check_rank(name, x, 1)
        if x is not None and x.shape:
            if not may_be_equal(length, x.shape[0]):
                raise InferenceError(f"`{name}` has {x.shape[0]} elements, and `starts` {length}")
            length = x.shape[0] if length is None else length


def _count(*inputs: TensorType | None) -> int | None:
    """Return the number of sliced axes by the size of an input; None where all sizes are unknown."""
    sizes = [t.size for t in inputs if t is not None]
    return next((n for n in sizes if isinstance(n, int) and n <= contents.MOST), None)


def cut(
    data: TensorType, starts: Sequence[Item], ends: Sequence[Item], axes: Sequence[int], steps: Sequence[Item]
) -> TensorType:
    """Return the type of a part, with its contents where all is known."""
    if len({len(starts), len(ends), len(axes), len(steps)}) > 1:
        raise InferenceError(
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps must be as many"
        )
    if data.shape is None:
        return TensorType(data.element)
    dims = [*data.shape]
    axes = axes_in(axes, len(dims))
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        dims[axis] = sliced_dim(start, end, step, dims[axis])
    kind = TensorType(data.element, tuple(dims))
    numbers = [contents.ints(tuple(part)) for part in (starts, ends, steps)]
    if any(n is None for n in numbers):
        return kind
    first, last, step = (n or [] for n in numbers)
    return contents.moved(kind, lambda known: part(known, first, last, axes, step), data)


def evaluate(data: Array, starts: Array, ends: Array, /, *others: Array | None) -> Array:
    """Return the part as a view; `others` are axes and steps."""
    axes, steps = axes_and_steps(others)
    if starts.ndim != 1 or any(x is not None and x.shape != starts.shape for x in (ends, axes, steps)):
        _check_vectors(starts, ends, axes, steps)
    listed = [None if x is None else x.tolist() for x in (axes, steps)]
    return part(data, starts.tolist(), ends.tolist(), *listed)


def part(data: Array, starts: Sequence[int], ends: Sequence[int], axes: Ints, steps: Ints) -> Array:
    """Return the part as a view."""
    axes = axes_in(range(len(starts)) if axes is None else axes, data.ndim)
    whole = [slice(None)] * data.ndim
    steps = (1,) * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        whole[axis] = span(start, end, step, data.shape[axis]).slice
    return data[*whole, ...]


def lower(
    data: Expression, starts: Expression, ends: Expression, /, *others: Expression | None, call: Lowering
) -> Expression:
    """Return the part as a tensor expression; `others` are axes and steps."""
    axes, steps = axes_and_steps(others)
    named = None if axes is None else kernels.integers_of(axes, "`axes`")
    widths = None if steps is None else kernels.integers_of(steps, "`steps`")
    first, last = kernels.sizes_of(starts, "`starts`"), kernels.sizes_of(ends, "`ends`")
    return lowered(data, first, last, named, widths, call=call)


def lowered(
    data: Expression, starts: Sequence[Size], ends: Sequence[Size], axes: Ints, steps: Ints, *, call: Lowering
) -> Expression:
    """Return the part as a tensor expression, in the inferred shape."""
    firsts: list[Size] = [0] * data.rank
    counts = list(call.shape())
    widths = [1] * data.rank
    axes = axes_in(range(len(starts)) if axes is None else axes, data.rank)
    steps = (1,) * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = data.shape[axis]
        if isinstance(start, int) and isinstance(end, int) and isinstance(size, int):
            firsts[axis], _, widths[axis] = span(start, end, step, size)
            continue
        widths[axis] = max(-TO_THE_END, min(step, TO_THE_END))  # longer than any axis
        first = sliced_start(start, step, size)
        if first is not None and sliced_dim(start, end, step, size) is not None and step == widths[axis]:
            firsts[axis] = first
        else:
            firsts[axis], counts[axis] = _part_of(size, start, end, widths[axis])
    return loops.cut(data, firsts, counts, widths)


def _part_of(size: Size, start: Size, end: Size, step: int) -> tuple[Size, Size]:
    """Return the first index of a part and how many it has, as `span` clamps them, for the feeds at hand."""
    least, most = (0, size) if step > 0 else (-1, size - 1)
    first, last = (_clamped(_from_front(at, size), low, most) for at, low in ((start, 0), (end, least)))
    if first is None or last is None:
        raise NotLowered(f"the part [{start}:{end}:{step}] of {size} is known at run time only")
    count = ceil_div(last - first if step > 0 else first - last, abs(step))
    count = None if count is None else loops.larger(count, 0)
    if count is None:
        raise NotLowered(
            f"whether the part [{start}:{end}:{step}] of {size} has elements is known at run time only"
        )
    return first, count


def _from_front(position: Size, size: Size) -> Size | None:
    if isinstance(position, int):
        position = max(-TO_THE_END, min(position, TO_THE_END))
    if loops.at_least(position, 0):
        return position
    return position + size if loops.at_least(-1, position) else None


def _clamped(position: Size | None, low: Size, high: Size) -> Size | None:
    upper = None if position is None else loops.larger(position, low)
    return None if upper is None else loops.smaller(upper, high)
