"""QLinearAveragePool: the mean of each window of a quantized tensor, quantized again.

onnxruntime adds the floats of a window in order, from its first element, and adds the zero point before it
rounds. The same roundings are made here, so that ties fall alike.
"""

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization import scaled
from sabir.opsets.families.quantization.quantization_kernels import only
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.families.windows.layouts import (
    first_to_last,
    last_to_first,
    type_first_to_last,
    type_last_to_first,
)
from sabir.opsets.families.windows.pooling import pooled_type, taps_backwards
from sabir.opsets.families.windows.window_kernels import averaged, pooled
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
    WindowAxis,
)
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, Unconvertible, tensors

qlinear_average_pool = Operator(
    "QLinearAveragePool",
    domain="com.microsoft",
    summary="The mean of each window of `dequantize(X)`, quantized.",
    body_opset=18,
)

T = Constraint("T", tensors("int8", "uint8"))

v1 = qlinear_average_pool.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn), or (N, D1, ..., Dn, C) with `channels_last`."),
        *scaled.parameters("x_scale", "x_zero_point", T, "X"),
        *scaled.parameters("y_scale", "y_zero_point", T, "Y"),
    ],
    outputs=[Output("Y", T, "The means, with O1, ..., On instead of D1, ..., Dn.")],
    attributes=[
        KERNEL_SHAPE,
        STRIDES,
        PADS,
        AUTO_PAD,
        CEIL_MODE,
        Attribute("channels_last", "int", "1: the channels are the last axis.", default=0),
        Attribute(
            "count_include_pad",
            "int",
            "1: each sum is divided by the size of the window; 0: by the number of elements of `X` in it.",
            default=0,
        ),
    ],
)


@v1.infer
def infer(
    x: TensorType, x_scale: TensorType, x_zero: TensorType | None, y_scale: TensorType,
    y_zero: TensorType | None = None, /, *, count_include_pad: int, channels_last: int, **window: Any,
) -> TensorType:  # fmt: skip
    scaled.check(X=(x_scale, x_zero), Y=(y_scale, y_zero))
    if not channels_last:
        return pooled_type(x, Window.of(**window))
    return type_first_to_last(pooled_type(type_last_to_first(x), Window.of(**window)))


@v1.evaluate
def evaluate(
    x: Array, x_scale: Array, x_zero: Array | None, y_scale: Array, y_zero: Array | None = None, /, *,
    count_include_pad: int, channels_last: int, **window: Any,
) -> Array:  # fmt: skip
    hold(
        infer, x, x_scale, x_zero, y_scale, y_zero,
        count_include_pad=count_include_pad, channels_last=channels_last, **window,
    )  # fmt: skip
    first = np.moveaxis(x, -1, 1) if channels_last else x
    axes = Window.of(**window).axes(first.shape[2:])
    total = _total(scaled.as_floats(first, x_scale, x_zero), axes)
    with np.errstate(divide="ignore", invalid="ignore"):  # windows in the padding have no elements
        means = total / (
            np.float32(math.prod(a.kernel for a in axes)) if count_include_pad else _counts(axes)
        )
        y = scaled.saturated_sum(means / y_scale.reshape(()), y_zero, element(x.dtype))
    return np.ascontiguousarray(np.moveaxis(y, 1, -1)) if channels_last else y


def _total(x: Array, axes: tuple[WindowAxis, ...]) -> Array:
    """Return the sums of all windows, added tap by tap in order."""
    shape = *x.shape[:2], *(a.windows for a in axes)
    y = np.zeros(allotted(shape, x.dtype, x.size), np.float32)
    for windows, source in reversed([*taps_backwards(axes)]):
        y[..., *windows] += x[..., *source]
    return y


def _counts(axes: tuple[WindowAxis, ...]) -> Array:
    """Return how many elements of the input each window has."""
    return functools.reduce(np.multiply.outer, [a.covered(padding=False) for a in axes]).astype(np.float32)


@v1.lower
def lower(
    x: Expression, x_scale: Expression, x_zero: Expression | None, y_scale: Expression,
    y_zero: Expression | None = None, /, *, count_include_pad: int, channels_last: int, **attributes: Any,
) -> Expression:  # fmt: skip
    window = Window.of(**attributes)
    first = loops.permute(x, last_to_first(x.rank)) if channels_last else x
    floats = scaled.lowered_floats(first, x_scale, x_zero)
    if count_include_pad:
        size = math.prod(k for k in window.kernel if isinstance(k, int))
        means = loops.apply("div", pooled(floats, window, "sum"), size)
    else:
        means = averaged(floats, window, include_padding=False)
    y = scaled.lowered_sum(loops.apply("div", means, only(y_scale)), y_zero, x.element)
    return loops.permute(y, first_to_last(x.rank)) if channels_last else y


@v1.body
def body(
    b: Builder, x: Value, x_scale: Value, x_zero: Value | None, y_scale: Value, y_zero: Value | None = None,
    /, *, count_include_pad: int, channels_last: int, **window: Any,
) -> Value:  # fmt: skip
    floats = scaled.dequantize(b, x, x_scale, x_zero)
    rank = len(shape_of("X", x)) if channels_last else 0
    if channels_last:
        floats = b.Transpose(floats, perm=last_to_first(rank))
    if count_include_pad and window["ceil_mode"]:
        _check_ends(floats, Window.of(**window))
    means = b.AveragePool(floats, count_include_pad=count_include_pad, **window)
    y = scaled.write_sum(b, b.Div(means, graphs.single(b, y_scale)), y_zero, x)
    return b.Transpose(y, perm=first_to_last(rank)) if channels_last else y


def _check_ends(x: Value, window: Window) -> None:
    """Raise Unconvertible where a window may end past the padding, which only counts here."""
    lengths = [d for d in shape_of("X", x)[2:] if isinstance(d, int)]
    if len(lengths) < len(window.kernel):
        raise Unconvertible("the spatial sizes of `X` are unknown: a window may end past the padding")
    if any((a.covered(padding=True) < a.kernel).any() for a in window.axes(lengths)):
        raise Unconvertible("a window ends past the padding, which AveragePool does not count")


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_average_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, 2, 8, 8)
        x = x[:, :, :, ::-1] ^ dtype(21)
        scales = f(0.1), dtype(5), f(0.07), dtype(101)
        last = x.transpose(0, 2, 3, 1)
        yield Example(1, x, *scales, kernel_shape=[3, 2])
        padded: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 3], "pads": [1, 0, 2, 1]}
        for padding in (0, 1):
            yield Example(1, x, *scales, count_include_pad=padding, **padded)
            yield Example(1, last, *scales, count_include_pad=padding, channels_last=1, ceil_mode=1, **padded)
        yield Example(1, x, *scales, kernel_shape=[3, 2], auto_pad="SAME_LOWER", strides=[2, 1])
        yield Example(1, last, *scales, kernel_shape=[2, 3], auto_pad="SAME_UPPER", channels_last=1)
        yield Example(1, x.reshape(2, 2, 4, 4, 4), *scales, kernel_shape=[2, 2, 3], auto_pad="VALID")
        # by hand: the means 0.5, 1.5 in steps of 1 from 5 are 5.5, 6.5, which round to 6
        row = np.array([[[7, 8, 9]]], dtype), f(1), dtype(7), f(1), dtype(5)
        yield Example(1, *row, kernel_shape=[2], expect=[np.array([[[6, 6]]], dtype)])
        yield Example(1, x[:0], *scales, kernel_shape=[8, 8], expect=[np.zeros((0, 2, 1, 1), dtype)])
