"""Conv: a window of weights slides over the input."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.windows.convolution import ATTRIBUTES, convolve, convolved_shape, with_bias
from sabir.opsets.families.windows.convolution_gradients import Filters, gradient_of_convolution
from sabir.opsets.families.windows.window_kernels import convolved
from sabir.opsets.families.windows.windows import Window
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

conv = Operator(
    "Conv", summary="For each window, the sum of its elements times the weights of a filter, plus a bias."
)

T = Constraint("T", FLOATS)

v1 = conv.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("W", T, "The filters, (M, C/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "The bias of each filter, (M).", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, M, O1, ..., On).", differentiable=True)],
    attributes=ATTRIBUTES,
)
v11 = v1.restate(
    11, "States that strides and dilations are 1 by default, and that M must be a multiple of `group`."
)
v22 = v11.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, w: TensorType, b: TensorType | None = None, /, **attributes: Any) -> TensorType:
    return TensorType(x.element, convolved_shape(x, w, b, **attributes))


@v1.evaluate
def evaluate(
    x: Array, w: Array, b: Array | None = None, /, *, group: int, kernel_shape: Sequence[int] | None,
    **window: Any,
) -> Array:  # fmt: skip
    if kernel_shape and tuple(kernel_shape) != w.shape[2:]:
        raise InferenceError(
            f"kernel_shape {list(kernel_shape)} is not the spatial shape of W {list(w.shape)}"
        )
    axes = Window.of(w.shape[2:], **window).axes(x.shape[2:])
    return with_bias(convolve(widened(x), widened(w), axes, group), b, len(w), x.dtype)


@v1.lower
def lower(
    x: Expression, w: Expression, b: Expression | None = None, /, *, group: int,
    kernel_shape: Sequence[int] | None, **window: Any,
) -> Expression:  # fmt: skip
    return convolved(x, w, b, group=group, kernel_shape=kernel_shape, **window)


@v11.gradient
def gradient(
    g: Gradient, x: Value, w: Value, b: Value | None = None, /, *, pads: Ints, auto_pad: str,
    **attributes: Any,
) -> tuple[Value, Value, Value | None]:  # fmt: skip
    filters = Filters.of(g, w, **attributes)
    rank = len(filters.strides)
    edges = tuple(pads or ())[:rank] if auto_pad == "NOTSET" else ()
    begin = None if auto_pad.startswith("SAME") else edges or (0,) * rank
    return gradient_of_convolution(g, x, b, filters, begin, upper=auto_pad == "SAME_UPPER")


@conv.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, w = np.arange(1, 10, dtype=f).reshape(1, 1, 3, 3), [[[[1, 0], [0, -1]]]]
    padded: dict[str, Any] = {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    for opset in (1, 11, 22):  # each element minus its neighbour down and right, by hand
        yield Example(opset, x, w, expect=[[[[[-4, -4], [-4, -4]]]]])
        yield Example(opset, x, w, [1], **padded, expect=[[[[[-3, 4], [8, 10]]]]])
    row, pair = np.array([[[1, 2, 3, 4, 5]]], f), [[[1, 10]]]
    yield Example(11, row, pair, auto_pad="SAME_UPPER", expect=[[[[21, 32, 43, 54, 5]]]])
    yield Example(11, row, pair, auto_pad="SAME_LOWER", expect=[[[[10, 21, 32, 43, 54]]]])
    yield Example(11, row, pair, auto_pad="SAME_UPPER", strides=[2], expect=[[[[21, 43, 5]]]])
    yield Example(11, row, pair, auto_pad="VALID", dilations=[3], expect=[[[[41, 52]]]])
    yield Example(1, row, pair, kernel_shape=[2], strides=[3], pads=[1, 0], expect=[[[[10, 43]]]])
    halves = np.array([[[1, 2], [3, 4]]], np.float16)  # two channels, each with its own filter
    yield Example(11, halves, [[[2]], [[3]]], group=2, expect=[[[[2, 4], [9, 12]]]])
    yield Example(11, halves.astype(float), [[[1], [2]]], strides=[2], expect=[[[[7.0]]]])
    cube = np.arange(16, dtype=f).reshape(1, 2, 2, 2, 2)
    yield Example(11, cube, np.ones((1, 2, 2, 2, 2), f), expect=[[[[[[120]]]]]])
    yield Example(22, np.zeros((0, 1, 3, 3), f), w, expect=[np.zeros((0, 1, 2, 2), f)])
