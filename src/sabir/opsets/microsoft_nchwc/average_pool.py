"""AveragePool: the mean of each window of an image that is stored in blocks of channels."""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.families.windows.pooling import pooled_type, reduce_windows
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    DILATIONS,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
)
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

average_pool = Operator(
    "AveragePool",
    domain=blocks.DOMAIN,
    summary="The mean of each window over height and width.",
    body_opset=19,
    lacks=blocks.LACKS,
)

v1 = blocks.declare(
    average_pool,
    "The means, (N, C, O1, O2)",
    [
        Attribute("count_include_pad", "int", "1: padding counts as zeros in the mean.", default=0),
        KERNEL_SHAPE, STRIDES, DILATIONS, CEIL_MODE, PADS, AUTO_PAD,
    ],
)  # fmt: skip


@v1.infer
def infer(x: TensorType, /, *, count_include_pad: int, **window: Any) -> TensorType:
    blocks.check_image("X", x)
    return pooled_type(x, Window.of(**window))


@v1.evaluate
def evaluate(x: Array, /, *, count_include_pad: int, **window: Any) -> Array:
    def averaged(image: Array) -> Array:
        axes = Window.of(**window).axes(image.shape[2:])
        counts = functools.reduce(
            np.multiply.outer, (a.covered(padding=bool(count_include_pad)) for a in axes)
        )
        return reduce_windows(image, axes, np.add, 0) / counts.astype(image.dtype)

    return blocks.evaluate_unblocked(x, averaged)


@v1.body
def body(b: Builder, x: Value, /, **attributes: Any) -> Value:
    return blocks.emit_on_unblocked(b, x, lambda image: b.AveragePool(image, **attributes))


@average_pool.examples
def examples() -> Iterator[Example]:
    row = np.array([[0, 2, 4, 6, 8, 10, 12, 14], [2, 4, 6, 8, 10, 12, 14, 16], [7] * 8], np.float32)
    x = row.reshape(1, 8, 1, 3)  # three pixels of 8 channels
    first, second = row[:2].mean(0), row[1:].mean(0)
    yield Example(1, x, kernel_shape=[1, 2], expect=[np.array([first, second]).reshape(1, 8, 1, 2)])
    ends: dict[str, Any] = {"kernel_shape": [1, 2], "pads": [0, 1, 0, 0], "strides": [1, 2]}
    yield Example(1, x, **ends, expect=[np.array([row[0], second]).reshape(1, 8, 1, 2)])
    counted = np.array([row[0] / 2, second]).reshape(1, 8, 1, 2)
    yield Example(1, x, **ends, count_include_pad=1, expect=[counted])
    apart = row[::2].mean(0).reshape(1, 8, 1, 1)
    yield Example(1, x, kernel_shape=[1, 2], dilations=[1, 2], expect=[apart])
    yield Example(1, x, kernel_shape=[1, 2], strides=[1, 2], ceil_mode=1)
    yield Example(1, np.zeros((0, 24, 3, 3), np.float32), kernel_shape=[2, 2], auto_pad="SAME_UPPER")
