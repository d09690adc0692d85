"""BiasSplitGelu: one half of the channels times the Gaussian error linear unit of the other."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, floor_div
from sabir.opsets.families.numbers import gelus, halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

bias_split_gelu = Operator(
    "BiasSplitGelu",
    domain="com.microsoft",
    summary="`l * gelu(r)`, the exact unit, where `l` and `r` are the halves of `X + bias`.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"))

v1 = bias_split_gelu.first(
    1,
    inputs=[
        Input("X", T, "(batch, positions, channels), of an even number of channels.", differentiable=True),
        Input("bias", T, "(channels).", differentiable=True),
    ],
    outputs=[Output("Y", T, "(batch, positions, channels / 2).", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, bias: TensorType, /) -> TensorType:
    check_rank("X", x, 3)
    size = x.shape[-1] if x.shape else None
    check_shape("bias", bias, size)
    if isinstance(size, int) and size % 2:
        raise InferenceError(f"{size} channels have no halves")
    return TensorType(x.element, x.shape and (*x.shape[:-1], floor_div(size, 2)))


@v1.evaluate
def evaluate(x: Array, bias: Array, /) -> Array:
    hold(infer, x, bias)
    left, right = np.split(widened(x) + widened(bias), 2, axis=-1)
    return (left * gelus.gelu(right, "none")).astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, bias: Value, /) -> Value:
    total = b.Add(halves.widened(b, x), halves.widened(b, bias))
    left, right = b.Split(total, axis=-1, num_outputs=2, outputs=2)
    return halves.rounded(b, b.Mul(left, gelus.emitted(b, right, "none")), x)


@bias_split_gelu.examples
def examples() -> Iterator[Example]:
    x, bias = np.array([[[1, 2, 0.5, -1.5], [3, 4, 2, 0.5]]]), np.array([1, -2, 0.5, 0.5])
    # mpmath: the unit of 1, -1, 2.5 and 1
    y = np.array([[[2 * 0.8413447460685429, 0], [4 * 2.4844758366855597, 2 * 0.8413447460685429]]])
    for kind, rough in ((np.float32, 1e-6), (np.float16, 2e-3)):
        yield Example(1, x.astype(kind), bias.astype(kind), expect=[y.astype(kind)], tolerance=rough)
    empty = np.zeros((0, 1, 2), np.float32)
    yield Example(1, empty, np.ones(2, np.float32), expect=[empty[..., :1]])
