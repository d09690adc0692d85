"""Col2Im: the sum of overlapping blocks, each at its position in an image."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError, check_elements
from sabir.ir import Dim, TensorType, Value, exact_quotient, may_be_equal, mod, product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import as_list
from sabir.opsets.families.shapes.size_vectors import padded
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.families.windows.convolution import scatter
from sabir.opsets.families.windows.tap_kernels import weighted
from sabir.opsets.families.windows.windows import DILATIONS, PADS, STRIDES, Window, WindowAxis
from sabir.opsets.typing import Array, Gradient, Ints
from sabir.schema import BFLOAT16, CLASSIC, Constraint, Example, Input, Operator, Output

col2im = Operator(
    "Col2Im", summary="An image to which each block is added at its position; the transpose of im2col."
)

T = Constraint("T", CLASSIC, BFLOAT16)

v18 = col2im.first(
    18,
    inputs=[
        Input(
            "input",
            T,
            "The blocks, (N, C * b1 * ... * bn, L), in the order of their positions.",
            differentiable=True,
        ),
        Input(
            "image_shape", "tensor(int64)", "The image's spatial size, (D1, ..., Dn).", differentiable=False
        ),
        Input("block_shape", "tensor(int64)", "The blocks' size, (b1, ..., bn).", differentiable=False),
    ],
    outputs=[Output("output", T, "The image, (N, C, D1, ..., Dn).", differentiable=True)],
    attributes=[STRIDES, PADS, DILATIONS],
)

_PLACE = 32  # temporary bytes for each, approximately
_RANK = 3  # batch, elements of a block for each channel, blocks

v18.absent("downgrade", "no older operator adds up parts at overlapping places")


@v18.infer
def infer(x: TensorType, image_shape: TensorType, block_shape: TensorType, /, **window: Any) -> TensorType:
    image, block = sizes_in("image_shape", image_shape), sizes_in("block_shape", block_shape)
    if x.shape is not None and len(x.shape) != _RANK:
        raise InferenceError(f"the input is {x}, and must have rank {_RANK}")
    batch, elements, count = x.shape or (None,) * _RANK
    if image is None or block is None:
        rank = len(image or block or window["strides"] or window["dilations"] or ())
        return TensorType(x.element, (batch, None, *(image or (None,) * rank)) if rank else None)
    if len(image) != len(block):
        raise InferenceError(f"image_shape has {len(image)} sizes, and block_shape {len(block)}")
    windows = product(Window.of(block, **window).outputs(image))
    if not may_be_equal(windows, count):
        raise InferenceError(f"the image has {windows} blocks, and the input {count}")
    return TensorType(x.element, (batch, _channels(elements, product(block)), *image))


def _channels(elements: Dim, block: Dim) -> Dim:
    left = mod(elements, block)
    if isinstance(left, int) and left:
        raise InferenceError(f"{elements} elements of a block do not divide into channels of {block}")
    return exact_quotient(elements, block)


@v18.evaluate
def evaluate(x: Array, image_shape: Array, block_shape: Array, /, **window: Any) -> Array:
    if x.dtype == np.object_:
        raise ValueError("texts cannot be added up")
    image, block = as_list("image_shape", image_shape), as_list("block_shape", block_shape)
    axes = Window.of(block, **window).axes(image)
    counts = [a.windows for a in axes]
    if x.ndim != _RANK or x.shape[2] != math.prod(counts) or x.shape[1] % math.prod(block):
        raise ValueError(f"an input of shape {list(x.shape)} does not have {counts} blocks of {block}")
    channels = x.shape[1] // math.prod(block)
    columns = widened(x).reshape(len(x), channels, *block, *counts)
    whole = allotted((len(x), channels, *image), columns.dtype, x.size)
    y: Array = np.zeros(whole, columns.dtype)
    scatter(columns, y, axes, [slice(0, n) for n in counts])
    return y.astype(x.dtype, copy=False)


@v18.lower
def lower(x: Expression, image_shape: Expression, block_shape: Expression, /, **window: Any) -> Expression:
    """Add up what each pixel has in blocks, from a table of their places."""
    image = kernels.integers_of(image_shape, "`image_shape`")
    block = kernels.integers_of(block_shape, "`block_shape`")
    axes = Window.of(block, **window).axes(image)
    counts = [a.windows for a in axes]
    batch, size = x.shape[0], math.prod(block) * math.prod(counts)
    channels = loops.divided(x.shape[1], math.prod(block))
    if channels is None or not loops.equal(x.shape[2], math.prod(counts)):
        raise NotLowered("whether the input has the blocks of the image is known at run time only")
    table = _places(axes, [*block, *counts], math.prod(image), size)
    flat = loops.pad(loops.reshape(x, (batch * channels, size)), (0, 0), (0, 1), 0)
    loops.check_computed(x.element)
    return loops.reshape(weighted(flat, 1, loops.tensor(table), None), (batch, channels, *image))


def _places(axes: Sequence[WindowAxis], shape: Sequence[int], pixels: int, size: int) -> Array:
    """Return the places [taps, pixels] in a column of blocks that each pixel adds up; `size` is none."""
    check_elements(2 * size, size, what="the places in blocks", width=_PLACE)
    number, inside = np.zeros(shape, np.int64), np.ones(shape, bool)
    for i, axis in enumerate(axes):
        tap, window = (
            np.arange(n).reshape([-1 if d == a else 1 for d in range(len(shape))])
            for a, n in ((i, axis.kernel), (i + len(axes), axis.windows))
        )
        pixel = window * axis.stride + tap * axis.dilation - axis.begin
        number, inside = number * axis.length + pixel, inside & (pixel >= 0) & (pixel < axis.length)
    places = np.flatnonzero(inside)
    pixel = number.reshape(-1)[places]
    order = np.argsort(pixel, kind="stable")
    pixel, places = pixel[order], places[order]
    rank = np.arange(len(pixel)) - np.searchsorted(pixel, pixel)  # among those of the same pixel
    taps = int(rank.max(initial=0)) + 1
    check_elements(taps * pixels, size, what="the places in blocks", width=_PLACE)
    table = np.full((taps, pixels), size, np.int32)
    table[rank, pixel] = places
    return table


@v18.gradient
def gradient(
    g: Gradient, x: Value, image_shape: Value, block_shape: Value, /, *, strides: Ints, pads: Ints,
    dilations: Ints,
) -> tuple[Value, None, None]:  # fmt: skip
    """Gather the blocks again, along one axis after another."""
    axes = range(g.rank(g.dy) - 2)
    edges = tuple(pads or (0,) * 2 * len(axes))
    steps, gaps = (tuple(v or (1,) * len(axes)) for v in (strides, dilations))
    image = padded(g, g.dy, edges[: len(axes)], edges[len(axes) :])
    for axis in reversed(axes):
        size, taps = g.Shape(image, start=axis + 2, end=axis + 3), g.Gather(block_shape, [axis])
        room = g.Sub(g.Sub(size, 1), g.Mul(g.Sub(taps, 1), gaps[axis]))
        count = g.Add(g.Div(room, steps[axis]), 1)
        within, starts = (g.Range(0, g.Squeeze(n, [0]), 1) for n in (taps, count))
        read = g.Add(g.Unsqueeze(g.Mul(within, gaps[axis]), [1]), g.Mul(starts, steps[axis]))
        image = g.Gather(image, read, axis=axis + 2)
    order = [2 * i + 2 + part for part in (0, 1) for i in axes]
    return g.Reshape(g.Transpose(image, perm=[0, 1, *order]), g.sizes(x), allowzero=1), None, None


@col2im.examples
def examples() -> Iterator[Example]:
    f = np.float32
    pair, size = [1, 2], [2, 3]
    # two blocks in each of two rows, by hand: the middle column is the end of one plus the start of the next
    blocks = np.array([[[1, 2, 3, 4], [10, 20, 30, 40]]], f)
    yield Example(18, blocks, size, pair, expect=[[[[[1, 12, 20], [3, 34, 40]]]]])
    for dtype in (np.int8, np.complex64, np.float16, ml_dtypes.bfloat16, np.uint64):
        y = np.array([[[[1, 12, 20], [3, 34, 40]]]], f).astype(dtype)
        yield Example(18, blocks.astype(dtype), size, pair, expect=[y])
    yield Example(
        18, blocks, size, pair, strides=[1, 2], pads=[0, 1, 0, 0], expect=[[[[[10, 2, 20], [30, 4, 40]]]]]
    )
    yield Example(18, blocks[..., :2], size, pair, dilations=[1, 2], expect=[[[[[1, 0, 10], [2, 0, 20]]]]])
    two = np.array([[[1], [100], [3], [2]]], np.int8)  # channels, whose first elements are in the padding
    yield Example(18, two, [1], [2], pads=[1, 0], expect=[[[[100], [2]]]])
    yield Example(18, np.full((1, 2, 2), 100, np.int8), [3], [2], expect=[[[[100, -56, 100]]]])
    yield Example(18, [[[True, False], [False, False]]], [3], [2], expect=[[[[True, False, False]]]])
    corners = [1.0, 2, 1]  # how many blocks meet
    meeting = np.einsum("i,j,k->ijk", corners, corners, corners)
    yield Example(18, np.ones((2, 8, 8)), [3, 3, 3], [2, 2, 2], expect=[np.full((2, 1, 3, 3, 3), meeting)])
    yield Example(18, np.zeros((0, 2, 4), f), size, pair, expect=[np.zeros((0, 1, 2, 3), f)])
