"""GatedAdd: a tensor plus another one that is scaled row by row."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_alike, check_least_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Constraint, Example, Input, Operator, Output, tensors

gated_add = Operator(
    "GatedAdd",
    domain="com.microsoft",
    summary="`X + Y * gate`; the product is rounded to the element type before it is added.",
    body_opset=18,
    lacks=("`gate_weight`, which onnxruntime's CPU provider refuses too.",),
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))

v1 = gated_add.first(
    1,
    inputs=[
        Input("X", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("Y", T, "The tensor to scale, in the shape of X.", differentiable=True),
        Input(
            "gate",
            T,
            "One factor for each row: the shape of X with a last dimension of 1.",
            differentiable=True,
        ),
        Input("gate_weight", T, "(k, 1): what a gate of k elements a row is multiplied by.", optional=True),
    ],
    outputs=[Output("output", T, "The shape of X.", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, y: TensorType, gate: TensorType, weight: TensorType | None = None, /) -> TensorType:
    if weight is not None:
        raise UnsupportedError("GatedAdd does not compute its gates: multiply by `gate_weight` before")
    check_least_rank("X", x, 1)
    check_alike(["X", "Y"], [x, y])
    if x.shape is not None:
        check_shape("gate", gate, *x.shape[:-1], 1)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, y: Array, gate: Array, weight: Array | None = None, /) -> Array:
    hold(infer, x, y, gate, weight)
    product = (widened(y) * widened(gate)).astype(x.dtype, copy=False)
    return (widened(x) + widened(product)).astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, y: Value, gate: Value, weight: Value | None = None, /) -> Value:
    if weight is not None:
        raise UnsupportedError("GatedAdd does not compute its gates: multiply by `gate_weight` before")
    product = halves.rounded(b, b.Mul(halves.widened(b, y), halves.widened(b, gate)), x)
    return halves.rounded(b, b.Add(halves.widened(b, x), halves.widened(b, product)), x)


@gated_add.examples
def examples() -> Iterator[Example]:
    x, y, gate = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]]), np.array([[0.5], [-1]])
    total = np.array([[3.5, 5], [-4, -4]])
    for kind in (np.float32, np.float16, ml_dtypes.bfloat16):
        inputs = [a.astype(kind) for a in (x, y, gate)]
        yield Example(1, *inputs, expect=[total.astype(kind)])
        yield Example(1, *(a[0] for a in inputs), expect=[total[0].astype(kind)])
    # 3 * 683 = 2049 is between two float16 and rounded to 2048; added exactly to 1 and rounded, it were 2050
    yield Example(1, *(np.array([n], np.float16) for n in (1, 683, 3)), expect=[[2048]])
    empty = np.zeros((0, 3), np.float32)
    yield Example(1, empty, empty, empty[:, :1], expect=[empty])
