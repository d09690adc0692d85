"""ConvTransposeWithDynamicPads: ConvTranspose whose padding is an input."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal, mod, mul
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import ints_of, shape_of
from sabir.opsets.families.shapes.ranks import check_shape, hold
from sabir.opsets.families.windows.convolution import (
    FILTER_SHAPE,
    GROUP,
    convolve_transposed,
    kernel_of,
    spatial_rank,
    with_bias,
)
from sabir.opsets.families.windows.transposed import Transposed
from sabir.opsets.families.windows.transposed_kernels import convolved_transposed
from sabir.opsets.families.windows.windows import AUTO_PADS, DILATIONS, STRIDES, Window
from sabir.opsets.typing import Array, Ints
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

conv_transpose_with_dynamic_pads = Operator(
    "ConvTransposeWithDynamicPads",
    domain="com.microsoft",
    summary="`ConvTranspose(X, W, B)` with the padding in `Pads`.",
    body_opset=18,
)

T = Constraint("T", FLOATS)

v1 = conv_transpose_with_dynamic_pads.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("W", T, "The weights, (C, M/group, k1, ..., kn).", differentiable=True),
        Input(
            "Pads",
            "tensor(int64)",
            "Elements to remove at the beginning of each spatial axis of the output, then at the end of "
            "each, (2 n); 0 by default. With an `auto_pad` of SAME_UPPER or SAME_LOWER it is not read.",
            optional=True,
            differentiable=False,
        ),
        Input("B", T, "The bias of each output channel, (M).", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "The output, (N, M, O1, ..., On).", differentiable=True)],
    attributes=[
        GROUP,
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: as much padding as makes O = D * stride; otherwise `Pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        STRIDES,
        DILATIONS,
        Attribute(
            "output_padding",
            "ints",
            "Elements to add at the end of each spatial axis before the padding is removed; 0 by default.",
            values=at_least(0),
        ),
        FILTER_SHAPE,
    ],
)


def _is_same(auto_pad: str) -> bool:
    return auto_pad.startswith("SAME")


@v1.infer
def infer(
    x: TensorType, w: TensorType, pads: TensorType | None = None, b: TensorType | None = None, /, *,
    group: int, auto_pad: str, kernel_shape: Ints, **window: Any,
) -> TensorType:  # fmt: skip
    rank = spatial_rank(x, w, kernel_shape)
    if rank is None:
        return TensorType(x.element)
    check_shape("Pads", pads, 2 * rank)
    lengths = (None,) * (rank + 2) if x.shape is None else x.shape
    weights = (None,) * (rank + 2) if w.shape is None else w.shape
    left = mod(lengths[1], group)
    if not may_be_equal(lengths[1], weights[0]) or (isinstance(left, int) and left):
        raise InferenceError(f"{lengths[1]} channels of X do not match weights {w} in {group} groups")
    channels = mul(weights[1], group)
    check_shape("B", b, channels)
    edges = None if pads is None or _is_same(auto_pad) else contents.ints(pads.known)
    if pads is not None and edges is None and not _is_same(auto_pad):
        return TensorType(x.element, (lengths[0], channels, *(None,) * rank))
    windows = _windows(kernel_of(weights, kernel_shape), edges, auto_pad, **window)
    return TensorType(x.element, (lengths[0], channels, *windows.outputs(lengths[2:])))


def _windows(
    kernel: Sequence[Any], edges: Sequence[int] | None, auto_pad: str, *, output_padding: Ints, **steps: Any
) -> Transposed:
    if edges is not None and any(edge < 0 for edge in edges):
        raise InferenceError(f"Pads {list(edges)} must not be negative")
    rule = auto_pad if _is_same(auto_pad) else "NOTSET"
    window = Window.of(kernel, pads=edges, auto_pad=rule, **steps)
    return Transposed.of(window, output_padding=output_padding, output_shape=None, auto_pad=rule)


@v1.evaluate
def evaluate(
    x: Array, w: Array, pads: Array | None = None, b: Array | None = None, /, *, group: int, auto_pad: str,
    kernel_shape: Ints, **window: Any,
) -> Array:  # fmt: skip
    hold(infer, x, w, pads, b, group=group, auto_pad=auto_pad, kernel_shape=kernel_shape, **window)
    edges = None if pads is None or _is_same(auto_pad) else pads.tolist()
    axes = _windows(kernel_of(w.shape, kernel_shape), edges, auto_pad, **window).axes(x.shape[2:])
    y = convolve_transposed(widened(x), widened(w), axes, group)
    return with_bias(y, b, w.shape[1] * group, x.dtype)


@v1.lower
def lower(
    x: Expression, w: Expression, pads: Expression | None = None, b: Expression | None = None, /, *,
    group: int, auto_pad: str, kernel_shape: Ints, **window: Any,
) -> Expression:  # fmt: skip
    edges = None if pads is None or _is_same(auto_pad) else kernels.integers_of(pads, "Pads")
    windows = _windows(kernel_of(w.shape, kernel_shape), edges, auto_pad, **window)
    return convolved_transposed(x, w, b, windows, group)


@v1.body
def body(
    b: Builder, x: Value, w: Value, pads: Value | None = None, bias: Value | None = None, /, *,
    auto_pad: str, **attributes: Any,
) -> Value:  # fmt: skip
    if _is_same(auto_pad):
        return b.ConvTranspose(x, w, bias, auto_pad=auto_pad, **attributes)
    edges = None if pads is None else ints_of(b, pads)
    if pads is None or edges is not None:
        return b.ConvTranspose(x, w, bias, pads=edges, **attributes)
    rank = len(shape_of("X", x)) - 2
    whole = b.ConvTranspose(x, w, bias, **attributes)
    begin = b.Slice(pads, as_input(b, "start", [0]), as_input(b, "end", [rank]))
    end = b.Slice(pads, as_input(b, "start", [rank]), as_input(b, "end", [2 * rank]))
    sizes = b.Sub(b.Shape(whole, start=2), end)
    return b.Slice(whole, begin, sizes, as_input(b, "axes", range(2, rank + 2)))


@conv_transpose_with_dynamic_pads.examples
def examples() -> Iterator[Example]:
    row, filters = [[[1, 10, 100]]], [[[1, 2, 3, 4]]]
    whole = [1, 12, 123, 234, 340, 400]  # by hand: the sum of what each input element adds there
    pads = np.array([1, 2])
    for kind in (np.float32, np.float64, np.float16):
        x, w = np.array(row, kind), np.array(filters, kind)
        yield Example(1, x, w, pads, expect=[np.array([[whole[1:4]]], kind)])
    x, w = np.array(row, np.float32), np.array(filters, np.float32)
    yield Example(1, x, w, expect=[[[whole]]])
    yield Example(1, x, w, pads, np.array([-3], np.float32), expect=[[[[9, 120, 231]]]])
    twice = [1, 2, 13, 24, 130, 240, 300, 400]
    yield Example(1, x, w, [1, 1], strides=[2], output_padding=[1], expect=[[[[*twice[1:], 0][:-1]]]])
    yield Example(1, x, w, [1, 0], auto_pad="VALID", kernel_shape=[4], expect=[[[whole[1:]]]])
    yield Example(1, x, w, [1, 1], auto_pad="SAME_UPPER", expect=[[[whole[1:4]]]])
    yield Example(1, x, w, [0, 0], dilations=[2], expect=[[[[1, 10, 102, 20, 203, 30, 304, 40, 400]]]])
    grid, pair = np.arange(1, 5, dtype=np.float32).reshape(1, 1, 2, 2), [[[[1, 10]], [[0, 1]]]]
    rows = [[[12, 20], [34, 40]], [[6, 7], [8, 9]]]
    yield Example(1, grid, pair, [0, 1, 0, 0], [0, 5], expect=[[rows]])
    apart = np.array([[[1, 3, 2], [30, 40, 0]]], np.float32)  # a group for each channel
    each = np.array([[[1, 1]], [[10, 0]]], np.float32)
    yield Example(1, np.array([[[1, 2], [3, 4]]], np.float32), each, [0, 0], group=2, expect=[apart])
    yield Example(1, x[:0], w, [1, 0], expect=[np.zeros((0, 1, 5), np.float32)])
