"""GridSample: images sampled at arbitrary coordinates, as the standard's operator before opset 20."""

from collections.abc import Iterator

import numpy as np

from sabir.base import UnsupportedError
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.resampling import grid_sampling, sampling_gradients
from sabir.opsets.families.resampling.resampling import ALIGN_CORNERS
from sabir.opsets.families.resampling.sampling_kernels import grid_sampled
from sabir.opsets.families.shapes.ranks import check_rank, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, one_of

grid_sample = Operator(
    "GridSample",
    domain="com.microsoft",
    summary="The image `X` sampled at the coordinates in `Grid`, which range from -1 to 1.",
    body_opset=18,
    lacks=("Images that are no floats: onnxruntime's CPU provider refuses them too.",),
)

T1 = Constraint("T1", CLASSIC)
T2 = Constraint("T2", FLOATS)

v1 = grid_sample.first(
    1,
    inputs=[
        Input("X", T1, "Images, [N, C, H, W].", differentiable=True),
        Input("Grid", T1, "Columns and rows to read, [N, H_out, W_out, 2].", differentiable=True),
    ],
    outputs=[Output("Y", T2, "The samples, [N, C, H_out, W_out].", differentiable=True)],
    attributes=[
        ALIGN_CORNERS,
        grid_sampling.PADDING_MODE,
        Attribute(
            "mode",
            "string",
            "nearest, with ties to even; bilinear; or bicubic.",
            default="bilinear",
            values=one_of(*grid_sampling.FIRST_NAMES),
        ),
    ],
)

_IMAGES = 4  # the rank
_RENAMED = 20  # the operator set of the standard that renames the modes


@v1.infer
def infer(x: TensorType, grid: TensorType, /) -> TensorType:
    if not x.element.is_float:
        raise UnsupportedError(f"GridSample samples images of floats, not of {x.element.name}")
    check_rank("X", x, _IMAGES)
    check_rank("Grid", grid, _IMAGES)
    n, c, *pixels = x.shape or (None,) * _IMAGES
    grids, height, width, numbers = grid.shape or (None,) * _IMAGES
    grid_sampling.check_ranks((n, c, *pixels), (grids, height, width, numbers))
    return x.with_shape(same_dim([n, grids], "the batches of `X` and `Grid`"), c, height, width)


@v1.evaluate
def evaluate(x: Array, grid: Array, /, *, align_corners: int, padding_mode: str, mode: str) -> Array:
    hold(infer, x, grid)
    return grid_sampling.sample_grid(
        x, grid, bool(align_corners), padding_mode, grid_sampling.FIRST_NAMES[mode]
    )


@v1.lower
def lower(
    x: Expression, grid: Expression, /, *, align_corners: int, padding_mode: str, mode: str
) -> Expression:
    name = grid_sampling.FIRST_NAMES[mode]
    return grid_sampled(x, grid, padding_mode, name, aligned=bool(align_corners))


@v1.body
def body(b: Builder, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str) -> Value:
    name = grid_sampling.FIRST_NAMES[mode] if b.opset >= _RENAMED else mode
    return b.GridSample(x, grid, align_corners=align_corners, padding_mode=padding_mode, mode=name)


@v1.gradient
def gradient(
    g: Gradient, x: Value, grid: Value, /, *, align_corners: int, padding_mode: str, mode: str
) -> tuple[Value, Value]:
    name = grid_sampling.FIRST_NAMES[mode]
    return sampling_gradients.of_grid_sample(g, x, grid, bool(align_corners), padding_mode, name)


@grid_sample.examples
def examples() -> Iterator[Example]:
    """By hand; the modes are those of the standard's operator, whose room has more examples."""
    f = np.float32
    x = np.array([[[[0, 1, 2], [3, 4, 5]]]], f)
    grid = np.array([[[[-1, -1], [0, 0], [1, 1], [2, 0.5]]]], f)  # columns and rows
    calls: list[tuple[str, str, int, list[float]]] = [
        ("bilinear", "zeros", 0, [0, 2.5, 1.25, 0]), ("bilinear", "border", 1, [0, 2.5, 5, 4.25]),
        ("nearest", "reflection", 1, [0, 1, 5, 4]),
    ]  # fmt: skip
    for mode, padding, aligned, y in calls:
        expected = np.array([[[y]]], f)
        yield Example(1, x, grid, mode=mode, padding_mode=padding, align_corners=aligned, expect=[expected])
    for padding in ("zeros", "border", "reflection"):
        for aligned in (0, 1):
            yield Example(1, x, grid, mode="bicubic", padding_mode=padding, align_corners=aligned)
    for kind in (np.float16, np.float64):
        yield Example(1, x.astype(kind), grid.astype(kind), expect=[np.array([[[[0, 2.5, 1.25, 0]]]], kind)])
    yield Example(1, x[:0], grid[:0], expect=[np.zeros((0, 1, 1, 4), f)])
