"""DeformConv: a convolution in which an offset moves the position that each weight reads."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, Value, may_be_equal, mul, product
from sabir.loops import Expression
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.resampling.deformation_gradients import Deformation
from sabir.opsets.families.resampling.deformation_kernels import deformed
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.opsets.families.windows.convolution import FILTER_SHAPE, GROUP, convolved_shape, kernel_of
from sabir.opsets.families.windows.convolution_gradients import Filters, of_bias
from sabir.opsets.families.windows.windows import DILATIONS, PADS, STRIDES, Window, WindowAxis
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, at_least

deform_conv = Operator(
    "DeformConv",
    summary="A convolution in which each weight reads the input at its position plus an offset, with linear "
    "interpolation between pixels, times a mask.",
)

T = Constraint("T", FLOATS)
_BLOCK = 1 << 16  # input elements that are read at a time; more if one tap of all windows reads more

v19 = deform_conv.first(
    19,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn)."),
        Input("W", T, "The filters, (M, C/group, k1, ..., kn)."),
        Input(
            "offset",
            T,
            "The n coordinates of each weight of each offset group, (N, og * k1...kn * n, O1, ..., On).",
        ),
        Input("B", T, "The bias of each filter, (M).", optional=True),
        Input(
            "mask",
            T,
            "A factor for each weight, (N, og * k1...kn, O1, ..., On); 1 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, M, O1, ..., On).")],
    attributes=[
        STRIDES,
        PADS,
        Attribute(
            "offset_group", "int", "The number of groups of channels, each with its own offsets.", default=1,
            values=at_least(1),
        ),
        FILTER_SHAPE,
        GROUP,
        DILATIONS,
    ],
)  # fmt: skip
v22 = v19.widen(22, T=BFLOAT16)

v19.absent("downgrade", "no older operator samples a tensor at computed places")


@v19.infer
def infer(
    x: TensorType, w: TensorType, offset: TensorType, b: TensorType | None = None,
    mask: TensorType | None = None, /, *, offset_group: int, kernel_shape: Sequence[int] | None,
    **attributes: Any,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(x, w, b, kernel_shape=kernel_shape, **attributes)
    if shape is None:
        return TensorType(x.element)
    taps = product(kernel_shape or (w.shape[2:] if w.shape else (None,)))
    for operand, each, name in ((offset, len(shape) - 2, "offset"), (mask, 1, "mask")):
        if operand is not None and operand.shape is not None:
            shape = _unified(shape, operand.shape, mul(taps, offset_group * each), name)
    return TensorType(x.element, shape)


def _unified(shape: tuple[Dim, ...], other: tuple[Dim, ...], channels: Dim, name: str) -> tuple[Dim, ...]:
    """Return the output's shape, unified with that of an input that has the same batch and spatial sizes."""
    if len(other) != len(shape) or not may_be_equal(other[1], channels):
        raise InferenceError(f"{name} {list(other)} does not match an output {list(shape)}")
    sizes = [same_dim(pair, f"an axis of {name}") for pair in zip(shape[2:], other[2:], strict=True)]
    return same_dim((shape[0], other[0]), "the batch"), shape[1], *sizes


