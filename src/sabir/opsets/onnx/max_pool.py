"""MaxPool: the greatest element of each window."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import check_elements
from sabir.elements import element
from sabir.ir import TensorType, Value
from sabir.loops import Expression, Lowering, Size
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.windows.pooling import pooled_type, reduce_windows, taps_backwards
from sabir.opsets.families.windows.pooling_gradients import of_maxima
from sabir.opsets.families.windows.window_kernels import pooled, pooled_with_indices
from sabir.opsets.families.windows.windows import (
    AUTO_PAD,
    CEIL_MODE,
    DILATIONS,
    KERNEL_SHAPE,
    PADS,
    STRIDES,
    Window,
    WindowAxis,
)
from sabir.opsets.typing import Array, Gradient
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
    one_of,
    tensors,
)

_INDEXED = 32  # temporary bytes for each window while its index is computed, approximately

max_pool = Operator(
    "MaxPool", summary="The greatest element of each window that slides over the spatial axes."
)

T = Constraint("T", FLOATS)

v1 = max_pool.first(
    1,
    inputs=[Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True)],
    outputs=[
        Output(
            "Y", T, "The maxima, (N, C, O1, ..., On); padding is less than any number.", differentiable=True
        )
    ],
    attributes=[PADS, AUTO_PAD, STRIDES, KERNEL_SHAPE],
)
I = Constraint("I", tensors("int64"))  # ruff: ignore[ambiguous-variable-name]  the standard's name
v8 = v1.extend(
    8,
    "Adds the optional output `Indices`, the indices of the maxima, and `storage_order`.",
    outputs=[
        Output(
            "Indices",
            I,
            "The index of each maximum, the first of equals, in the flattened input; -1 in padding.",
            optional=True,
            differentiable=False,
        )
    ],
    attributes=[
        Attribute(
            "storage_order",
            "int",
            "1: the last axis varies slowest in `Indices` (column-major order).",
            default=0,
            values=one_of(0, 1),
        )
    ],
)
v10 = v8.extend(
    10,
    "Windows may have gaps (`dilations`), and the last one may end beyond the input (`ceil_mode`).",
    attributes=[DILATIONS, CEIL_MODE],
)
v11 = v10.restate(11, "States that strides and dilations are 1 by default.")
v12 = v11.widen(12, T=tensors("int8", "uint8"))
v22 = v12.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, /, *, storage_order: int = 0, **window: Any) -> tuple[TensorType, TensorType]:
    y = pooled_type(x, Window.of(**window))
    return y, TensorType(element("int64"), y.shape)


@v1.evaluate
def evaluate(
    x: Array, /, *, storage_order: int = 0, call: Call, **window: Any
) -> Array | tuple[Array, Array]:
    axes = Window.of(**window).axes(x.shape[2:])
    wide = widened(x)
    least = np.iinfo(x.dtype).min if x.dtype.kind in "iu" else -np.inf
    y = reduce_windows(wide, axes, np.maximum, least).astype(x.dtype, copy=False)
    return (y, _indices(x, y, axes, storage_order)) if call.wants(1) else y


def _indices(x: Array, best: Array, axes: Sequence[WindowAxis], storage_order: int) -> Array:
    """Return the indices of the maxima; taps go backwards, so that the first of equals is written last."""
    check_elements(best.size, x.size, what="the indices", width=_INDEXED)
    missing = best != best  # ruff: ignore[comparison-with-itself]  NaN, which is the greatest
    any_missing = bool(missing.any())
    found = np.full(best.shape, -1, np.int64)
    lengths: tuple[int, ...] = x.shape[2:]
    counted = np.arange(math.prod(lengths), dtype=np.int64)
    where = counted.reshape(lengths[::-1]).T if storage_order else counted.reshape(lengths)
    for target, source in taps_backwards(axes):
        here = x[..., *source]
        hit = here == best[..., *target]
        if any_missing:
            hit |= (here != here) & missing[..., *target]  # ruff: ignore[comparison-with-itself]  NaN
        np.copyto(found[..., *target], where[source], where=hit)
    planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64) * len(counted)
    return np.where(found < 0, found, found + planes.reshape(*x.shape[:2], *(1,) * len(axes)))


@v1.lower
def lower(
    x: Expression, /, *, storage_order: int = 0, call: Lowering, **window: Any
) -> Expression | tuple[Expression, Expression]:
    if not call.wants(1):
        return pooled(x, Window.of(**window), "max")
    y, indices = pooled_with_indices(x, Window.of(**window))
    return y, _by_columns(indices, x.shape[2:]) if storage_order else indices


def _by_columns(indices: Expression, lengths: Sequence[Size]) -> Expression:
    """Return indices row by row, -1 for none, as those column by column in each plane."""
    rest, places = indices, list[Expression]()
    for length in reversed(lengths):
        size = loops.sized("int64", length)
        places.append(loops.apply("mod", rest, size))
        rest = loops.apply("div", rest, size)
    for place, length in zip(places, lengths[::-1], strict=True):
        rest = loops.apply("add", loops.apply("mul", rest, loops.sized("int64", length)), place)
    return loops.where(loops.apply("lt", indices, 0), -1, rest)


@v12.gradient
def gradient(g: Gradient, x: Value, /, *, storage_order: int, **window: Any) -> Value:
    """Of the first of equal maxima, as in PyTorch."""
    return of_maxima(g, x, storage_order, window)


@max_pool.examples
def examples() -> Iterator[Example]:
    x, pooled = np.array([[[[1, 2, 3], [6, 5, 4], [7, 9, 8]]]], np.float32), [[[[6, 5], [9, 9]]]]
    for opset in (1, 8, 10, 11, 12, 22):
        yield Example(opset, x, kernel_shape=[2, 2], expect=[pooled])
    by_rows, by_columns = [[[[3, 4], [7, 7]]]], [[[[1, 4], [5, 5]]]]
    yield Example(8, x, kernel_shape=[2, 2], outputs=2, expect=[pooled, by_rows])
    yield Example(11, x, kernel_shape=[2, 2], outputs=2, storage_order=1, expect=[pooled, by_columns])
    row = np.array([[[4, 1, 3, 5, 2]], [[-1, -2, -3, -4, np.nan]]], np.float32)
    ends, indices = [[[4, 5, 2]], [[-1, -3, np.nan]]], [[[0, 3, 4]], [[5, 7, 9]]]
    pairs: dict[str, Any] = {"kernel_shape": [2], "strides": [2]}
    yield Example(10, row, **pairs, ceil_mode=1, expect=[ends])
    yield Example(12, row, **pairs, auto_pad="SAME_UPPER", outputs=2, expect=[ends, indices])
    yield Example(12, row[:1], kernel_shape=[2], auto_pad="SAME_LOWER", expect=[[[[4, 4, 3, 5, 5]]]])
    yield Example(12, row[:1], kernel_shape=[3], dilations=[2], expect=[[[[4]]]])
    # a third window would start in the padding, and does not count
    yield Example(22, row[:1, :, :3], **pairs, pads=[1, 1], ceil_mode=1, expect=[[[[4, 3]]]])
    small = np.array([[[-128, -3, 5]]], np.int8)
    yield Example(12, small, kernel_shape=[2], pads=[1, 1], expect=[[[[-128, -3, 5, 5]]]])
    halves = np.array([[[-np.inf, 0]]], np.float16)
    yield Example(12, halves, kernel_shape=[1], outputs=2, expect=[[[[-np.inf, 0]]], [[[0, 1]]]])
    yield Example(22, np.array([[[1, 3]]], ml_dtypes.bfloat16), kernel_shape=[2], expect=[[[[3]]]])
    yield Example(12, np.zeros((0, 2, 3), np.float32), kernel_shape=[2], outputs=2)
    cube = np.arange(8, dtype=float).reshape(1, 1, 2, 2, 2)
    greatest, numbers = [[[[[3]], [[7]]]]], [[[[[6]], [[7]]]]]
    yield Example(12, cube, kernel_shape=[1, 2, 2], outputs=2, storage_order=1, expect=[greatest, numbers])
