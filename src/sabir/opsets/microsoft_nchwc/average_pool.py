"""AveragePool: the mean of each window of an image that is stored in blocks of channels."""

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.shapes.axes import as_input
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
from sabir.schema import Attribute, Example, Operator, Unconvertible

average_pool = Operator(
    "AveragePool",
    domain=blocks.DOMAIN,
    summary="The mean of each window over height and width.",
    body_opset=blocks.BODY_OPSET,
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
v1.absent("lower", blocks.NOT_LOWERED)


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
def body(b: Builder, x: Value, /, *, dilations: Sequence[int] | None, **attributes: Any) -> Value:
    if all(d == 1 for d in dilations or ()):
        return blocks.emit_on_unblocked(b, x, lambda image: b.AveragePool(image, **attributes))
    return blocks.emit_on_unblocked(b, x, lambda image: _dilated(b, image, dilations, **attributes))


def _dilated(
    b: Builder, image: Value, dilations: Sequence[int] | None, *, count_include_pad: int,
    pads: Sequence[int] | None, auto_pad: str, **window: Any,
) -> Value:  # fmt: skip
    """Emit the mean of windows with gaps, which AveragePool has from opset 19 on: a sum over a number.

    LpPool of the order 1 adds absolute values, so positive and negative elements are added apart.
    """
    if count_include_pad and auto_pad not in {"", "NOTSET"}:
        raise Unconvertible("the padding of windows with gaps is counted, and its size is not stated")
    if count_include_pad and pads:
        edges = as_input(b, "pads", [0, 0, *pads[:2], 0, 0, *pads[2:]])
        image, pads = b.Pad(image, edges), None
    window |= {"pads": pads, "auto_pad": auto_pad, "dilations": dilations, "p": 1}
    sizes = b.Concat(as_input(b, "one", [1, 1]), b.Shape(image, start=2), axis=0)
    counts = b.LpPool(b.ConstantOfShape(sizes, value=np.ones(1, np.float32)), **window)
    above, below = b.LpPool(b.Relu(image), **window), b.LpPool(b.Relu(b.Neg(image)), **window)
    return b.Div(b.Sub(above, below), counts)


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
