"""DeformConv: a convolution whose weights each look where an offset sends them."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.ir import Dim, TensorType, known_equal, mul, product
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.convolution import convolved_shape, kernel_of
from sabir.opsets.families.ranks import hold
from sabir.opsets.families.shapes import same_dim
from sabir.opsets.families.windows import Axis, Window
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
)

deform_conv = Operator(
    "DeformConv",
    summary="A convolution in which each weight meets the input at its place plus an offset, between pixels "
    "by linear interpolation, times a mask.",
)

T = Constraint("T", FLOATS)
_BLOCK = 1 << 16  # elements of the input that are read at a time, unless one tap of all windows reads more

v19 = deform_conv.first(
    19,
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn)."),
        Input("W", T, "The filters, (M, C/group, k1, ..., kn)."),
        Input(
            "offset",
            T,
            "For each weight of an offset group n coordinates, (N, og * k1...kn * n, O1, ..., On).",
        ),
        Input("B", T, "One number to add for each filter, (M).", optional=True),
        Input(
            "mask",
            T,
            "A factor for each weight, (N, og * k1...kn, O1, ..., On); 1 by default.",
            optional=True,
        ),
    ],
    outputs=[Output("Y", T, "One channel for each filter, (N, M, O1, ..., On).")],
    attributes=[
        Attribute(
            "strides", "ints", "The step between windows along each axis; 1 by default.", values=at_least(1)
        ),
        Attribute(
            "pads",
            "ints",
            "Zeros around the input: all the beginnings, then all the ends; none by default.",
            values=at_least(0),
        ),
        Attribute(
            "offset_group",
            "int",
            "How many parts of the channels have offsets of their own.",
            default=1,
            values=at_least(1),
        ),
        Attribute(
            "kernel_shape",
            "ints",
            "The filters' spatial size, (k1, ..., kn); `W` tells it too.",
            values=at_least(1),
        ),
        Attribute(
            "group",
            "int",
            "How many parts the channels fall into, each with filters of its own.",
            default=1,
            values=at_least(1),
        ),
        Attribute(
            "dilations",
            "ints",
            "The step between a filter's elements along each axis; 1 by default.",
            values=at_least(1),
        ),
    ],
)
v22 = v19.widen(22, T=BFLOAT16)


@v19.infer
def infer(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: TensorType, w: TensorType, offset: TensorType, b: TensorType | None = None,
    mask: TensorType | None = None, /, *, group: int, offset_group: int, kernel_shape: Sequence[int] | None,
    strides: Sequence[int] | None, pads: Sequence[int] | None, dilations: Sequence[int] | None,
) -> TensorType:  # fmt: skip
    shape = convolved_shape(
        x, w, b, group=group, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads
    )
    if shape is None:
        return TensorType(x.element)
    taps = product(kernel_shape or (w.shape[2:] if w.shape else (None,)))
    for given, each, name in ((offset, len(shape) - 2, "offset"), (mask, 1, "mask")):
        if given is not None and given.shape is not None:
            shape = _agreed(shape, given.shape, mul(taps, offset_group * each), name)
    return TensorType(x.element, shape)


def _agreed(shape: tuple[Dim, ...], given: tuple[Dim, ...], channels: Dim, name: str) -> tuple[Dim, ...]:
    """Hold the output's shape against that of an input with an element for each of its places."""
    if len(given) != len(shape) or known_equal(given[1], channels) is False:
        raise InferenceError(f"{name} {list(given)} does not go with an output {list(shape)}")
    places = [same_dim(pair, f"an axis of {name}") for pair in zip(shape[2:], given[2:], strict=True)]
    return same_dim((shape[0], given[0]), "the batch"), shape[1], *places


