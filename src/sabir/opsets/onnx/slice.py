"""Slice: a part of a tensor, by start, end and step along some axes."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.indexing import slices
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.families.indexing.move_gradients import moved_back, numbers_of
from sabir.opsets.families.shapes.axes import as_input, as_ints, from_front, ints, known_ints
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
    return slices.cut(data, tuple(starts), tuple(ends), axes, (1,) * len(starts))


v10.infer(slices.infer)


@v1.evaluate
def evaluate_from_attributes(
    data: Array, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints
) -> Array:
    return slices.part(data, starts, ends, axes, None)


v10.evaluate(slices.evaluate)


@v1.lower
def lower_from_attributes(
    data: Expression, /, *, starts: Sequence[int], ends: Sequence[int], axes: Ints, call: Lowering
) -> Expression:
    return slices.lowered(data, starts, ends, axes, None, call=call)


v10.lower(slices.lower)


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
    axes, steps = slices.axes_and_steps(others)
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
    axes, steps = slices.axes_and_steps(others)
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
