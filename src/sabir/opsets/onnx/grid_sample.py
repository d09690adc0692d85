"""GridSample: images sampled at arbitrary coordinates, with interpolation."""

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.resampling import sampling_gradients
from sabir.opsets.families.resampling.resampling import ALIGN_CORNERS, kernel, saturated
from sabir.opsets.families.resampling.sampling_kernels import FAR, NOISE, REACHES, SLOPE, grid_sampled
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
)

grid_sample = Operator(
    "GridSample", summary="The image `X` sampled at the coordinates in `grid`, which range from -1 to 1."
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

_FIRST_NAMES = {
    "bilinear": "linear",
    "nearest": "nearest",
    "bicubic": "cubic",
}  # names before opset 20, and since

v16 = grid_sample.first(
    16,
    inputs=[
        Input("X", T1, "Images, [N, C, d1, ..., dr]; [N, C, H, W] before opset 20.", differentiable=True),
        Input(
            "grid",
            T2,
            "Coordinates, [N, D1, ..., Dr, r], that of the last dimension first.",
            differentiable=False,
        ),
    ],
    outputs=[
        Output(
            "Y",
            T1,
            "The samples, [N, C, D1, ..., Dr]; those of integer images are truncated.",
            differentiable=True,
        )
    ],
    attributes=[
        ALIGN_CORNERS,
        Attribute(
            "padding_mode",
            "string",
            "The pixels outside: zeros, the nearest pixel (border), or the mirrored image (reflection).",
            default="zeros",
            values=one_of("zeros", "border", "reflection"),
        ),
        Attribute(
            "mode",
            "string",
            "nearest, with ties to even; linear; or cubic. Before opset 20 bilinear and bicubic.",
            default="bilinear",
            values=one_of(*_FIRST_NAMES),
        ),
    ],
)
v20 = v16.evolve(
    20,
    "Admits images of any number of dimensions; renames bilinear to linear, and bicubic to cubic.",
    defaults={"mode": "linear"},
    values={"mode": one_of("linear", "nearest", "cubic")},
)
v22 = v20.widen(22, T1=BFLOAT16, T2=BFLOAT16)

_BATCH_AND_DEPTH = 2
_OPERATIONS = 8  # array operations on one axis for each pixel that is read
_SAMPLES, _CHANNELS = 1 << 13, 32  # read at a time, so that temporaries stay in the cache

v16.absent("downgrade", "no older operator samples a tensor at computed places")


@v16.infer
def infer_images(x: TensorType, grid: TensorType, /) -> TensorType:
    for t in (x, grid):
        if t.shape is not None and len(t.shape) != _BATCH_AND_DEPTH + 2:
            raise InferenceError(f"GridSample:16 admits images of rank 4, not {len(t.shape)}")
    return infer(x, grid)


@v20.infer
def infer(x: TensorType, grid: TensorType, /) -> TensorType:
    rank = x.rank or grid.rank
    if rank is None:
        return TensorType(x.element)
    images, sampled = x.shape or (None,) * rank, grid.shape or (None,) * rank
    _check_ranks(images, sampled)
    batch = same_dim([images[0], sampled[0]], "the batches of `X` and `grid`")
    return TensorType(x.element, (batch, images[1], *sampled[1:-1]))


def _check_ranks(x: Sequence[object], grid: Sequence[object]) -> None:
    if len(x) != len(grid) or len(x) <= _BATCH_AND_DEPTH:
        raise InferenceError(f"`X` of rank {len(x)} does not match a grid of rank {len(grid)}")
    if isinstance(grid[-1], int) and grid[-1] != len(x) - _BATCH_AND_DEPTH:
        raise InferenceError(
            f"`grid` has {grid[-1]} coordinates, and the images {len(x) - _BATCH_AND_DEPTH} dimensions"
        )


@v16.evaluate
def evaluate_images(x: Array, grid: Array, /, *, align_corners: int, padding_mode: str, mode: str) -> Array:
    if x.ndim != _BATCH_AND_DEPTH + 2:
        raise ValueError(f"GridSample:16 admits images of rank 4, not {x.ndim}")
    return _sampled(x, grid, bool(align_corners), padding_mode, _FIRST_NAMES[mode])


@v20.evaluate
def evaluate(x: Array, grid: Array, /, *, align_corners: int, padding_mode: str, mode: str) -> Array:
    return _sampled(x, grid, bool(align_corners), padding_mode, mode)


def _sampled(x: Array, grid: Array, aligned: bool, padding: str, mode: str) -> Array:  # ruff: ignore[boolean-type-hint-positional-argument]  an attribute
    _check_ranks(x.shape, grid.shape)
    if x.shape[0] != grid.shape[0]:
        raise ValueError(f"there are {x.shape[0]} images and {grid.shape[0]} grids")
    images, sampled = x.shape[_BATCH_AND_DEPTH:], grid.shape[1:-1]
    count = math.prod(images)
    # one more pixel, at the end, represents all pixels outside
    outside = np.full((*x.shape[:2], 1), "" if x.dtype == object else 0, x.dtype)
    check_elements(x.size + outside.size, x.size, what="the image and its border", width=x.itemsize)
    pixels = np.concatenate([x.reshape(*x.shape[:2], count), outside], axis=-1)
    y = np.empty(allotted((*x.shape[:2], math.prod(sampled)), x.dtype, x.size + grid.size), x.dtype)
    first, last = REACHES[mode]
    corners = (last - first) ** len(images)
    blocks = -(-y.shape[-1] // _SAMPLES) * -(-x.shape[1] // _CHANNELS)
    spend_operations((16 + _OPERATIONS * len(images) * corners) * len(x) * blocks, corners * y.nbytes)
    for n, coordinates in enumerate(grid.reshape(grid.shape[0], y.shape[-1], len(images))):
        for start in range(0, y.shape[-1], _SAMPLES):
            block = slice(start, start + _SAMPLES)
            around = [
                _around(coordinates[block, -1 - d], size, aligned, padding, mode)
                for d, size in enumerate(images)
            ]
            for channel in range(0, x.shape[1], _CHANNELS):
                chosen = slice(channel, channel + _CHANNELS)
                y[n, chosen, block] = _read(pixels[n, chosen], around, images, mode)
    return y.reshape(*x.shape[:2], *sampled)


def _around(coordinates: Array, size: int, aligned: bool, padding: str, mode: str) -> tuple[Array, Array]:  # ruff: ignore[boolean-type-hint-positional-argument]  an attribute
    """Return the pixels around each coordinate along an axis, -1 for outside, and their weights, by rows."""
    wide = coordinates.astype(np.float64)
    at = (wide + 1) / 2 * (size - 1) if aligned else ((wide + 1) * size - 1) / 2
    at = np.rint(at) if mode == "nearest" else at
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    if padding == "reflection":
        at = _mirrored(at, low, high)  # before far coordinates are clipped
    at = np.clip(np.nan_to_num(at, nan=-FAR), -FAR, size + FAR)
    first, last = REACHES[mode]
    pixels: Array = np.floor(at) + np.arange(first, last, dtype=np.float64)[:, None]
    weights = np.ones_like(pixels) if mode == "nearest" else kernel(mode, np.abs(pixels - at), SLOPE)
    if padding == "border":
        pixels = np.clip(pixels, 0, size - 1)
    elif padding == "reflection":
        pixels = _mirrored(pixels, low, high)
    inside = (pixels >= 0) & (pixels <= size - 1)
    return np.where(inside, pixels, -1).astype(np.int64), weights


def _mirrored(at: Array, low: float, high: float) -> Array:
    """Mirror coordinates outside the limits at the limits until they are inside."""
    reach = high - low
    if reach <= 0:
        return np.full_like(at, low)
    with np.errstate(invalid="ignore"):
        turn = np.mod(at - low, 2 * reach)
    return np.where((at < low) | (at > high), np.minimum(turn, 2 * reach - turn) + low, at)


def _read(pixels: Array, around: Sequence[tuple[Array, Array]], images: Sequence[int], mode: str) -> Array:
    """Add the weighted pixels around each coordinate, one after another."""
    if mode == "nearest":
        return np.take(pixels, _flat([p[0] for p, _ in around], images), axis=1)
    if pixels.dtype.kind in "bO":
        raise ValueError("flags and strings cannot be interpolated")
    work = (
        np.dtype(np.float64)
        if pixels.dtype.kind in "iu"
        else np.result_type(pixels.dtype if pixels.dtype.kind in "fc" else np.float32, np.float32)
    )
    y = np.zeros((pixels.shape[0], around[0][0].shape[1]), work)
    for taps in itertools.product(*(range(p.shape[0]) for p, _ in around)):
        chosen = [(p[t], w[t]) for (p, w), t in zip(around, taps, strict=True)]
        weight: Array = math.prod(w for _, w in chosen)  # pyright: ignore[reportAssignmentType] - of arrays
        y += np.take(pixels, _flat([p for p, _ in chosen], images), axis=1) * weight.astype(work)
    if pixels.dtype.kind not in "iu":
        return y.astype(pixels.dtype, copy=False)
    whole = np.rint(y)
    cut = np.where(np.abs(y - whole) < NOISE, whole, np.trunc(y))
    return saturated(cut, pixels.dtype)


def _flat(indices: Sequence[Array], images: Sequence[int]) -> Array:
    """Return flat indices of pixels; the last one represents all pixels outside."""
    number: Array = np.zeros_like(indices[0])
    outside = np.zeros(number.shape, bool)
    for index, size in zip(indices, images, strict=True):
        number = np.asarray(number * size + index)
        outside |= index < 0
    return np.where(outside, math.prod(images), number)


@v16.lower
def lower_images(
    x: Expression, grid: Expression, /, *, align_corners: int, padding_mode: str, mode: str
) -> Expression:
    return grid_sampled(x, grid, padding_mode, _FIRST_NAMES[mode], aligned=bool(align_corners))


@v20.lower
def lower(
    x: Expression, grid: Expression, /, *, align_corners: int, padding_mode: str, mode: str
) -> Expression:
    return grid_sampled(x, grid, padding_mode, mode, aligned=bool(align_corners))


@v20.upgrade
def rename(
    b: Builder, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> Value:
    return b.GridSample(
        x, grid, align_corners=align_corners, padding_mode=padding_mode, mode=_FIRST_NAMES.get(mode, mode)
    )


@v20.downgrade
def rename_back(
    b: Builder, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> Value:
    if not isinstance(x.type, TensorType) or x.type.rank != _BATCH_AND_DEPTH + 2:
        raise Unconvertible("GridSample:16 admits images of rank 4")
    names = {new: old for old, new in _FIRST_NAMES.items()}
    return b.GridSample(
        x, grid, align_corners=align_corners, padding_mode=padding_mode, mode=names.get(mode, mode)
    )


@v16.gradient
def gradient_of_images(
    g: Gradient, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> tuple[Value, Value]:
    return sampling_gradients.of_grid_sample(
        g, x, grid, bool(align_corners), padding_mode, _FIRST_NAMES[mode]
    )


@v20.gradient
def gradient(
    g: Gradient, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> tuple[Value, Value]:
    return sampling_gradients.of_grid_sample(g, x, grid, bool(align_corners), padding_mode, mode)


@grid_sample.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[0, 1, 2], [3, 4, 5]]]], f)
    grid = np.array([[[[-1, -1], [0, 0], [1, 1], [2, 0.5]]]], f)  # rows of x and y
    cases: list[tuple[str, str, int, list[float]]] = [  # by hand; cubic: by onnxruntime
        ("linear", "zeros", 0, [0, 2.5, 1.25, 0]), ("linear", "zeros", 1, [0, 2.5, 5, 0]),
        ("linear", "border", 0, [0, 2.5, 5, 5]), ("linear", "border", 1, [0, 2.5, 5, 4.25]),
        ("linear", "reflection", 0, [0, 2.5, 5, 4]), ("linear", "reflection", 1, [0, 2.5, 5, 3.25]),
        ("nearest", "border", 0, [0, 1, 5, 5]), ("nearest", "zeros", 1, [0, 1, 5, 0]),
        ("nearest", "reflection", 1, [0, 1, 5, 4]),
        ("cubic", "zeros", 0, [-0.1875, 2.96875, 1.4375, 0]), ("cubic", "zeros", 1, [0, 2.96875, 5, 0]),
        ("cubic", "border", 0, [-0.375, 2.5, 5.375, 5]), ("cubic", "border", 1, [0, 2.5, 5, 4.3203125]),
        ("cubic", "reflection", 0, [-0.75, 2.5, 5.75, 4]), ("cubic", "reflection", 1, [0, 2.5, 5, 3.53125]),
    ]  # fmt: skip
    before = {new: old for old, new in _FIRST_NAMES.items()}
    for mode, padding, aligned, read in cases:
        for opset in (16, 20, 22):
            options: dict[str, Any] = {"padding_mode": padding, "align_corners": aligned}
            name = before[mode] if opset < v20.since else mode
            yield Example(opset, x, grid, mode=name, **options, expect=[np.array([[[read]]], f)])
    yield from _examples_of_types(x, grid)


def _examples_of_types(x: Array, grid: Array) -> Iterator[Example]:
    f = np.float32
    for kind in (np.int8, np.uint8, np.int64):
        yield Example(16, x.astype(kind), grid, padding_mode="border", expect=[[[[[0, 2, 5, 5]]]]])
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(22, x.astype(kind), grid.astype(kind), expect=[[[[[0, 2.5, 1.25, 0]]]]])
    words = [[["a", "b"]]]
    line = np.array([[[-0.5], [0.5], [9]]], f)
    yield Example(20, words, line, mode="nearest", expect=[[[["a", "b", ""]]]])
    wild = np.array([[[np.nan], [np.inf], [-1e30], [-8.0]]], f)  # -8 is at -13.5 of four pixels
    row = np.array([[[1, 2, 3, 4]]], f)
    yield Example(20, row, wild, padding_mode="border", expect=[[[[1, 4, 1, 1]]]])
    yield Example(20, row, wild, expect=[np.zeros((1, 1, 4), f)])
    yield Example(20, row, wild[:, 3:], padding_mode="reflection", align_corners=1, expect=[[[[2.5]]]])
    cube = np.arange(8, dtype=f).reshape(1, 1, 2, 2, 2)
    inside = np.array([[[[[0, 0, 0], [1, -1, 0]]]]], f)
    yield Example(20, cube, inside, align_corners=1, expect=[[[[[[3.5, 3]]]]]])
    yield Example(20, row[:0], line[:0], expect=[np.zeros((0, 1, 3), f)])
