"""NhwcFusedConv: FusedConv of tensors whose last axis has the channels."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.opsets.families.windows import fused_convolution
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.opsets.families.windows.fused_convolution import ACTIVATION_ATTRIBUTES
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

nhwc_fused_conv = Operator(
    "NhwcFusedConv",
    domain="com.microsoft",
    summary="An activation of `Conv(X, W, B) + Z`, where the last axes of X, Z and Y have the channels.",
    body_opset=18,
)

T = Constraint("T", tensors("float16", "float"))

v1 = nhwc_fused_conv.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, D1, ..., Dn, C).", differentiable=True),
        Input("W", T, "The filters, as those of Conv: (M, C/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "The bias of each filter, (M).", optional=True, differentiable=True),
        Input("Z", T, "A summand of the output's shape.", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, O1, ..., On, M).", differentiable=True)],
    attributes=[*ATTRIBUTES, *ACTIVATION_ATTRIBUTES],
)

v1.infer(fused_convolution.infer_last)
v1.evaluate(fused_convolution.evaluate_last)
v1.body(fused_convolution.emit_with_last)


@nhwc_fused_conv.examples
def examples() -> Iterator[Example]:
    x, w = (
        [[[[1, -1], [2, 0]], [[3, 1], [4, 2]]]],
        [[[[1, 0], [0, 1]], [[0, 0], [0, 2]]], [[[0] * 2] * 2] * 2],
    )
    for kind in (np.float32, np.float16):  # 1 + 4 + 2 * 2 = 9, and no weights of the second filter; by hand
        call = np.array(x, kind), np.array(w, kind), np.array([-10, 0.5], kind)
        yield Example(1, *call[:2], expect=[np.array([[[[9, 0]]]], kind)])
        yield Example(1, *call, activation="Relu", expect=[np.array([[[[0, 0.5]]]], kind)])
        z = np.array([[[[4, -2]]]], kind)
        yield Example(1, *call, z, activation="Relu", expect=[np.array([[[[3, 0]]]], kind)])
        clip: dict[str, Any] = {"activation": "Clip", "activation_params": [-0.75, 0.25]}
        yield Example(1, *call[:2], None, z, **clip, expect=[np.array([[[[0.25, -0.75]]]], kind)])
    row = np.array([[[1, 10], [2, 20], [3, 30]]], np.float32)
    y = [[[1, 20], [3, 60], [5, 100], [3, 60]]]
    yield Example(1, row, [[[1, 1]], [[2, 2]]], group=2, pads=[1, 1], expect=[y])
    yield Example(1, row[:0], [[[1, 1]], [[2, 2]]], group=2, expect=[np.zeros((0, 2, 2), np.float32)])
