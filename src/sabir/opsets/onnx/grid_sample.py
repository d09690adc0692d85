"""GridSample: images sampled at arbitrary coordinates, with interpolation."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.resampling import sampling_gradients
from sabir.opsets.families.resampling.grid_sampling import (
    BATCH_AND_CHANNELS,
    FIRST_NAMES,
    PADDING_MODE,
    check_ranks,
    sample_grid,
)
from sabir.opsets.families.resampling.resampling import ALIGN_CORNERS
from sabir.opsets.families.resampling.sampling_kernels import grid_sampled
from sabir.opsets.families.shapes.shapes import same_dim
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
        PADDING_MODE,
        Attribute(
            "mode",
            "string",
            "nearest, with ties to even; linear; or cubic. Before opset 20 bilinear and bicubic.",
            default="bilinear",
            values=one_of(*FIRST_NAMES),
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

v16.absent("downgrade", "no older operator samples a tensor at computed places")


@v16.infer
def infer_images(x: TensorType, grid: TensorType, /) -> TensorType:
    for t in (x, grid):
        if t.shape is not None and len(t.shape) != BATCH_AND_CHANNELS + 2:
            raise InferenceError(f"GridSample:16 admits images of rank 4, not {len(t.shape)}")
    return infer(x, grid)


@v20.infer
def infer(x: TensorType, grid: TensorType, /) -> TensorType:
    rank = x.rank or grid.rank
    if rank is None:
        return TensorType(x.element)
    images, sampled = x.shape or (None,) * rank, grid.shape or (None,) * rank
    check_ranks(images, sampled)
    batch = same_dim([images[0], sampled[0]], "the batches of `X` and `grid`")
    return TensorType(x.element, (batch, images[1], *sampled[1:-1]))


@v16.evaluate
def evaluate_images(x: Array, grid: Array, /, *, align_corners: int, padding_mode: str, mode: str) -> Array:
    if x.ndim != BATCH_AND_CHANNELS + 2:
        raise ValueError(f"GridSample:16 admits images of rank 4, not {x.ndim}")
    return sample_grid(x, grid, bool(align_corners), padding_mode, FIRST_NAMES[mode])


@v20.evaluate
def evaluate(x: Array, grid: Array, /, *, align_corners: int, padding_mode: str, mode: str) -> Array:
    return sample_grid(x, grid, bool(align_corners), padding_mode, mode)


@v16.lower
def lower_images(
    x: Expression, grid: Expression, /, *, align_corners: int, padding_mode: str, mode: str
) -> Expression:
    return grid_sampled(x, grid, padding_mode, FIRST_NAMES[mode], aligned=bool(align_corners))


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
        x, grid, align_corners=align_corners, padding_mode=padding_mode, mode=FIRST_NAMES.get(mode, mode)
    )


@v20.downgrade
def rename_back(
    b: Builder, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> Value:
    if not isinstance(x.type, TensorType) or x.type.rank != BATCH_AND_CHANNELS + 2:
        raise Unconvertible("GridSample:16 admits images of rank 4")
    names = {new: old for old, new in FIRST_NAMES.items()}
    return b.GridSample(
        x, grid, align_corners=align_corners, padding_mode=padding_mode, mode=names.get(mode, mode)
    )


@v16.gradient
def gradient_of_images(
    g: Gradient, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> tuple[Value, Value]:
    return sampling_gradients.of_grid_sample(g, x, grid, bool(align_corners), padding_mode, FIRST_NAMES[mode])


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
    before = {new: old for old, new in FIRST_NAMES.items()}
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
