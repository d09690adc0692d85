"""MaxPool: the greatest element of each window of an image that is stored in blocks of channels."""

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
from sabir.schema import Attribute, Example, Operator, one_of

max_pool = Operator(
    "MaxPool",
    domain=blocks.DOMAIN,
    summary="The greatest element of each window over height and width.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = blocks.declare(
    max_pool,
    "The maxima, (N, C, O1, O2)",
    [
        PADS, AUTO_PAD, STRIDES, KERNEL_SHAPE, DILATIONS, CEIL_MODE,
        Attribute("storage_order", "int", "Of no effect.", default=0, values=one_of(0, 1)),
    ],
)  # fmt: skip


def _window(*, storage_order: int, **window: Any) -> Window:
    return Window.of(**window)


v1.absent("lower", blocks.NOT_LOWERED)


@v1.infer
def infer(x: TensorType, /, **attributes: Any) -> TensorType:
    blocks.check_image("X", x)
    return pooled_type(x, _window(**attributes))


@v1.evaluate
def evaluate(x: Array, /, **attributes: Any) -> Array:
    def pooled(image: Array) -> Array:
        return reduce_windows(image, _window(**attributes).axes(image.shape[2:]), np.maximum, -np.inf)

    return blocks.evaluate_unblocked(x, pooled)


@v1.body
def body(b: Builder, x: Value, /, *, storage_order: int, **window: Any) -> Value:
    return blocks.emit_on_unblocked(b, x, lambda image: b.op("MaxPool", image, **window))


@max_pool.examples
def examples() -> Iterator[Example]:
    # two pixels, one beside the other, of 8 channels each: the greater in each channel
    pair = np.array([[1, -2, 3, 4, 5, 6, 7, 8], [0, 9, 3, -4, 6, 5, 8, 7]], np.float32)
    y = np.array([1, 9, 3, 4, 6, 6, 8, 8], np.float32).reshape(1, 8, 1, 1)
    yield Example(1, pair.reshape(1, 8, 1, 2), kernel_shape=[1, 2], expect=[y])
    padded: dict[str, Any] = {"pads": [0, 1, 0, 0], "strides": [1, 2], "storage_order": 1}
    yield Example(
        1, pair.reshape(1, 8, 1, 2), kernel_shape=[1, 2], **padded, expect=[pair[0].reshape(1, 8, 1, 1)]
    )
    yield Example(1, pair.reshape(1, 8, 2, 1), kernel_shape=[1, 1], strides=[2, 1], ceil_mode=1)
    yield Example(1, np.zeros((0, 24, 3, 3), np.float32), kernel_shape=[2, 2], dilations=[2, 2])
