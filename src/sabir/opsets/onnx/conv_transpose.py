"""ConvTranspose: each input element, times the weights, is added to a window of the output."""

from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, Value, may_be_equal, mod, mul
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.size_vectors import combined, padded, sizes_of
from sabir.opsets.families.windows.convolution import (
    FILTER_SHAPE,
    GROUP,
    convolve_transposed,
    kernel_of,
    spatial_rank,
)
from sabir.opsets.families.windows.convolution_gradients import Filters, begins, of_bias, of_filters
from sabir.opsets.families.windows.transposed import Transposed
from sabir.opsets.families.windows.transposed_kernels import convolved_transposed
from sabir.opsets.families.windows.windows import AUTO_PADS, DILATIONS, STRIDES, Window
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

conv_transpose = Operator(
    "ConvTranspose",
    summary="The transpose of a convolution: each input element, times the weights, is added to its window.",
)

T = Constraint("T", FLOATS)

v1 = conv_transpose.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("W", T, "The weights, (C, M/group, k1, ..., kn).", differentiable=True),
        Input("B", T, "The bias of each output channel, (M).", optional=True, differentiable=True),
    ],
    outputs=[
        Output(
            "Y",
            T,
            "(N, M, O1, ..., On), O = stride * (D - 1) + dilation * (k - 1) + 1 + output_padding - pads.",
            differentiable=True,
        )
    ],
    attributes=[
        GROUP,
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: as much padding as makes O = D * stride, an odd element at the end or "
            "the beginning; VALID: no padding; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        STRIDES,
        Attribute(
            "pads",
            "ints",
            "Elements to remove at the beginning of each spatial axis of the output, then at the end of "
            "each; 0 by default.",
            values=at_least(0),
        ),
        Attribute(
            "output_padding",
            "ints",
            "Elements to add at the end of each spatial axis of the output; 0 by default.",
            values=at_least(0),
        ),
        DILATIONS,
        Attribute(
            "output_shape",
            "ints",
            "(O1, ..., On), which determines the padding; an odd element is at the beginning unless "
            "`auto_pad` is SAME_UPPER.",
            values=at_least(0),
        ),
        FILTER_SHAPE,
    ],
)
v11 = v1.restate(
    11,
    "States the defaults of strides and dilations, and corrects on which side an odd element of padding is.",
)
v22 = v11.widen(22, T=BFLOAT16)


@v1.infer
def infer(
    x: TensorType, w: TensorType, b: TensorType | None = None, /, *, group: int,
    kernel_shape: Sequence[int] | None, **window: Any,
) -> TensorType:  # fmt: skip
    rank = spatial_rank(x, w, kernel_shape)
    if rank is None:
        return TensorType(x.element)
    lengths = (None,) * (rank + 2) if x.shape is None else x.shape
    weights = (None,) * (rank + 2) if w.shape is None else w.shape
    left = mod(lengths[1], group)
    if not may_be_equal(lengths[1], weights[0]) or (isinstance(left, int) and left):
        raise InferenceError(f"{lengths[1]} channels do not match weights {w} in {group} groups")
    windows = _windows(kernel_of(weights, kernel_shape), **window)
    check_shape("B", b, mul(weights[1], group))
    addends = b.shape[0] if b is not None and b.shape else None
    channels = same_dim((mul(weights[1], group), addends), "channels of W and B")
    return TensorType(x.element, (lengths[0], channels, *windows.outputs(lengths[2:])))


def _windows(
    kernel: Sequence[Dim], *, output_padding: Sequence[int] | None, output_shape: Sequence[int] | None,
    auto_pad: str, **window: Any,
) -> Transposed:  # fmt: skip
    return Transposed.of(
        Window.of(kernel, auto_pad=auto_pad, **window),
        output_padding=output_padding, output_shape=output_shape, auto_pad=auto_pad,
    )  # fmt: skip


@v1.evaluate
def evaluate(
    x: Array, w: Array, b: Array | None = None, /, *, group: int, kernel_shape: Sequence[int] | None,
    **window: Any,
) -> Array:  # fmt: skip
    axes = _windows(kernel_of(w.shape, kernel_shape), **window).axes(x.shape[2:])
    y = convolve_transposed(widened(x), widened(w), axes, group)
    if b is not None:
        check_shape("B", b, w.shape[1] * group)
        y += widened(b).reshape(-1, *(1,) * (x.ndim - 2))
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(
    x: Expression, w: Expression, b: Expression | None = None, /, *, group: int,
    kernel_shape: Sequence[int] | None, **window: Any,
) -> Expression:  # fmt: skip
    return convolved_transposed(x, w, b, _windows(kernel_of(w.shape, kernel_shape), **window), group)


