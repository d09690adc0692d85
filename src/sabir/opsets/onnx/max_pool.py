"""MaxPool: the greatest element of each window."""

import math
from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir.base import check_elements
from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.pooling import folded, places_backwards, pooled_type
from sabir.opsets.families.windows import AUTO_PADS, Axis, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    one_of,
    tensors,
)

_INDEXED = 32  # bytes, about, of a window while its greatest element is sought

max_pool = Operator(
    "MaxPool", summary="The greatest element of each window that slides over the spatial axes."
)

T = Constraint("T", FLOATS)

v1 = max_pool.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[
        Output("Y", T, "The maxima, (N, C, O1, ..., On); padding is less than anything.", differentiable=True)
    ],
    attributes=[
        Attribute(
            "pads",
            "ints",
            "Padding of the axes: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "auto_pad",
            "string",
            "SAME_UPPER, SAME_LOWER: padded so that O = ceil(D / stride), the odd one at the end or the "
            "beginning; VALID: not padded; NOTSET: `pads`.",
            default="NOTSET",
            values=AUTO_PADS,
        ),
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "kernel_shape", "ints", "The window's size along each axis.", required=True, values=at_least(1)
        ),
    ],
)
I = Constraint("I", tensors("int64"))  # ruff: ignore[ambiguous-variable-name]  the standard's name
v8 = v1.extend(
    8,
    "Can tell where the maxima are: `Indices`, counted by `storage_order`.",
    outputs=[
        Output(
            "Indices",
            I,
            "The place of each maximum in the flattened input, the first of equals; -1 where all is padding.",
            optional=True,
            differentiable=False,
        )
    ],
    attributes=[
        Attribute(
            "storage_order",
            "int",
            "1: `Indices` count places column by column.",
            default=0,
            values=one_of(0, 1),
        )
    ],
)
v10 = v8.extend(
    10,
    "Windows may have gaps (`dilations`), and a last one may pass the end (`ceil_mode`).",
    attributes=[
        Attribute(
            "dilations",
            "ints",
            "The step between a window's elements along each axis; 1 by default.",
            values=at_least(1),
        ),
        Attribute("ceil_mode", "int", "1: a last window may pass the end, not start there.", default=0),
    ],
)
v11 = v10.restate(11, "States that strides and dilations are 1 by default.")
v12 = v11.widen(12, T=tensors("int8", "uint8"))
v22 = v12.widen(22, T=BFLOAT16)


@v1.infer
def infer(
    x: TensorType, /, *, kernel_shape: Sequence[int], strides: Sequence[int] | None,
    pads: Sequence[int] | None, auto_pad: str, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    window = Window.of(
        kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations, ceil_mode=ceil_mode
    )
    y = pooled_type(x, window)
    return y, TensorType(element("int64"), y.shape)


@v1.evaluate
def evaluate(
    x: Array, /, *, kernel_shape: Sequence[int], strides: Sequence[int] | None, pads: Sequence[int] | None,
    auto_pad: str, storage_order: int = 0, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
    call: Call,
) -> Array | tuple[Array, Array]:  # fmt: skip
    window = Window.of(
        kernel_shape, strides=strides, pads=pads, auto_pad=auto_pad, dilations=dilations, ceil_mode=ceil_mode
    )
    axes = window.axes(x.shape[2:])
    wide = widened(x)
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    y = folded(wide, axes, np.maximum, least).astype(x.dtype, copy=False)
    return (y, _indices(x, y, axes, storage_order)) if call.wants(1) else y


def _indices(x: Array, best: Array, axes: Sequence[Axis], storage_order: int) -> Array:
    """Look for the greatest through all taps of the window; the first in reading order is written last."""
    check_elements(best.size, x.size, what="the indices", width=_INDEXED)
    missing = best != best  # ruff: ignore[comparison-with-itself]  NaN, which is the greatest
    any_missing = bool(missing.any())
    found = np.full(best.shape, -1, np.int64)
    lengths: tuple[int, ...] = x.shape[2:]
    counted = np.arange(math.prod(lengths), dtype=np.int64)
    where = counted.reshape(lengths[::-1]).T if storage_order else counted.reshape(lengths)
    for target, source in places_backwards(axes):
        here = x[..., *source]
        hit = here == best[..., *target]
        if any_missing:
            hit |= (here != here) & missing[..., *target]  # ruff: ignore[comparison-with-itself]  NaN
        np.copyto(found[..., *target], where[source], where=hit)
    planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64) * len(counted)
    return np.where(found < 0, found, found + planes.reshape(*x.shape[:2], *(1,) * len(axes)))


@max_pool.examples
def examples() -> Iterator[Example]:
    x = np.array([[[[1, 2, 3], [6, 5, 4], [7, 9, 8]]]], np.float32)
    pooled = np.array([[[[6, 5], [9, 9]]]], np.float32)
    for opset in (1, 8, 10, 11, 12, 22):
        yield Example(opset, x, kernel_shape=[2, 2], expect=[pooled])
    yield Example(8, x, kernel_shape=[2, 2], outputs=2, expect=[pooled, np.array([[[[3, 4], [7, 7]]]])])
    yield Example(
        11,
        x,
        kernel_shape=[2, 2],
        outputs=2,
        storage_order=1,
        expect=[pooled, np.array([[[[1, 4], [5, 5]]]])],
    )
    row = np.array([[[4, 1, 3, 5, 2]], [[-1, -2, -3, -4, np.nan]]], np.float32)
    ends = np.array([[[4, 5, 2]], [[-1, -3, np.nan]]], np.float32)
    yield Example(10, row, kernel_shape=[2], strides=[2], ceil_mode=1, expect=[ends])
    yield Example(12, row, kernel_shape=[2], strides=[2], auto_pad="SAME_UPPER", outputs=2,
                  expect=[ends, np.array([[[0, 3, 4]], [[5, 7, 9]]])])  # fmt: skip
    yield Example(
        12,
        row[:1],
        kernel_shape=[2],
        auto_pad="SAME_LOWER",
        expect=[np.array([[[4, 4, 3, 5, 5]]], np.float32)],
    )
    yield Example(12, row[:1], kernel_shape=[3], dilations=[2], expect=[np.array([[[4]]], np.float32)])
    # a third window would start in the padding, and does not count
    yield Example(22, row[:1, :, :3], kernel_shape=[2], strides=[2], pads=[1, 1], ceil_mode=1,
                  expect=[np.array([[[4, 3]]], np.float32)])  # fmt: skip
    yield Example(12, np.array([[[-128, -3, 5]]], np.int8), kernel_shape=[2], pads=[1, 1],
                  expect=[np.array([[[-128, -3, 5, 5]]], np.int8)])  # fmt: skip
    yield Example(12, np.array([[[-np.inf, 0]]], np.float16), kernel_shape=[1], outputs=2,
                  expect=[np.array([[[-np.inf, 0]]], np.float16), np.array([[[0, 1]]])])  # fmt: skip
    yield Example(22, np.array([[[1, 3]]], ml_dtypes.bfloat16), kernel_shape=[2],
                  expect=[np.array([[[3]]], ml_dtypes.bfloat16)])  # fmt: skip
    yield Example(12, np.zeros((0, 2, 3), np.float32), kernel_shape=[2], outputs=2)
    cube = np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2)
    greatest, places_of = np.array([3.0, 7]).reshape(1, 1, 2, 1, 1), np.array([6, 7]).reshape(1, 1, 2, 1, 1)
    yield Example(12, cube, kernel_shape=[1, 2, 2], outputs=2, storage_order=1, expect=[greatest, places_of])
