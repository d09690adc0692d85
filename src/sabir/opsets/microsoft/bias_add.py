"""BiasAdd: a tensor, a bias and a residual, added."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_alike, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

bias_add = Operator("BiasAdd", domain="com.microsoft", summary="`X + bias + skip`.", body_opset=18)

T = Constraint("T", tensors("float", "float16"))

v1 = bias_add.first(
    1,
    inputs=[
        Input("X", T, "(batch, positions, channels).", differentiable=True),
        Input("bias", T, "(channels).", differentiable=True),
        Input("skip", T, "The residual, in the shape of X.", differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, bias: TensorType, skip: TensorType, /) -> TensorType:
    check_rank("X", x, 3)
    check_alike(["X", "skip"], [x, skip])
    check_shape("bias", bias, x.shape[-1] if x.shape else None)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, bias: Array, skip: Array, /) -> Array:
    hold(infer, x, bias, skip)
    return (widened(x) + widened(bias) + widened(skip)).astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, bias: Value, skip: Value, /) -> Value:
    wide = [halves.widened(b, v) for v in (x, bias, skip)]
    return halves.rounded(b, b.Add(b.Add(wide[0], wide[1]), wide[2]), x)


@bias_add.examples
def examples() -> Iterator[Example]:
    x, bias = np.array([[[1, 2], [3, 4]]]), np.array([0.5, -1])
    for kind in (np.float32, np.float16):
        skip = (10 * x).astype(kind)
        y = np.array([[[11.5, 21], [33.5, 43]]], kind)
        yield Example(1, x.astype(kind), bias.astype(kind), skip, expect=[y])
    empty = np.zeros((2, 0, 2), np.float32)
    yield Example(1, empty, bias.astype(np.float32), empty, expect=[empty])