@v19.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    x: Array, w: Array, offset: Array, b: Array | None = None, mask: Array | None = None, /, *, group: int,
    offset_group: int, kernel_shape: Sequence[int] | None, strides: Sequence[int] | None,
    pads: Sequence[int] | None, dilations: Sequence[int] | None,
) -> Array:  # fmt: skip
    hold(
        infer, x, w, offset, b, mask, group=group, offset_group=offset_group, kernel_shape=kernel_shape,
        strides=strides, pads=pads, dilations=dilations,
    )  # fmt: skip
    kernel = kernel_of(w.shape, kernel_shape)
    window = Window.of(kernel, strides=strides, pads=pads, auto_pad="", dilations=dilations)
    axes = window.axes(x.shape[2:])
    counts, taps = [a.windows for a in axes], math.prod(w.shape[2:])
    if (
        min(group, offset_group) < 1
        or x.shape[1] != w.shape[1] * group
        or len(w) % group
        or x.shape[1] % offset_group
    ):
        raise ValueError(f"channels {x.shape[1]} and weights {list(w.shape)} do not go with the groups")
    offsets = widened(offset).reshape(len(x), offset_group, taps, len(axes), *counts)
    masks = None if mask is None else widened(mask).reshape(len(x), offset_group, taps, math.prod(counts), 1)
    images = widened(x).reshape(len(x), offset_group, x.shape[1] // offset_group, *x.shape[2:])
    images = np.ascontiguousarray(np.moveaxis(images, 2, -1))  # a sample reads channels that lie side by side
    filters = widened(w).reshape(group, len(w) // group, w.shape[1], taps)
    y: Array = np.zeros((len(x), group, len(w) // group, math.prod(counts)), images.dtype)
    _spend(len(x) * taps, counts, x.shape[1], offset_group)
    for some in _parts(taps, y.shape[-1] * x.shape[1]):
        origins = _origins(axes, w.shape[2:], some, y.dtype)
        for item in range(len(x)):
            at = [o + offsets[item, :, some, i] for i, o in enumerate(origins)]
            found = _interpolated(images[item], at).reshape(offset_group, -1, y.shape[-1], images.shape[-1])
            if masks is not None:
                found *= masks[item, :, some]
            columns = found.transpose(0, 3, 1, 2).reshape(group, -1, y.shape[-1])
            y[item] += filters[..., some].reshape(*filters.shape[:2], -1) @ columns
    if b is not None:
        y += widened(b).reshape(group, -1, 1)
    return y.reshape(len(x), len(w), *counts).astype(x.dtype, copy=False)


def _parts(taps: int, size: int) -> Iterator[slice]:
    """Yield taps that are read together, each of which reads `size` elements."""
    several = max(1, min(taps, _BLOCK // max(1, size)))
    for first in range(0, taps, several):
        yield slice(first, min(first + several, taps))


def _origins(axes: Sequence[Axis], kernel: Sequence[int], some: slice, dtype: np.dtype[Any]) -> list[Array]:
    """Return along each axis where some taps of the windows lie before they move, as (taps, *windows)."""
    taps: Sequence[Array] = np.unravel_index(np.arange(some.start, some.stop, dtype=np.int64), kernel)
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
    """Count what it takes to read all corners around so many samples of each window."""
    corners = samples << len(counts)
    spend_work(4 * corners * math.prod(counts) * channels, 8 * corners * groups)


def _interpolated(image: Array, at: Sequence[Array]) -> Array:
    """Return the elements of `image` (G, ..., C) at real coordinates (G, ...), 0 around it, as (G, L, C)."""
    groups, *lengths, channels = image.shape
    flat = image.reshape(groups, math.prod(lengths), channels)
    lows = [np.floor(a) for a in at]
    y: Array = np.zeros((groups, at[0][0].size, channels), image.dtype)
    for corner in itertools.product((0, 1), repeat=len(lengths)):
        shares: list[Array] = []
        index = np.zeros((), np.int64)
        for a, low, step, length in zip(at, lows, corner, lengths, strict=True):
            place = low + step
            inside = (place >= 0) & (place < length)
            shares.append(np.where(inside, 1 - np.abs(a - place), 0))
            index = index * length + np.where(inside, place, 0).astype(np.int64)
        weight = np.asarray(math.prod(shares))
        for g in range(groups):
            y[g] += np.take(flat[g], index[g].reshape(-1), axis=0) * weight[g].reshape(-1, 1)
    return y


@deform_conv.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x, w = np.arange(1, 10, dtype=f).reshape(1, 1, 3, 3), np.ones((1, 1, 2, 2), f)
    still, moved = np.zeros((1, 8, 2, 2), f), np.zeros((1, 8, 2, 2), f)
    sums = np.array([[[[12, 16], [24, 28]]]], f)
    moved[0, 0, 0, 0], moved[0, 1, 1, 1] = 0.5, -2  # the first weight: half a row down; two columns back
    changed = sums + np.array([[1.5, 0], [0, -5]], f)  # from 1 to 2.5, and from 5 to the 0 beyond the edge
    factors = np.ones((1, 4, 2, 2), f)
    factors[0, 3, 0, 1] = 0.5  # of the last weight, which meets a 6
    for opset in (19, 22):
        yield Example(opset, x, w, still, expect=[sums])
        yield Example(opset, x, w, moved, np.array([100], f), expect=[changed + f(100)])
        yield Example(opset, x, w, still, None, factors, expect=[sums - np.array([[0, 3], [0, 0]], f)])
    yield Example(19, x, w, np.zeros((1, 8, 2, 2), f), strides=[2, 2], pads=[0, 0, 1, 1],
                  expect=[np.array([[[[12, 9], [15, 9]]]], f)])  # fmt: skip
    # each channel its own filter and offset: the first a quarter to the right, the second one to the left
    rows = np.array([[[4, 8, 0], [1, 2, 3]]], f)
    aside = np.array([[[0.25] * 3, [-1] * 3]], f)
    yield Example(19, rows, np.array([[[2]], [[10]]], f), aside, group=2, offset_group=2, kernel_shape=[1],
                  expect=[np.array([[[10, 12, 0], [0, 10, 20]]], f)])  # fmt: skip
    yield Example(19, rows, np.array([[[1, 2], [1, 0]]], f), np.zeros((1, 2, 1), f), dilations=[2],
                  expect=[np.array([[[5]]], f)])  # fmt: skip
    for kind, opset in ((np.float16, 19), (np.float64, 19), (ml_dtypes.bfloat16, 22)):
        call = [a.astype(kind) for a in (x, w, moved)]
        yield Example(opset, *call, expect=[changed.astype(kind)])
    cube, middle = np.arange(8.0).reshape(1, 1, 2, 2, 2), np.full((1, 3, 1, 1, 1), 0.5)
    yield Example(
        19, cube, np.ones((1, 1, 1, 1, 1)), middle, strides=[2, 2, 2], expect=[np.full((1, 1, 1, 1, 1), 3.5)]
    )
    yield Example(
        19, np.zeros((0, 1, 3, 3), f), w, np.zeros((0, 8, 2, 2), f), expect=[np.zeros((0, 1, 2, 2), f)]
    )
