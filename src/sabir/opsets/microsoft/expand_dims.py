"""ExpandDims: a tensor with one more dimension of size 1."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.shapes.shapes import axis_in, shared_dim
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output

expand_dims = Operator(
    "ExpandDims",
    domain="com.microsoft",
    summary="`X` with a dimension of size 1 at `axis`, which is an axis of the output.",
    body_opset=18,
)

T = Constraint("T", CLASSIC)

v1 = expand_dims.first(
    1,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input(
            "axis",
            "tensor(int32)",
            "A scalar: the position of the new dimension, counted from the back of the output if negative.",
            differentiable=False,
        ),
    ],
    outputs=[Output("Y", T, "The same elements in one more dimension.", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, axis: TensorType, /) -> TensorType:
    check_one("axis", axis)
    if x.shape is None:
        return TensorType(x.element)
    known = contents.ints(axis.known)
    if not known:  # each dimension is the new one, or moves by one
        moved = (shared_dim((1, *x.shape[max(0, i - 1) : i + 1])) for i in range(len(x.shape) + 1))
        return TensorType(x.element, tuple(moved))
    place = axis_in(known[0], len(x.shape) + 1)
    dims = (*x.shape[:place], 1, *x.shape[place:])
    return contents.moved(TensorType(x.element, dims), lambda items: items, x)


@v1.evaluate
def evaluate(x: Array, axis: Array, /) -> Array:
    return np.expand_dims(x, axis_in(int(as_number("axis", axis)), x.ndim + 1))


@v1.body
def body(b: Builder, x: Value, axis: Value, /) -> Value:
    return b.Unsqueeze(x, b.Reshape(typed(b, axis, INT64), as_input(b, "vector", [-1])))


@expand_dims.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for axis, shape in ((0, (1, 2, 3)), (1, (2, 1, 3)), (2, (2, 3, 1)), (-1, (2, 3, 1)), (-3, (1, 2, 3))):
        yield Example(1, x, axis, expect=[x.reshape(shape)])
    yield Example(1, 7, [0], expect=[[7]])
    yield Example(1, ["a"], 1, expect=[[["a"]]])
    yield Example(1, np.zeros((0, 2), np.int8), 1, expect=[np.zeros((0, 1, 2), np.int8)])
