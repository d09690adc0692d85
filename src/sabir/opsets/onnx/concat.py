"""Concat: tensors concatenated along an axis."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import LARGE_ARRAY, new_array
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import from_front
from sabir.opsets.families.shapes.shapes import joined_shape
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    as_results,
)

concat = Operator(
    "Concat", summary="The inputs one after another along `axis`; their other dimensions must agree."
)

T = Constraint("T", FLOATS)

v1 = concat.first(
    1,
    inputs=[Input("inputs", T, "Tensors of one rank.", variadic=True, differentiable=True)],
    outputs=[Output("concat_result", T, "Along `axis`, the sum of the inputs' sizes.", differentiable=True)],
    attributes=[Attribute("axis", "int", "The dimension to concatenate along; 1 when absent.")],
)
v4 = v1.evolve(
    4,
    "`axis` is required; every element type is admitted.",
    add=[Attribute("axis", "int", "The dimension, counted from the back if negative.", required=True)],
    widen={"T": CLASSIC},
)
v11 = v4.restate(11, "A negative `axis` counts from the back.")
v13 = v11.widen(13, T=BFLOAT16)


@v1.infer
def infer(*inputs: TensorType, axis: int | None) -> TensorType:
    axis = 1 if axis is None else axis
    element = next((t.element for t in inputs if t.element.number), inputs[0].element)
    shape = joined_shape([t.shape for t in inputs], axis)
    if shape is None:
        return TensorType(element)

    def joined(*known: Array) -> Array:
        return np.concatenate(known, axis)

    return contents.moved(TensorType(element, shape), joined, *_with_gaps(inputs))


def _with_gaps(inputs: tuple[TensorType, ...]) -> list[TensorType]:
    """Give inputs of unknown contents unknown elements, so that the rest of the result stays known."""
    if all(t.known is None for t in inputs):
        return [*inputs]
    small = [t.size if t.is_static and t.known is None else None for t in inputs]
    return [
        t.with_known((None,) * n) if isinstance(n, int) and n <= contents.MOST else t
        for t, n in zip(inputs, small, strict=True)
    ]


@v1.evaluate
def evaluate(*inputs: Array, axis: int | None) -> Array:
    along, first = 1 if axis is None else axis, inputs[0]
    if first.nbytes * len(inputs) < LARGE_ARRAY or any(x.dtype != first.dtype for x in inputs):
        return np.concatenate(inputs, along)
    shape = list(first.shape)
    shape[along] = sum(x.shape[along] for x in inputs)
    return np.concatenate(inputs, along, out=new_array(shape, first.dtype))


@v1.lower
def lower(*inputs: Expression, axis: int | None) -> Expression:
    return loops.join(inputs, 1 if axis is None else axis)


@v4.upgrade
def name_the_axis(b: Builder, *inputs: Value, axis: int | None) -> Value:
    return b.Concat(*inputs, axis=1 if axis is None else axis)


@v4.downgrade
def same_axis(b: Builder, *inputs: Value, axis: int) -> Value:
    return b.Concat(*inputs, axis=axis)


@v11.downgrade
def axis_from_front(b: Builder, *inputs: Value, axis: int) -> Value:
    return b.Concat(*inputs, axis=from_front([axis], inputs[0])[0])


@v13.gradient
def gradient(g: Gradient, *inputs: Value, axis: int) -> tuple[Value, ...]:
    if len(inputs) == 1:
        return (g.dy,)
    sizes = [g.Shape(x, start=axis, end=None if axis == -1 else axis + 1) for x in inputs]
    return as_results(g.op("Split", g.dy, g.Concat(*sizes, axis=0), axis=axis, outputs=len(inputs)))


@concat.examples
def examples() -> Iterator[Example]:
    x, y = np.array([[1, 2], [3, 4]], np.float32), [[5], [6]]
    joined = [[1, 2, 5], [3, 4, 6]]
    yield Example(1, x, y, expect=[joined])
    for opset in (1, 4, 11, 13):
        yield Example(opset, x, y, axis=1, expect=[joined])
    yield Example(11, x, y, axis=-1, expect=[joined])
    yield Example(13, x, np.zeros((0, 2), np.float32), x, axis=0, expect=[[[1, 2], [3, 4]] * 2])
    yield Example(4, ["a"], ["bc"], axis=0, expect=[["a", "bc"]])
    yield Example(13, [7], axis=0, expect=[[7]])