@v19.evaluate
def evaluate(
    x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None, /,
    **attributes: Any,
) -> Array:  # fmt: skip
    hold(infer, x, w, offset, b, mask, **attributes)
    group, offset_group = attributes.pop("group"), attributes.pop("offset_group")
    kernel = kernel_of(w.shape, attributes.pop("kernel_shape"))
    axes = Window.of(kernel, **attributes).axes(x.shape[2:])
    counts, taps = [a.windows for a in axes], math.prod(w.shape[2:])
    if (
        min(group, offset_group) < 1
        or x.shape[1] != w.shape[1] * group
        or len(w) % group
        or x.shape[1] % offset_group
    ):
        raise ValueError(f"channels {x.shape[1]} and weights {list(w.shape)} do not match the groups")
    offsets = widened(offset).reshape(len(x), offset_group, taps, len(axes), *counts)
    masks = None if mask is None else widened(mask).reshape(len(x), offset_group, taps, math.prod(counts), 1)
    images = widened(x).reshape(len(x), offset_group, x.shape[1] // offset_group, *x.shape[2:])
    images = np.ascontiguousarray(
        np.moveaxis(images, 2, -1)
    )  # a sample reads all channels, which are then adjacent
    filters = widened(w).reshape(group, len(w) // group, w.shape[1], taps)
    y: Array = np.zeros((len(x), group, len(w) // group, math.prod(counts)), images.dtype)
    _spend(len(x) * taps, counts, x.shape[1], offset_group)
    for chosen in _parts(taps, y.shape[-1] * x.shape[1]):
        origins = _origins(axes, w.shape[2:], chosen, y.dtype)
        for item in range(len(x)):
            at = [o + offsets[item, :, chosen, i] for i, o in enumerate(origins)]
            found = _interpolated(images[item], at)
            found = found.reshape(offset_group, len(at[0][0]), y.shape[-1], images.shape[-1])
            if masks is not None:
                found *= masks[item, :, chosen]
            columns = found.transpose(0, 3, 1, 2).reshape(group, w.shape[1] * len(at[0][0]), y.shape[-1])
            y[item] += filters[..., chosen].reshape(*filters.shape[:2], columns.shape[1]) @ columns
    if b is not None:
        y += widened(b).reshape(group, len(w) // group, 1)
    return y.reshape(len(x), len(w), *counts).astype(x.dtype, copy=False)


@v19.lower
def lower(
    x: Expression, w: Expression, offset: Expression, b: Expression | None = None,
    mask: Expression | None = None, /, *, group: int, offset_group: int, kernel_shape: Sequence[int] | None,
    **attributes: Any,
) -> Expression:  # fmt: skip
    window = Window.of(kernel_of(w.shape, kernel_shape), **attributes)
    y = deformed(x, w, offset, mask, window, group, offset_group)
    return y if b is None else loops.apply("add", y, loops.reshape(b, (w.shape[0], *(1,) * (x.rank - 2))))


def _parts(taps: int, size: int) -> Iterator[slice]:
    """Yield the taps to read together, each of which reads `size` elements."""
    several = max(1, min(taps, _BLOCK // max(1, size)))
    for first in range(0, taps, several):
        yield slice(first, min(first + several, taps))


def _origins(
    axes: Sequence[WindowAxis], kernel: Sequence[int], chosen: slice, dtype: np.dtype[Any]
) -> list[Array]:
    """Return the coordinates of some taps along each axis, without offsets, as (taps, *windows)."""
    taps: Sequence[Array] = np.unravel_index(np.arange(chosen.start, chosen.stop, dtype=np.int64), kernel)
    origins: list[Array] = []
    for i, (axis, tap) in enumerate(zip(axes, taps, strict=True)):
        starts = np.arange(axis.windows, dtype=dtype) * axis.stride - axis.begin
        along = [1] * len(axes)
        along[i] = axis.windows
        origins.append(
            starts.reshape(along) + (tap * axis.dilation).astype(dtype).reshape(-1, *(1,) * len(axes))
        )
    return origins


def _spend(samples: int, counts: Sequence[int], channels: int, groups: int) -> None:
    """Count the work of reading all corners around the samples of each window."""
    corners = samples << len(counts)
    spend_operations(8 * corners * groups, 4 * corners * math.prod(counts) * channels)


def _interpolated(image: Array, at: Sequence[Array]) -> Array:
    """Return the elements of `image` (G, ..., C) at real coordinates (G, ...), 0 around it, as (G, L, C)."""
    groups, *lengths, channels = image.shape
    flat = image.reshape(groups, math.prod(lengths), channels)
    lows = [np.floor(a) for a in at]
    y: Array = np.zeros((groups, at[0][0].size, channels), image.dtype)
    for corner in itertools.product((0, 1), repeat=len(lengths)):
        shares: list[Array] = []
        index, outside = np.zeros((), np.int64), np.zeros((), np.bool_)
        for a, low, step, length in zip(at, lows, corner, lengths, strict=True):
            neighbour = low + step
            inside = (neighbour >= 0) & (neighbour < length)
            outside = np.logical_or(outside, ~inside)
            shares.append(np.where(inside, 1 - np.abs(a - neighbour), 0))
            index = index * length + np.where(inside, neighbour, 0).astype(np.int64)
        weight = np.asarray(math.prod(shares))
        for g in range(groups):
            part = np.take(flat[g], index[g].reshape(-1), axis=0) * weight[g].reshape(-1, 1)
            part[outside[g].reshape(-1)] = 0  # the element at the index may be infinite or NaN
            y[g] += part
    return y


@v19.gradient
def gradient(
    g: Gradient, x: Value, w: Value, offset: Value, b: Value | None = None, mask: Value | None = None, /, *,
    offset_group: int, pads: Ints, **attributes: Any,
) -> tuple[Value | None, ...]:  # fmt: skip
    filters = Filters.of(g, w, **attributes)
    begin = tuple(pads or (0,) * len(filters.strides))[: len(filters.strides)]
    call = Deformation(g, x, offset, mask, filters, begin, offset_group)
    d_bias = None if b is None else of_bias(g)
    return call.of_input(), call.of_filters(), call.of_offset(), d_bias, call.of_mask()


@deform_conv.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, w = np.arange(1, 10, dtype=f).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), f)
    still, moved = np.zeros((1, 8, 2, 2), f), np.zeros((1, 8, 2, 2), f)
    sums = np.array([[[[12, 16], [24, 28]]]], f)
    moved[0, 0, 0, 0], moved[0, 1, 1, 1] = 0.5, -2  # the first weight: half a row down, and two columns back
    changed = sums + np.array([[1.5, 0], [0, -5]], f)  # from 1 to 2.5, and from 5 to 0 outside the input
    factors = np.ones((1, 4, 2, 2), f)
    factors[0, 3, 0, 1] = 0.5  # of the last weight, which reads a 6
    for opset in (19, 22):
        yield Example(opset, x, w, still, expect=[sums])
        yield Example(opset, x, w, moved, [100], expect=[changed + 100])
        yield Example(opset, x, w, still, None, factors, expect=[sums - np.array([[0, 3], [0, 0]], f)])
    strided: dict[str, Any] = {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    yield Example(19, x, w, still, **strided, expect=[[[[[12, 9], [15, 9]]]]])
    # each channel has its own filter and offset: the first a quarter to the right, the second one to the left
    rows, aside = np.array([[[4, 8, 0], [1, 2, 3]]], f), [[[0.25] * 3, [-1] * 3]]
    groups: dict[str, Any] = {"group": 2, "offset_group": 2, "kernel_shape": [1]}
    yield Example(19, rows, [[[2]], [[10]]], aside, **groups, expect=[[[[10, 12, 0], [0, 10, 20]]]])
    yield Example(19, rows, [[[1, 2], [1, 0]]], np.zeros((1, 2, 1), f), dilations=[2], expect=[[[[5]]]])
    for dtype, opset in ((np.float16, 19), (np.float64, 19), (ml_dtypes.bfloat16, 22)):
        call = [a.astype(dtype) for a in (x, w, moved)]
        yield Example(opset, *call, expect=[changed.astype(dtype)])
    cube, middle = np.arange(8.0).reshape(1, 1, 2, 2, 2), np.full((1, 3, 1, 1, 1), 0.5)
    yield Example(19, cube, np.ones((1, 1, 1, 1, 1)), middle, strides=[2, 2, 2], expect=[[[[[[3.5]]]]]])
    yield Example(19, x[:0], w, still[:0], expect=[sums[:0]])
