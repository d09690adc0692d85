"""QLinearConv: the convolution of quantized numbers, quantized again."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.elements import DOUBLE, FLOAT
from sabir.ir import Builder, Value
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import quantized_convolutions
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.shapes.extents import shape_of, unsqueezed
from sabir.opsets.families.windows.convolution import ATTRIBUTES
from sabir.schema import Example, Operator

qlinear_conv = Operator(
    "QLinearConv",
    summary="`x - x_zero_point` convolved with `w - w_zero_point`, plus `B`, times `x_scale * w_scale / "
    "y_scale`, rounded, plus `y_zero_point`, saturated.",
)

v10 = qlinear_conv.first(
    10,
    inputs=quantized_convolutions.inputs("(N, C, D1, ..., Dn)"),
    outputs=quantized_convolutions.outputs("(N, M, O1, ..., On)"),
    attributes=ATTRIBUTES,
)

v10.infer(quantized_convolutions.infer)
v10.evaluate(quantized_convolutions.evaluate)
v10.lower(quantized_convolutions.lower)


@v10.downgrade
def convolve_floats(  # ruff: ignore[too-many-arguments, too-many-positional-arguments]  the operator's signature
    b: Builder, x: Value, x_scale: Value, x_zero: Value, w: Value, w_scale: Value, w_zero: Value,
    y_scale: Value, y_zero: Value, bias: Value | None = None, /, **attributes: Any,
) -> Value:  # fmt: skip
    y = graphs.convolution(b, x, w, x_zero, w_zero, **attributes)
    spatial = range(1, len(shape_of("x", x)) - 1)
    if bias is not None:  # a sum with 32 bits is exact as double
        addend = unsqueezed(b, b.Cast(bias, to=DOUBLE.number), spatial)
        y = b.Add(y if element_of(y) is DOUBLE else b.Cast(y, to=DOUBLE.number), addend)
    if element_of(y) is not FLOAT:
        y = b.Cast(y, to=FLOAT.number)
    each = unsqueezed(b, w_scale, spatial) if shape_of("w_scale", w_scale) else w_scale
    scales = b.Mul(graphs.single(b, x_scale), each)
    return graphs.requantized(b, y, b.Div(scales, graphs.single(b, y_scale)), y_zero)


@qlinear_conv.examples
def examples() -> Iterator[Example]:
    """Each input is followed by its scale and zero point, then come those of the output."""
    u, s = np.uint8, np.int8
    x, w = np.arange(2, 11, dtype=u).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), u)
    # sums of four minus a zero point of 1, by hand: 12, 16, 24, 28
    yield Example(10, x, 0.5, 1, w, 1, 0, 4, u(3), expect=[[[[[5, 5], [6, 7]]]]])
    y = [[21, 23, 25], [25, 32, 36], [31, 44, 48]]
    yield Example(10, x, 1, 1, w, 1, 0, 1, s(-100), [120], pads=[1, 1, 0, 0], expect=[[[y]]])
    row, pair = [[[1, 2, 3, 4, 255]]], np.array([[[1, -128]], [[127, 2]]], s)
    # each filter has its scale and zero point: sums -258, -516 and 125, 375 (see ConvInteger)
    call, y = (row, 2, u(0), pair, [0.25, 0.01], [1, 2], 2, u(200)), [[136, 71], [201, 204]]
    yield Example(10, *call, strides=[2], expect=[[y]])
    call, y = (row, 1, u(0), pair, 1, 0, 1, s(0), [0, 2**24]), [[-128, -128], [127, 127]]
    yield Example(10, *call, strides=[2], expect=[[y]])
    call = [[[1, 2], [3, 4]]], 1, u(0), [[[2]], [[3]]], 1, u(0), 2, u(0)
    yield Example(10, *call, group=2, kernel_shape=[1], expect=[[[[1, 2], [4, 6]]]])
    call, y = (row, 1, u(0), pair[:1], 0.0078125, 0, 1, u(255)), [253, 252, 251, 0, 255]
    yield Example(10, *call, auto_pad="SAME_UPPER", dilations=[2], expect=[[[y]]])
    yield Example(10, x[:0], 1, 0, w, 1, 0, 1, s(1), expect=[np.zeros((0, 1, 2, 2), s)])
