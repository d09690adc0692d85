"""NhwcConv: Conv of tensors whose last axis has the channels."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families.windows import fused_convolution
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.schema import FLOATS, Constraint, Example, Input, Operator, Output

nhwc_conv = Operator(
    "NhwcConv",
    domain="com.microsoft",
    summary="`Conv(X, W, B)`, where the last axes of X and Y have the channels.",
    body_opset=18,
)

T = Constraint("T", FLOATS)

v1 = nhwc_conv.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, D1, ..., Dn, C).", differentiable=True),
        Input("W", T, "The filters, as those of Conv: (M, C/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "The bias of each filter, (M).", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, O1, ..., On, M).", differentiable=True)],
    attributes=ATTRIBUTES,
)

v1.infer(fused_convolution.infer_last)
v1.evaluate(fused_convolution.evaluate_last)
v1.body(fused_convolution.emit_with_last)


@nhwc_conv.examples
def examples() -> Iterator[Example]:
    x, w = [[[[1, 10], [2, 20]], [[3, 30], [4, 40]]]], [[[[1]], [[1]]], [[[2]], [[0]]], [[[0]], [[-1]]]]
    y = [[[[11, 2, -10], [22, 4, -20]], [[33, 6, -30], [44, 8, -40]]]]  # by hand
    for kind in (np.float32, np.float64, np.float16):
        call = np.array(x, kind), np.array(w, kind)
        yield Example(1, *call, expect=[np.array(y, kind)])
        yield Example(
            1, *call, np.array([1, 0, 50], kind), expect=[np.array(y, kind) + np.array([1, 0, 50], kind)]
        )
    row = np.array([[[1], [2], [3], [4], [5]]], np.float32)
    pair = [[[1, 10]]]
    yield Example(1, row, pair, auto_pad="SAME_UPPER", strides=[2], expect=[[[[21], [43], [5]]]])
    yield Example(1, row, pair, auto_pad="VALID", dilations=[3], expect=[[[[41], [52]]]])
    yield Example(1, row, pair, kernel_shape=[2], strides=[3], pads=[1, 0], expect=[[[[10], [43]]]])
    cube = np.ones((1, 2, 2, 2, 1), np.float32)
    yield Example(1, cube, np.ones((1, 1, 2, 2, 2), np.float32), expect=[[[[[[8]]]]]])
