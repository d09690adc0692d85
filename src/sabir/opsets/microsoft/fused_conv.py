"""FusedConv: a convolution, plus a summand, and an activation."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.windows import fused_convolution
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.opsets.families.windows.fused_convolution import ACTIVATION_ATTRIBUTES
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Constraint, Example, Input, Operator, Output

fused_conv = Operator(
    "FusedConv",
    domain="com.microsoft",
    summary="An activation of `Conv(X, W, B) + Z`.",
    body_opset=18,
)

T = Constraint("T", FLOATS)

v1 = fused_conv.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("W", T, "The filters, (M, C/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "The bias of each filter, (M).", optional=True, differentiable=True),
        Input("Z", T, "A summand of the output's shape.", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, M, O1, ..., On).", differentiable=True)],
    attributes=[*ATTRIBUTES, *ACTIVATION_ATTRIBUTES],
)


@v1.infer
def infer(
    x: TensorType, w: TensorType, bias: TensorType | None = None, z: TensorType | None = None, /,
    **attributes: Any,
) -> TensorType:  # fmt: skip
    return fused_convolution.infer(x, w, bias, z, **attributes)


@v1.evaluate
def evaluate(
    x: Array, w: Array, bias: Array | None = None, z: Array | None = None, /, **attributes: Any
) -> Array:
    return fused_convolution.evaluate(x, w, bias, z, **attributes)


@v1.body
def body(
    b: Builder, x: Value, w: Value, bias: Value | None = None, z: Value | None = None, /, **attributes: Any
) -> Value:
    return fused_convolution.emit(b, x, w, bias, z, **attributes)


@fused_conv.examples
def examples() -> Iterator[Example]:
    x, w = [[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], [[[[1, 0], [0, -1]]], [[[0, 1], [1, 0]]]]
    for kind in (np.float32, np.float64, np.float16):  # sums of -4 and of 6, 8, 12, 14, by hand
        call = np.array(x, kind), np.array(w, kind)
        y = np.array([[[[0, 0], [0, 0]], [[6, 8], [12, 14]]]], kind)
        yield Example(1, *call, activation="Relu", expect=[y])
        yield Example(
            1, *call, np.array([5, -20], kind), activation="Relu", expect=[[[[[1] * 2] * 2, [[0] * 2] * 2]]]
        )
    call = np.array(x, np.float32), np.array(w, np.float32)
    yield Example(1, *call, expect=[[[[[-4, -4], [-4, -4]], [[6, 8], [12, 14]]]]])
    z = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    y = [[[[0, 0], [0, 0]], [[10, 13], [18, 21]]]]
    yield Example(1, *call, None, z, activation="Relu", expect=[y])
    yield Example(1, *call, np.array([2, 1], np.float32), z, activation="Relu")
    activations: dict[str, list[float]] = {
        "Tanh": [], "Sigmoid": [], "HardSwish": [], "LeakyRelu": [0.25], "Clip": [-3.5, 6.5],
        "HardSigmoid": [0.0625, 0.25],
    }  # fmt: skip
    for name, parameters in activations.items():
        given: dict[str, Any] = {"activation_params": parameters} if parameters else {}
        yield Example(1, *call, activation=name, **given)
    row, pair = np.array([[[1, -2, 3, -4, 5]]], np.float32), [[[1, 10]]]
    yield Example(1, row, pair, activation="Relu", auto_pad="SAME_UPPER", strides=[2])
    yield Example(1, row, pair, activation="Relu", dilations=[2], pads=[1, 0], kernel_shape=[2])
    yield Example(1, np.concatenate([row, -row], 1), [[[2]], [[3]]], activation="Relu", group=2)
    yield Example(1, np.zeros((0, 1, 3, 3), np.float32), call[1], activation="Relu")
