"""SampleOp: a copy of its input, which onnxruntime has as an example of an operator."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Constraint, Example, Input, Operator, Output, tensors

sample_op = Operator("SampleOp", domain="com.microsoft", summary="The input.", body_opset=18)

T = Constraint("T", FLOATS, tensors("uint32", "uint64", "int32", "int64"))

v1 = sample_op.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
)

v1.infer(same_as_first)


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return x


@v1.body
def body(b: Builder, x: Value, /) -> Value:
    return b.Identity(x)


@sample_op.examples
def examples() -> Iterator[Example]:
    for kind in (np.float32, np.float16, np.float64, np.int32, np.int64, np.uint32, np.uint64):
        x = np.array([[1, 2, 3]], kind)
        yield Example(1, x, expect=[x])
    yield Example(1, np.float32(2), expect=[np.float32(2)])
    yield Example(1, np.zeros((0, 2), np.float32), expect=[np.zeros((0, 2), np.float32)])