@v11.gradient
def gradient(
    g: Gradient,
    x: Value,
    w: Value,
    b: Value | None = None,
    /,
    *,
    pads: Ints,
    output_padding: Ints,
    output_shape: Ints,
    auto_pad: str,
    **attributes: Any,
) -> tuple[Value, Value, Value | None]:
    """A convolution of the output's gradient with the same weights."""
    filters = Filters.of(g, w, **attributes)
    rank = len(filters.strides)
    covered = filters.covered(g, sizes_of(g, x))
    missing = combined(g, "Sub", covered, sizes_of(g, g.dy))
    if output_shape or auto_pad.startswith("SAME"):
        added = combined(g, "Add", missing, tuple(output_padding or (0,) * rank))
        begin = begins(g, added, upper=auto_pad == "SAME_UPPER")
    else:
        begin = (tuple(pads or ()) if auto_pad == "NOTSET" else ())[:rank] or (0,) * rank
    dy = padded(g, g.dy, begin, combined(g, "Sub", missing, begin))
    dx = g.Conv(dy, w, group=filters.group, strides=filters.strides, dilations=filters.dilations)
    return dx, of_filters(g, dy, x, filters), None if b is None else of_bias(g)


@conv_transpose.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, w = np.array([[[1, 10, 100]]], f), [[[1, 2, 3, 4]]]
    whole = [1, 12, 123, 234, 340, 400]  # by hand: the sum of what each input element adds there
    twice = [1, 2, 13, 24, 130, 240, 300, 400]
    thrice = [1, 2, 3, 14, 20, 30, 140, 200, 300, 400]
    calls: list[tuple[dict[str, Any], list[int]]] = [
        ({}, whole),
        ({"pads": [1, 2]}, whole[1:4]),
        ({"strides": [2]}, twice),
        ({"strides": [2], "output_padding": [1], "pads": [1, 1]}, [*twice[1:], 0][:-1]),
        ({"dilations": [2]}, [1, 10, 102, 20, 203, 30, 304, 40, 400]),
        ({"auto_pad": "VALID", "kernel_shape": [4]}, whole),
        # padding as in onnxruntime, in every version
        ({"auto_pad": "SAME_UPPER"}, whole[1:4]),
        ({"auto_pad": "SAME_LOWER"}, whole[2:5]),
        ({"auto_pad": "SAME_UPPER", "strides": [2]}, twice[1:7]),
        ({"auto_pad": "SAME_UPPER", "strides": [5]}, [1, 2, 3, 4, 0, 10, 20, 30, 40, 0, 100, 200, 300, 400]),
        ({"output_shape": [3]}, whole[2:5]),
        ({"output_shape": [3], "auto_pad": "SAME_UPPER"}, whole[1:4]),
        ({"output_shape": [9], "output_padding": [1], "strides": [3]}, [*thrice[1:]]),
        ({"output_shape": [12], "strides": [3]}, [*thrice, 0, 0]),
    ]
    for opset in (1, 11, 22):
        for attributes, y in calls:
            yield Example(opset, x, w, expect=[[[y]]], **attributes)
    grid = np.arange(1, 5, dtype=f).reshape(1, 1, 2, 2)
    pair = [[[[1, 10]], [[0, 1]]]]  # two output channels from one
    rows = [[[1, 12, 20], [3, 34, 40]], [[5, 6, 7], [5, 8, 9]]]
    yield Example(11, grid, pair, [0, 5], expect=[[rows]])


@conv_transpose.examples
def examples_of_several_axes_and_groups() -> Iterator[Example]:
    f = np.float32
    halves = np.array([[[1, 2]], [[3, 4]]], np.float16).reshape(1, 2, 2)
    each = [[[1, 1]], [[10, 0]]]
    apart = [[[1, 3, 2], [30, 40, 0]]]  # a group for each channel
    yield Example(11, halves, each, group=2, expect=[apart])
    brain = ml_dtypes.bfloat16
    yield Example(22, halves.astype(brain), each, group=2, expect=[apart])
    cube, corners = np.full((2, 1, 2, 2, 2), 2.0), [1.0, 2, 1]  # how many windows meet
    meeting = np.einsum("i,j,k->ijk", corners, corners, corners)
    yield Example(11, cube, np.ones((1, 1, 2, 2, 2)), expect=[np.full((2, 1, 3, 3, 3), 2 * meeting)])
    yield Example(11, np.zeros((0, 1, 3), f), np.ones((1, 1, 4), f), expect=[np.zeros((0, 1, 6), f)])
