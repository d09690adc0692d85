"""CropAndResize: boxes of images, resized to one size."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT, INT64
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.opsets.typing import Array
from sabir.schema import (
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    one_of,
    tensors,
)

crop_and_resize = Operator(
    "CropAndResize",
    domain="com.microsoft",
    summary="The boxes `rois` of images, resized to `crop_size`; corners become corners.",
    body_opset=18,
)

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", tensors("int32"))

v1 = crop_and_resize.first(
    1,
    inputs=[
        Input("X", T1, "Images, [N, C, H, W].", differentiable=True),
        Input(
            "rois",
            T1,
            "Boxes, [R, 4]: the first row, the first column, the last row and the last column, from 0 to 1. "
            "Where the first is after the last the crop is mirrored.",
            differentiable=True,
        ),
        Input("batch_indices", T2, "The image of each box, [R].", differentiable=False),
        Input("crop_size", T2, "The height and the width of all crops, [2].", differentiable=False),
    ],
    outputs=[Output("Y", T1, "The crops, [R, C, height, width].", differentiable=True)],
    attributes=[
        Attribute("extrapolation_value", "float", "The pixels outside of the image.", default=0.0),
        Attribute(
            "mode",
            "string",
            "bilinear; or nearest, with ties to the next pixel.",
            default="bilinear",
            values=one_of("bilinear", "nearest"),
        ),
    ],
)

_IMAGES, _CORNERS = 4, 4


@v1.infer
def infer(x: TensorType, boxes: TensorType, images: TensorType, size: TensorType, /) -> TensorType:
    check_rank("X", x, _IMAGES)
    check_shape("rois", boxes, None, _CORNERS)
    check_rank("batch_indices", images, 1)
    check_shape("crop_size", size, 2)
    count = same_dim(
        [*(boxes.shape or ())[:1], *(images.shape or ())], "the numbers of `rois` and `batch_indices`"
    )
    height, width = _sizes(contents.ints(size.known))
    return TensorType(x.element, (count, x.shape[1] if x.shape else None, height, width))


def _sizes(known: list[int] | None) -> tuple[Dim, Dim]:
    if known is None:
        return None, None
    if min(known) < 1:
        raise InferenceError(f"the sizes of a crop must be positive, and are {known}")
    height, width = known
    return height, width


@v1.evaluate
def evaluate(
    x: Array,
    boxes: Array,
    images: Array,
    size: Array,
    /,
    *,
    extrapolation_value: float,
    mode: str,
) -> Array:
    hold(infer, x, boxes, images, size)
    height, width = size.tolist()
    _sizes([height, width])
    outside = (images < 0) | (images >= len(x))
    if outside.any():
        raise ValueError(f"a box is of the image {images[outside][0]}, and there are {len(x)}")
    y = np.empty(allotted((len(boxes), x.shape[1], height, width), x.dtype, x.size), x.dtype)
    spend_operations(40 * len(boxes), 8 * y.nbytes)
    wide = widened(boxes)
    rows = _places(wide[:, 0], wide[:, 2], height, x.shape[2])
    columns = _places(wide[:, 1], wide[:, 3], width, x.shape[3])
    for n, image in enumerate(images.tolist()):
        y[n] = _cropped(x[image], rows[n], columns[n], mode, extrapolation_value)
    return y


def _places(first: Array, last: Array, count: int, size: int) -> Array:
    """Return the coordinates of the pixels of crops along an axis, [R, count]."""
    end = first.dtype.type(size - 1)
    if count == 1:
        return (first + last)[:, None] * end * first.dtype.type(0.5)
    step = (last - first) * end / first.dtype.type(count - 1)
    return (first * end)[:, None] + np.arange(count, dtype=first.dtype) * step[:, None]


def _cropped(image: Array, rows: Array, columns: Array, mode: str, value: float) -> Array:
    """Return the pixels of an image [C, H, W] at coordinates."""
    height, width = image.shape[1:]
    inside = ((rows >= 0) & (rows <= height - 1))[:, None] & (columns >= 0) & (columns <= width - 1)
    if not inside.any():
        return np.full((len(image), *inside.shape), value, image.dtype)
    down, right = (np.where((p >= 0) & (p <= n - 1), p, 0) for p, n in ((rows, height), (columns, width)))
    if mode == "nearest":
        found = image[
            :, np.floor(down + 0.5).astype(np.int64)[:, None], np.floor(right + 0.5).astype(np.int64)
        ]
    else:
        found = _mixed(widened(image), down, right)
    return np.where(inside, found, found.dtype.type(value)).astype(image.dtype)


def _mixed(image: Array, rows: Array, columns: Array) -> Array:
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    bottom, right = np.ceil(rows).astype(np.int64), np.ceil(columns).astype(np.int64)
    down, along = (rows - top).astype(image.dtype)[:, None], (columns - left).astype(image.dtype)
    above, below = image[:, top], image[:, bottom]
    above = above[:, :, left] + (above[:, :, right] - above[:, :, left]) * along
    below = below[:, :, left] + (below[:, :, right] - below[:, :, left]) * along
    return above + (below - above) * down


@v1.body
def body(
    b: Builder,
    x: Value,
    boxes: Value,
    images: Value,
    size: Value,
    /,
    *,
    extrapolation_value: float,
    mode: str,
) -> Value:
    if not isinstance(size.type, TensorType) or contents.ints(size.type.known) is None:
        raise Unconvertible(
            "the sizes of the crops are known at run time only, which may have to refuse them"
        )
    graph = _Crops(b, x, boxes, images, size)
    rows, columns = graph.axis(0, 2), graph.axis(1, 3)
    inside = b.And(b.Unsqueeze(rows.inside, graph.ints(2)), b.Unsqueeze(columns.inside, graph.ints(1)))
    found = graph.mixed(rows, columns) if mode == "bilinear" else graph.nearest(rows, columns)
    filled = b.Where(b.Unsqueeze(inside, graph.ints(-1)), found, graph.number(extrapolation_value))
    return halves.rounded(b, b.Transpose(filled, perm=[0, 3, 1, 2]), x)


class _Places:
    """The coordinates of crops along an axis in a graph, [R, count]."""

    def __init__(self, graph: "_Crops", first: Value, last: Value, count: Value, size: Value) -> None:
        b = graph.b
        self._graph = graph
        end, more = b.Sub(graph.float(size), graph.number(1)), b.Sub(graph.float(count), graph.number(1))
        step = b.Div(b.Mul(b.Sub(last, first), end), b.Max(more, graph.number(1)))
        start = b.Mul(first, end)
        centre = b.Mul(b.Mul(b.Add(first, last), end), graph.number(0.5))
        single = b.Equal(count, graph.one)
        indices = graph.float(b.Range(graph.zero, count, graph.one))
        at = b.Add(b.Where(single, centre, start), b.Mul(indices, step))
        self.inside = b.And(b.GreaterOrEqual(at, graph.number(0)), b.LessOrEqual(at, end))
        self.at = b.Where(self.inside, at, graph.number(0))

    def nearest(self) -> Value:
        """Return the nearest pixels."""
        b = self._graph.b
        return b.Cast(b.Floor(b.Add(self.at, self._graph.number(0.5))), to=INT64.number)

    def around(self) -> tuple[Value, Value, Value]:
        """Return the pixels before and after, and the weight of those after."""
        b = self._graph.b
        before = b.Floor(self.at)
        low, high = (b.Cast(p, to=INT64.number) for p in (before, b.Ceil(self.at)))
        return low, high, b.Sub(self.at, before)


class _Crops:
    """The graph of a call: images as rows of channels, and the crops that are read from them."""

    def __init__(self, b: Builder, x: Value, boxes: Value, images: Value, size: Value) -> None:
        self.b = b
        self.zero, self.one = (b.initializer(f"number_{n}", np.array(n, np.int64)) for n in (0, 1))
        self._boxes = halves.widened(b, boxes)
        wide = halves.widened(b, x)
        self._pixels = [b.Squeeze(b.Shape(x, start=a, end=a + 1), self.ints(0)) for a in (2, 3)]
        self._size = b.Cast(size, to=INT64.number)
        area = b.Mul(*self._pixels)
        batch = b.Squeeze(b.Shape(x, start=0, end=1), self.ints(0))
        starts = b.Mul(b.Gather(b.Range(self.zero, batch, self.one), images), area)
        self._starts = b.Unsqueeze(starts, self.ints(1, 2))
        rows = b.Concat(b.Unsqueeze(b.Mul(batch, area), self.ints(0)), b.Shape(x, start=1, end=2), axis=0)
        self._rows = b.Reshape(b.Transpose(wide, perm=[0, 2, 3, 1]), rows, allowzero=1)
        self._like = wide

    def ints(self, *values: int) -> Value:
        """Emit a list of integers."""
        return as_input(self.b, "ints", values)

    def number(self, value: float) -> Value:
        """Emit a number of the type in which the crops are computed."""
        return self.b.CastLike(self.b.initializer("number", np.array(value, FLOAT.dtype)), self._like)

    def float(self, x: Value) -> Value:
        """Emit integers in the type in which the crops are computed."""
        return self.b.CastLike(x, self._like)

    def axis(self, first: int, last: int) -> _Places:
        """Return the coordinates along the axis that these two numbers of a box are of."""
        start, end = (self.b.Gather(self._boxes, self.ints(n), axis=1) for n in (first, last))
        count = self.b.Gather(self._size, self.b.initializer("axis", np.array(first, np.int64)))
        return _Places(self, start, end, count, self._pixels[first])

    def read(self, rows: Value, columns: Value) -> Value:
        """Emit the pixels at rows [R, height] and columns [R, width]: [R, height, width, C]."""
        b = self.b
        start = b.Add(self._starts, b.Mul(b.Unsqueeze(rows, self.ints(2)), self._pixels[1]))
        return b.Gather(self._rows, b.Add(start, b.Unsqueeze(columns, self.ints(1))))

    def nearest(self, rows: _Places, columns: _Places) -> Value:
        """Emit the pixels nearest to coordinates."""
        return self.read(rows.nearest(), columns.nearest())

    def mixed(self, rows: _Places, columns: _Places) -> Value:
        """Emit the pixels around coordinates, interpolated."""
        b = self.b
        top, bottom, down = rows.around()
        left, right, along = columns.around()
        down, along = b.Unsqueeze(down, self.ints(2, 3)), b.Unsqueeze(along, self.ints(1, 3))
        above, below = (
            self._between(self.read(row, left), self.read(row, right), along) for row in (top, bottom)
        )
        return self._between(above, below, down)

    def _between(self, first: Value, second: Value, weight: Value) -> Value:
        return self.b.Add(first, self.b.Mul(self.b.Sub(second, first), weight))


@crop_and_resize.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.arange(24, dtype=f).reshape(2, 1, 3, 4)
    boxes = np.array([[0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75], [-0.5, 0, 1.5, 1], [1, 1, 0, 0]], f)
    of = [0, 1, 0, 1]
    outside = np.full((2, 2), -7)
    y = [[[0, 3], [8, 11]], [[14.75, 16.25], [18.75, 20.25]], outside, [[23, 20], [15, 12]]]  # by hand
    crops = np.array(y, f)[:, None]
    yield Example(1, x, boxes, of, [2, 2], extrapolation_value=-7.0, expect=[crops])
    for mode in ("bilinear", "nearest"):
        for size in ([2, 2], [3, 3], [1, 1], [1, 3], [5, 4]):
            yield Example(1, x, boxes, of, size, mode=mode, extrapolation_value=-7.0)
    for kind in (np.float64, np.float16):
        yield Example(
            1, x.astype(kind), boxes[[0, 3]].astype(kind), [0, 1], [2, 2], expect=[crops[[0, 3]].astype(kind)]
        )
    many = np.arange(36, dtype=f).reshape(1, 3, 4, 3)
    yield Example(1, many, boxes[:2], [0, 0], [2, 3])
    yield Example(1, x, boxes[:0], np.zeros(0, np.int32), [2, 2], expect=[np.zeros((0, 1, 2, 2), f)])
