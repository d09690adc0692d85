"""QLinearGlobalAveragePool: the mean of each channel of a quantized tensor, quantized again."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import scaled, scaled_means
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.windows.windows import LEAST_RANK
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qlinear_global_average_pool = Operator(
    "QLinearGlobalAveragePool",
    domain="com.microsoft",
    summary="The mean of each channel of `dequantize(X)` over all spatial axes, quantized.",
    body_opset=18,
)

T = Constraint("T", tensors("int8", "uint8"))

v1 = qlinear_global_average_pool.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn), or (N, D1, ..., Dn, C) with `channels_last`."),
        *scaled.parameters("x_scale", "x_zero_point", T, "X", optional=False),
        *scaled.parameters("y_scale", "y_zero_point", T, "Y", optional=False),
    ],
    outputs=[Output("Y", T, "The input's shape with spatial sizes of 1.")],
    attributes=[Attribute("channels_last", "int", "1: the channels are the last axis.", default=0)],
)


@v1.infer
def infer(
    x: TensorType, x_scale: TensorType, x_zero: TensorType, y_scale: TensorType, y_zero: TensorType, /, *,
    channels_last: int,
) -> TensorType:  # fmt: skip
    scaled.check(X=(x_scale, x_zero), Y=(y_scale, y_zero))
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < LEAST_RANK:
        raise InferenceError(f"{x} has no spatial axes; it needs a batch and channels too")
    ones = (1,) * (len(x.shape) - 2)
    channels = x.shape[-1 if channels_last else 1]
    return TensorType(
        x.element, (x.shape[0], *ones, channels) if channels_last else (x.shape[0], channels, *ones)
    )


def _spatial(rank: int, channels_last: int) -> tuple[int, ...]:
    return tuple(range(1, rank - 1) if channels_last else range(2, rank))


@v1.evaluate
def evaluate(
    x: Array, x_scale: Array, x_zero: Array, y_scale: Array, y_zero: Array, /, *, channels_last: int
) -> Array:
    hold(infer, x, x_scale, x_zero, y_scale, y_zero, channels_last=channels_last)
    return scaled_means.evaluated(x, _spatial(x.ndim, channels_last), x_scale, x_zero, y_scale, y_zero)


@v1.body
def body(
    b: Builder, x: Value, x_scale: Value, x_zero: Value, y_scale: Value, y_zero: Value, /, *,
    channels_last: int,
) -> Value:  # fmt: skip
    axes = _spatial(len(shape_of("X", x)), channels_last)
    return scaled_means.written(b, x, axes, x_scale, x_zero, y_scale, y_zero)


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_global_average_pool.examples
def examples() -> Iterator[Example]:
    f = np.float32
    for dtype in (np.uint8, np.int8):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, 8, 4, 4)
        scales = f(0.1), dtype(5), f(0.07), dtype(100)
        yield Example(1, x, *scales)
        yield Example(1, x.transpose(0, 2, 3, 1), *scales, channels_last=1)
        yield Example(1, x.reshape(4, 1, 64), f(0.5), dtype(0), f(0.25), dtype(1))
        yield Example(1, x.reshape(2, 4, 4, 4, 2), *scales, channels_last=1)
        # by hand: the mean of 0 and 1 is a tie between 10 and 11 in steps of 1, and goes to the even 0 first
        tie = np.array([[[5, 6]]], dtype), f(1), dtype(5), f(1), dtype(11)
        yield Example(1, *tie, expect=[np.array([[[11]]], dtype)])
    yield Example(1, x[:0], *scales, expect=[np.zeros((0, 8, 1, 1), dtype)])
