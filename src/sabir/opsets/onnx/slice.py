"""Slice: a part of a tensor, by start, end and step along some axes."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, Dim, Item, Known, TensorType, Value, ceil_div, may_be_equal
from sabir.loops import Expression, Lowering, NotLowered, Size
from sabir.opsets.families.indexing.indexing import INDEX_TYPES, TO_THE_END, sliced_dim, sliced_start, span
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, as_ints, from_front, ints, known_ints
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

slicing = Operator(
    "Slice", summary="The part of `data` from `starts` up to `ends` in `steps`, along each of `axes`."
)

T = Constraint("T", CLASSIC)

v1 = slicing.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The part, of the rank of `data`.", differentiable=True)],
    attributes=[
        Attribute("ends", "ints", "The exclusive end on each axis.", required=True),
        Attribute("starts", "ints", "The first index on each axis.", required=True),
        Attribute("axes", "ints", "The axes to slice; the first ones when absent."),
    ],
)
Operand = TypeVar("Operand")
_MOST_GAPS = 16  # steps for which a gradient is spread with zeros, not element by element
Tind = Constraint("Tind", INDEX_TYPES)


def _bounds(name: str, doc: str, *, optional: bool = False) -> Input:
    return Input(name, Tind, doc, optional=optional, differentiable=False)


v10 = v1.evolve(
    10,
    "`starts`, `ends` and `axes` move from attributes to inputs; `steps` skip indices, or reverse the order.",
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        _bounds("starts", "The first index on each axis; from the back if negative, clamped."),
        _bounds("ends", "The exclusive end on each axis; from the back if negative, clamped."),
        _bounds("axes", "The axes to slice; the first ones when absent.", optional=True),
        _bounds("steps", "The distance between indices, never 0; 1 when absent.", optional=True),
    ],
    drop=["ends", "starts", "axes"],
)
v11 = v10.restate(11, "Negative `axes` count from the back.")
v13 = v11.widen(13, T=BFLOAT16)


@v1.infer
def infer_from_attributes(
    data: TensorType, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints
) -> TensorType:
    axes = range(len(starts)) if axes is None else axes
    return _cut(data, tuple(starts), tuple(ends), axes, (1,) * len(starts))


@v10.infer
def infer(
    data: TensorType, starts: TensorType, ends: TensorType, /, *others: TensorType | None
) -> TensorType:
    axes, steps = _both(others)
    _check_vectors(starts, ends, axes, steps)
    count = _count(starts, ends, axes, steps)
    places = [*range(count or 0)] if axes is None else contents.ints(axes.known)
    if count is None or places is None:
        return TensorType(data.element, None if data.shape is None else (None,) * len(data.shape))
    gaps: Known = (None,) * count
    step = (1,) * count if steps is None else steps.known or gaps
    return _cut(data, starts.known or gaps, ends.known or gaps, places, step)


def _both(others: Sequence[Operand | None]) -> tuple[Operand | None, Operand | None]:
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


def _cut(
    data: TensorType, starts: Sequence[Item], ends: Sequence[Item], axes: Sequence[int], steps: Sequence[Item]
) -> TensorType:
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
    return contents.moved(kind, lambda known: _part(known, first, last, axes, step), data)


@v1.evaluate
def evaluate_from_attributes(
    data: Array, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints
) -> Array:
    return _part(data, starts, ends, axes, None)


@v10.evaluate
def evaluate(data: Array, starts: Array, ends: Array, /, *others: Array | None) -> Array:
    axes, steps = _both(others)
    if starts.ndim != 1 or any(x is not None and x.shape != starts.shape for x in (ends, axes, steps)):
        _check_vectors(starts, ends, axes, steps)
    listed = [None if x is None else x.tolist() for x in (axes, steps)]
    return _part(data, starts.tolist(), ends.tolist(), *listed)


def _part(data: Array, starts: Sequence[int], ends: Sequence[int], axes: Ints, steps: Ints) -> Array:
    """Return the part as a view."""
    axes = axes_in(range(len(starts)) if axes is None else axes, data.ndim)
    whole = [slice(None)] * data.ndim
    steps = (1,) * len(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        whole[axis] = span(start, end, step, data.shape[axis]).slice
    return data[*whole, ...]


@v1.lower
def lower_from_attributes(
    data: Expression, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints, call: Lowering
) -> Expression:
    return _lowered(data, starts, ends, axes, None, call=call)


@v10.lower
def lower(
    data: Expression, starts: Expression, ends: Expression, /, *others: Expression | None, call: Lowering
) -> Expression:
    axes, steps = _both(others)
    named = None if axes is None else kernels.integers_of(axes, "`axes`")
    widths = None if steps is None else kernels.integers_of(steps, "`steps`")
    first, last = kernels.sizes_of(starts, "`starts`"), kernels.sizes_of(ends, "`ends`")
    return _lowered(data, first, last, named, widths, call=call)


def _lowered(
    data: Expression, starts: Sequence[Size], ends: Sequence[Size], axes: Ints, steps: Ints, *, call: Lowering
) -> Expression:
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


@v10.upgrade
def attributes_become_inputs(
    b: Builder, data: Value, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints
) -> Value:
    more = [] if axes is None else [as_input(b, "axes", axes)]
    return b.Slice(data, as_input(b, "starts", starts), as_input(b, "ends", ends), *more)


@v10.downgrade
def inputs_become_attributes(
    b: Builder, data: Value, starts: Value, ends: Value, /, *others: Value | None
) -> Value:
    axes, steps = _both(others)
    if steps is not None and any(s != 1 for s in as_ints("steps", steps)):
        raise Unconvertible("Slice:1 has no steps")
    return b.Slice(
        data,
        starts=ints("starts", as_ints("starts", starts)),
        ends=ints("ends", as_ints("ends", ends)),
        axes=None if axes is None else ints("axes", as_ints("axes", axes)),
    )


@v11.downgrade
def axes_from_front(b: Builder, data: Value, starts: Value, ends: Value, /, *others: Value | None) -> Value:
    axes, steps = _both(others)
    if axes is not None and any(a < 0 for a in as_ints("axes", axes)):
        dtype = axes.type.element.dtype if isinstance(axes.type, TensorType) else np.int64
        axes = b.initializer("axes", np.array(from_front(as_ints("axes", axes), data), dtype))
    return b.Slice(data, starts, ends, axes, steps)


@v13.gradient
def gradient(
    g: Gradient,
    data: Value,
    starts: Value,
    ends: Value,
    axes: Value | None = None,
    steps: Value | None = None,
    /,
) -> tuple[Value | None, ...]:
    """Pad what was cut off and skipped; for steps back, or unknown ones, return each element to its place."""
    spread = _with_gaps(g, data, axes, steps)
    if spread is None:
        return moved_back(g, data, g.Slice(numbers_of(g, data), starts, ends, axes, steps)), *(None,) * 4
    axes = g.Range(0, g.Size(starts), 1) if axes is None else axes
    size, left = (g.Gather(g.sizes(x), axes) for x in (data, spread))
    start = g.Cast(starts, to=INT64.number)
    start = g.Where(g.Less(start, 0), g.Add(start, size), start)
    before = g.Min(g.Max(start, 0), size)
    after = g.Sub(g.Sub(size, before), left)
    return padded_along(g, spread, axes, before, after), *(None,) * 4


def _with_gaps(g: Gradient, data: Value, axes: Value | None, steps: Value | None) -> Value | None:
    """Return the gradient of the output with zeros after each element; None where the steps are not small."""
    widths = [] if steps is None else known_ints(steps)
    if widths is None or not all(1 <= width <= _MOST_GAPS for width in widths):
        return None
    numbers = range(len(widths)) if axes is None else known_ints(axes)
    if all(width == 1 for width in widths):
        return g.dy
    if numbers is None or g.shape(data) is None:
        return None
    d = g.dy
    for axis, width in zip(axes_in(numbers, g.rank(data)), widths, strict=True):
        if width > 1:
            apart = padded_along(g, g.Unsqueeze(d, [axis + 1]), [axis + 1], (0,), (width - 1,))
            count = g.Mul(g.Shape(d, start=axis, end=axis + 1), width)
            shape = g.Concat(g.Shape(d, end=axis), count, g.Shape(d, start=axis + 1), axis=0)
            d = g.Reshape(apart, shape, allowzero=1)
    return d


@slicing.examples
def examples() -> Iterator[Example]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    yield Example(1, x, starts=[1, 0], ends=[2, -1], expect=[x[1:2, :-1]])
    yield Example(1, x, starts=[-9], ends=[1000], axes=[1], expect=[x])
    least, most = -(2**63), 2**63 - 1
    cases: list[tuple[int, int, int, list[int]]] = [  # start, end, step, and the selected columns
        (1, most, 1, [1, 2, 3]),
        (0, -1, 2, [0, 2]),
        (-1, least, -1, [3, 2, 1, 0]),
        (most, 0, -2, [3, 1]),
        (3, 1, 1, []),
        (1, 3, -1, []),
        (-9, least, -1, [0]),
        (2, most, most, [2]),
        (2, least, least, [2]),
        (7, 9, 1, []),
        (-2, 9, 1, [2, 3]),
    ]
    for start, end, step, columns in cases:
        for opset in (10, 11, 13):
            cut = [[v] for v in (start, end, 1, step)]
            yield Example(opset, x, *cut, expect=[x[:, columns]])
    yield Example(11, x, np.array([1], np.int32), [3], [-2], expect=[x[1:3]])
    yield Example(13, x, [1, 1], [3, 2], None, [1, 1], expect=[x[1:3, 1:2]])
    yield Example(13, ["a", "b"], [-1], [9], expect=[["b"]])
    yield Example(13, x[:0], [-1], [least], [0], [-1], expect=[x[:0]])
    none = np.array([], np.int64)
    yield Example(13, x, none, none, none, expect=[x])
