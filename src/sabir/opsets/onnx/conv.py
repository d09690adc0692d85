"""Conv: a window of weights slides over the input."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.base import InferenceError
from sabir.ir import TensorType
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.convolution import convolve, convolved_shape
from sabir.opsets.families.ranks import check_shape
from sabir.opsets.families.windows import AUTO_PADS, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
)

conv = Operator(
    "Conv", summary="At every place, the sum of a filter's weights times the inputs below them, plus a bias."
)

T = Constraint("T", FLOATS)

v1 = conv.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("W", T, "The filters, (M, C/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "One number to add for each filter, (M).", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, M, O1, ..., On).", differentiable=True)],
    attributes=[
        Attribute(
            "group",
            "int",
            "How many parts the channels fall into, each with filters of its own.",
            default=1,
            values=at_least(1),
        ),
        Attribute(
            "pads",
            "ints",
            "Zeros around the input: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: zeros so that O = ceil(D / stride), the odd one at the end or the "
            "beginning; VALID: none; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "dilations",
            "ints",
            "The step between a filter's elements along each axis; 1 by default.",
            values=at_least(1),
        ),
        Attribute(
            "kernel_shape",
            "ints",
            "The filters' spatial size, (k1, ..., kn); `W` tells it too.",
            values=at_least(1),
        ),
    ],
)
v11 = v1.restate(
    11, "States that strides and dilations are 1 by default, and that M must be a multiple of `group`."
)
v22 = v11.widen(22, T=BFLOAT16)


@v1.infer
def infer(
    x: TensorType, w: TensorType, b: TensorType | None = None, /, *, group: int, auto_pad: str,
    kernel_shape: Sequence[int] | None, strides: Sequence[int] | None, dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(
        x, w, b, group=group, auto_pad=auto_pad, kernel_shape=kernel_shape, strides=strides,
        dilations=dilations, pads=pads,
    )  # fmt: skip
    return TensorType(x.element, shape)


@v1.evaluate
def evaluate(
    x: Array, w: Array, b: Array | None = None, /, *, group: int, auto_pad: str,
    kernel_shape: Sequence[int] | None, strides: Sequence[int] | None, dilations: Sequence[int] | None,
    pads: Sequence[int] | None,
) -> Array:  # fmt: skip
    if kernel_shape and tuple(kernel_shape) != w.shape[2:]:
        raise InferenceError(f"kernel_shape {list(kernel_shape)} is not the shape of W {list(w.shape)}")
    window = Window.of(w.shape[2:], strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations)
    y = convolve(widened(x), widened(w), window.axes(x.shape[2:]), group)
    if b is not None:
        check_shape("B", b, len(w))
        y += widened(b).reshape(-1, *(1,) * (x.ndim - 2))
    return y.astype(x.dtype, copy=False)


@conv.examples
def examples() -> Iterator[Example]:
    x, ramp = (
        np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3),
        np.array([[[[1, 0], [0, -1]]]], np.float32),
    )
    for opset in (1, 11, 22):  # each element less its neighbour down and right, by hand
        yield Example(opset, x, ramp, expect=[np.full((1, 1, 2, 2), -4, np.float32)])
        yield Example(opset, x, ramp, np.ones(1, np.float32), strides=[2, 2], pads=[0, 0, 1, 1],
                      expect=[np.array([[[[-3, 4], [8, 10]]]], np.float32)])  # fmt: skip
    row, pair = np.array([[[1, 2, 3, 4, 5]]], np.float32), np.array([[[1, 10]]], np.float32)
    yield Example(
        11, row, pair, auto_pad="SAME_UPPER", expect=[np.array([[[21, 32, 43, 54, 5]]], np.float32)]
    )
    yield Example(
        11, row, pair, auto_pad="SAME_LOWER", expect=[np.array([[[10, 21, 32, 43, 54]]], np.float32)]
    )
    yield Example(
        11, row, pair, auto_pad="SAME_UPPER", strides=[2], expect=[np.array([[[21, 43, 5]]], np.float32)]
    )
    yield Example(11, row, pair, auto_pad="VALID", dilations=[3], expect=[np.array([[[41, 52]]], np.float32)])
    yield Example(
        1, row, pair, kernel_shape=[2], strides=[3], pads=[1, 0], expect=[np.array([[[10, 43]]], np.float32)]
    )
    halves = np.array([[[1, 2], [3, 4]]], np.float16)  # two channels, each its own filter
    yield Example(11, halves, np.array([[[2]], [[3]]], np.float16), group=2,
                  expect=[np.array([[[2, 4], [9, 12]]], np.float16)])  # fmt: skip
    yield Example(
        11, halves.astype(float), np.array([[[1], [2]]], float), strides=[2], expect=[np.array([[[7.0]]])]
    )
    cube = np.arange(16, dtype=np.float32).reshape(1, 2, 2, 2, 2)
    yield Example(
        11, cube, np.ones((1, 2, 2, 2, 2), np.float32), expect=[np.full((1, 1, 1, 1, 1), 120, np.float32)]
    )
    yield Example(22, np.zeros((0, 1, 3, 3), np.float32), ramp, expect=[np.zeros((0, 1, 2, 2), np.float32)])
