"""GlobalAveragePool: the mean of each channel of an image that is stored in blocks of channels."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.windows import blocked_channels as blocks
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

global_average_pool = Operator(
    "GlobalAveragePool",
    domain=blocks.DOMAIN,
    summary="The mean of each channel over height and width.",
    body_opset=blocks.BODY_OPSET,
    lacks=blocks.LACKS,
)

v1 = blocks.declare(global_average_pool, "One mean for each channel, (N, C, 1, 1)", [])
v1.absent("lower", blocks.NOT_LOWERED)
v1.infer(blocks.pooled_to_one)


def _mean(image: Array) -> Array:
    with np.errstate(invalid="ignore"):  # an image without elements has no mean
        return image.sum((2, 3), keepdims=True) / image.dtype.type(image.shape[2] * image.shape[3])


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return blocks.evaluate_unblocked(x, _mean)


@v1.body
def body(b: Builder, x: Value, /) -> Value:
    return blocks.emit_on_unblocked(b, x, b.GlobalAveragePool)


@global_average_pool.examples
def examples() -> Iterator[Example]:
    pixels = np.array([[1, 2, 3, 4, 5, 6, 7, 8], [3, -2, 5, 6, 7, 0, 9, 9]], np.float32)
    y = np.array([2, 0, 4, 5, 6, 3, 8, 8.5], np.float32).reshape(1, 8, 1, 1)
    yield Example(1, pixels.reshape(1, 8, 2, 1), expect=[y])
    yield Example(1, np.zeros((0, 24, 2, 2), np.float32), expect=[np.zeros((0, 24, 1, 1), np.float32)])
    yield Example(
        1, y[:, :, :, :].repeat(2, 1), expect=[y.repeat(2, 1)]
    )  # of one pixel, in blocks of any size
