"""Squeeze: a tensor without some dimensions of size 1."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, Shape, TensorType, Value, is_one, known_equal, may_be_equal
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, as_ints, from_front, ints
from sabir.opsets.families.shapes.ranks import as_list, check_rank
from sabir.opsets.families.shapes.shapes import axes_in, with_some_dropped
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    SMALL_TYPES_AND_FLOAT8,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

squeeze = Operator("Squeeze", summary="`data` without the dimensions in `axes`, or without all of size 1.")

T = Constraint("T", CLASSIC)
_AXES = "The dimensions to remove, each of size 1, from the back if negative; all of size 1 when absent."

v1 = squeeze.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("squeezed", T, "The same elements in fewer dimensions.", differentiable=True)],
    attributes=[
        Attribute("axes", "ints", "The dimensions to remove; all of size 1 when absent.", lists_axes=True)
    ],
)
v11 = v1.restate(11, "Negative `axes` count from the back.")
v13 = v11.evolve(
    13,
    "`axes` moves from attribute to input.",
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        Input("axes", "tensor(int64)", _AXES, optional=True, differentiable=False, lists_axes=True),
    ],
    drop=["axes"],
    widen={"T": BFLOAT16},
)
v25 = v13.widen_stepwise(SMALL_TYPES_AND_FLOAT8, "T")


@v1.infer
def infer_from_attribute(data: TensorType, /, *, axes: Ints) -> TensorType:
    if data.shape is None:
        return TensorType(data.element)
    dims = _without_ones(data.shape) if axes is None else _without(data.shape, axes)
    return contents.moved(TensorType(data.element, dims), lambda known: known, data)


@v13.infer
def infer(data: TensorType, axes: TensorType | None = None, /) -> TensorType:
    if axes is None:
        return infer_from_attribute(data, axes=None)
    check_rank("axes", axes, 1)
    known = contents.ints(axes.known)
    if known is not None:
        return infer_from_attribute(data, axes=known)
    if data.shape is None or not isinstance(axes.size, int):
        return TensorType(data.element)
    dims = with_some_dropped(data.shape, axes.size, lambda d: known_equal(d, 1) is not False)
    return TensorType(data.element, dims)


def _without(shape: Shape, axes: Sequence[int]) -> Shape:
    places = axes_in(axes, len(shape))
    for place in places:
        if not may_be_equal(shape[place], 1):
            raise InferenceError(f"axis {place} of size {shape[place]} cannot be removed; its size must be 1")
    return tuple(d for i, d in enumerate(shape) if i not in places)


def _without_ones(shape: Shape) -> Shape | None:
    """Return the shape without its ones; None where a dimension may be 1."""
    if any(is_one(d) is None for d in shape):
        return None
    return tuple(d for d in shape if not is_one(d))


@v1.evaluate
def evaluate_from_attribute(data: Array, /, *, axes: Ints) -> Array:
    return np.squeeze(data, None if axes is None else tuple(axes))


@v13.evaluate
def evaluate(data: Array, axes: Array | None = None, /) -> Array:
    return np.squeeze(data, None if axes is None else tuple(as_list("axes", axes)))


@v1.lower
def lower(data: Expression, axes: Expression | None = None, /, *, call: Lowering) -> Expression:
    """The inferred shape tells what the operand or the attribute means; an unknown operand may be wrong."""
    if axes is not None:
        kernels.integers_of(axes, "`axes`")
    return loops.reshape(data, call.shape())


@v11.downgrade
def axes_from_front(b: Builder, data: Value, /, *, axes: Ints) -> Value:
    return b.Squeeze(data, axes=None if axes is None else ints("axes", from_front(axes, data)))


@v13.upgrade
def axes_become_an_input(b: Builder, data: Value, /, *, axes: Ints) -> Value:
    return b.Squeeze(data) if axes is None else b.Squeeze(data, as_input(b, "axes", axes))


@v13.downgrade
def axes_become_an_attribute(b: Builder, data: Value, axes: Value | None = None, /) -> Value:
    return b.Squeeze(data, axes=None if axes is None else ints("axes", as_ints("axes", axes)))


@v13.gradient
def gradient(g: Gradient, data: Value, axes: Value | None = None, /) -> tuple[Value, None]:
    return g.Reshape(g.dy, g.sizes(data), allowzero=1), None


@squeeze.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1], [2]]], np.float32)
    for opset in (1, 11):
        yield Example(opset, x, axes=[0], expect=[[[1], [2]]])
        yield Example(opset, x, axes=[], expect=[x])
    yield Example(11, x, axes=[-1, 0], expect=[[1, 2]])
    for opset in (13, 21, 23, 24, 25):
        yield Example(opset, x, [-1], expect=[[[1, 2]]])
    for opset in (1, 13):
        yield Example(opset, x, expect=[[1, 2]])
    yield Example(13, x, [], expect=[x])
    yield Example(13, [["a"]], expect=["a"])
    yield Example(13, np.zeros((1, 0), np.float32), expect=[np.zeros(0, np.float32)])
    yield Example(13, [7], [0], expect=[7])
