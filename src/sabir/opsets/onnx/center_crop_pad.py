"""CenterCropPad: a tensor cropped or padded equally on both sides to the wanted sizes."""

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression, NotLowered, Size
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.opsets.families.shapes.size_vectors import padded_along
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, tensors

center_crop_pad = Operator(
    "CenterCropPad",
    summary="`input_data` with the sizes `shape`: a longer axis is cropped at both ends, a shorter one padded"
    " with zeros.",
)

T = Constraint("T", CLASSIC, BFLOAT16)
Tind = Constraint("Tind", tensors("int32", "int64"))

v18 = center_crop_pad.first(
    18,
    inputs=[
        Input("input_data", T, "A tensor of any shape.", differentiable=True),
        Input("shape", Tind, "The new size of each axis in `axes`.", differentiable=False),
    ],
    outputs=[
        Output(
            "output_data",
            T,
            "The result; of an odd difference the greater part is cropped or padded at the end.",
            differentiable=True,
        )
    ],
    attributes=[
        Attribute("axes", "ints", "The axes that change, from the back if negative; all by default.")
    ],
)


@v18.infer
def infer(x: TensorType, shape: TensorType, /, *, axes: Sequence[int] | None) -> TensorType:
    sizes = sizes_in("shape", shape)
    if x.shape is None:
        return TensorType(x.element, sizes if axes is None else None)
    numbers = axes_in(range(len(x.shape)) if axes is None else axes, len(x.shape))
    wanted: Sequence[Dim] = (None,) * len(numbers) if sizes is None else sizes
    if len(wanted) != len(numbers):
        raise InferenceError(f"`shape` has {len(wanted)} sizes for {len(numbers)} axes")
    dims = list(x.shape)
    for axis, size in zip(numbers, wanted, strict=True):
        dims[axis] = size
    return TensorType(x.element, tuple(dims))


@v18.evaluate
def evaluate(x: Array, shape: Array, /, *, axes: Sequence[int] | None) -> Array:
    numbers = axes_in(range(x.ndim) if axes is None else axes, x.ndim)
    check_shape("shape", shape, len(numbers))
    sizes = list(x.shape)
    source, target = [slice(None)] * x.ndim, [slice(None)] * x.ndim
    for axis, size in zip(numbers, shape.tolist(), strict=True):
        kept = min(x.shape[axis], size)
        begin, padding = (x.shape[axis] - kept) // 2, (size - kept) // 2
        source[axis], target[axis] = slice(begin, begin + kept), slice(padding, padding + kept)
        sizes[axis] = size
    y = np.full(allotted(sizes, x.dtype, x.size), "" if x.dtype == object else 0, x.dtype)
    y[tuple(target)] = x[tuple(source)]
    return y


@v18.lower
def lower(x: Expression, shape: Expression, /, *, axes: Sequence[int] | None) -> Expression:
    """Crop all axes, then pad them; one of the two does not change an axis."""
    numbers = axes_in(range(x.rank) if axes is None else axes, x.rank)
    before: list[Size] = [0] * x.rank
    after: list[Size] = [0] * x.rank
    for axis, size in zip(numbers, kernels.sizes_of(shape, "`shape`"), strict=True):
        kept = loops.smaller(x.shape[axis], size)
        if kept is None:
            raise NotLowered(
                f"whether {x.shape[axis]} is cropped or padded to {size} is known at run time only"
            )
        before[axis] = (size - kept) // 2
        after[axis] = size - kept - before[axis]
        x = loops.narrow(x, axis, (x.shape[axis] - kept) // 2, kept)
    return loops.pad(x, before, after, 0)


@v18.body
def body(b: Builder, x: Value, shape: Value, /, *, axes: Sequence[int] | None) -> Value:
    """Crop all axes, then pad them; one of the two does not change an axis."""
    named = None if axes is None else as_input(b, "axes", axes)
    zero, two = as_input(b, "zero", [0]), as_input(b, "two", [2])
    now = b.Shape(x) if named is None else b.Gather(b.Shape(x), named)
    wanted = b.Cast(shape, to=7)
    start = b.Div(b.Max(b.Sub(now, wanted), zero), two)
    cut = b.Slice(x, start, b.Add(start, wanted), named)  # Slice stops at the end
    missing = b.Max(b.Sub(wanted, now), zero)
    before = b.Div(missing, two)
    if axes is None:
        return b.Pad(cut, b.Concat(before, b.Sub(missing, before), axis=0))
    return padded_along(b, cut, axes, before, b.Sub(missing, before))


@v18.gradient
def gradient(g: Gradient, x: Value, shape: Value, /, *, axes: Sequence[int] | None) -> tuple[Value, None]:
    """What was cropped at one side is padded there, so the same operator restores the sizes."""
    sizes = g.sizes(x) if axes is None else g.Gather(g.sizes(x), [*axes])
    return g.CenterCropPad(g.dy, sizes, axes=axes), None


@center_crop_pad.examples
def examples() -> Iterator[Example]:
    x = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    cases: list[tuple[list[int], list[list[float]]]] = [
        ([1, 2], [[6, 7]]), ([2, 1], [[2], [6]]), ([1, 7], [[0, 5, 6, 7, 8, 0, 0]]),
        ([6, 3], [[0, 0, 0], [1, 2, 3], [5, 6, 7], [9, 10, 11], [0, 0, 0], [0, 0, 0]]), ([3, 4], x.tolist()),
    ]  # fmt: skip
    for shape, y in cases:
        yield Example(18, x, np.array(shape), expect=[np.array(y, np.float32)])
    yield Example(18, x, np.array([2], np.int32), axes=[-1], expect=[x[:, 1:3]])
    yield Example(18, x, [2, 1], axes=[1, 0], expect=[x[1:2, 1:3]])
    yield Example(18, x[:, :0], [0, 1], expect=[np.zeros((0, 1), np.float32)])
    words = ["a", "b"]
    yield Example(18, words, [4], expect=[["", "a", "b", ""]])
    brain = np.array([1, 2, 3], ml_dtypes.bfloat16)
    yield Example(18, brain, [1], expect=[brain[1:2]])
    yield Example(18, 5, np.zeros(0, np.int64), expect=[5])
