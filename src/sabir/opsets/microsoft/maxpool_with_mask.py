"""MaxpoolWithMask: the greatest element of each window, of those that a mask admits."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.windows.pooling import pooled_type, reduce_windows
from sabir.opsets.families.windows.windows import AUTO_PAD, PADS, STRIDES, Window
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, at_least, one_of, tensors

maxpool_with_mask = Operator(
    "MaxpoolWithMask",
    domain="com.microsoft",
    summary="The greatest element of each window over the spatial axes, of those whose mask is not 0.",
    body_opset=18,
)

T = Constraint("T", tensors("float"))

v1 = maxpool_with_mask.first(
    1,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input(
            "M",
            "tensor(int32)",
            "The mask, (N or 1, C or 1, D1, ..., Dn): 0 where an element does not count.",
            differentiable=False,
        ),
    ],
    outputs=[
        Output(
            "Y",
            T,
            "The maxima, (N, C, O1, ..., On); the lowest finite number where no element counts.",
            differentiable=True,
        )
    ],
    attributes=[
        Attribute(
            "kernel_shape", "ints", "The size of the window along each axis; it must be given.",
            values=at_least(1),
        ),
        PADS,
        STRIDES,
        AUTO_PAD,
        Attribute("storage_order", "int", "Of no effect.", default=0, values=one_of(0, 1)),
    ],
)  # fmt: skip

_LOWEST = float(np.finfo(np.float32).min)


def _window(*, kernel_shape: Sequence[int] | None, storage_order: int, **window: Any) -> Window:
    if not kernel_shape:
        raise InferenceError("kernel_shape is missing, which has no default")
    return Window.of(kernel_shape, **window)


@v1.infer
def infer(x: TensorType, mask: TensorType, /, **attributes: Any) -> TensorType:
    y = pooled_type(x, _window(**attributes))
    if x.shape is None or mask.shape is None:
        return y
    outer = [may_be_equal(m, 1) or may_be_equal(m, d) for m, d in zip(mask.shape[:2], x.shape, strict=False)]
    spatial = map(may_be_equal, mask.shape[2:], x.shape[2:])
    if len(mask.shape) != len(x.shape) or not all((*outer, *spatial)):
        raise InferenceError(f"the mask {mask} does not match the input {x}")
    return y


@v1.evaluate
def evaluate(x: Array, mask: Array, /, **attributes: Any) -> Array:
    hold(infer, x, mask, **attributes)
    counted = np.where(mask != 0, x, np.float32(_LOWEST))
    return reduce_windows(counted, _window(**attributes).axes(x.shape[2:]), np.maximum, _LOWEST)


@v1.body
def body(b: Builder, x: Value, mask: Value, /, *, storage_order: int, **window: Any) -> Value:
    masked = b.Equal(mask, b.initializer("zero", np.array(0, np.int32)))
    lowest = b.initializer("lowest", np.array(_LOWEST, np.float32))
    y = b.op("MaxPool", b.Where(masked, lowest, x), **window)
    return b.Max(y, lowest)  # a window within the padding has the maximum -inf


@maxpool_with_mask.examples
def examples() -> Iterator[Example]:
    x = np.array([[[1, 5, -3, 2, 4, 9]]], np.float32)
    pairs: dict[str, Any] = {"kernel_shape": [2], "strides": [2]}
    yield Example(1, x, [[[1, 1, 1, 1, 1, 0]]], **pairs, expect=[[[[5, 2, 4]]]])
    yield Example(1, x, [[[1, 1, 1, 1, 0, 0]]], **pairs, expect=[[[[5, 2, _LOWEST]]]])
    yield Example(
        1, x, [[[2, 1, -1, 1, 1, 1]]], kernel_shape=[3], pads=[1, 1], expect=[[[[5, 5, 5, 4, 9, 9]]]]
    )
    yield Example(1, x, np.ones((1, 1, 6), np.int32), kernel_shape=[2], auto_pad="SAME_UPPER")
    image = np.arange(32, dtype=np.float32).reshape(2, 2, 2, 4)
    mask = np.array([1, 1, 1, 0, 1, 1, 1, 0], np.int32).reshape(1, 1, 2, 4)
    y = [[[[5, 6]], [[13, 14]]], [[[21, 22]], [[29, 30]]]]
    yield Example(1, image, mask, kernel_shape=[2, 2], strides=[2, 2], expect=[y])
    yield Example(1, image[:0], mask, kernel_shape=[2, 2], storage_order=1)
