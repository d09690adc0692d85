"""QLinearReduceMean: the mean of a quantized tensor over some axes, quantized again."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import scaled, scaled_means
from sabir.opsets.families.shapes.extents import shape_of
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, tensors

qlinear_reduce_mean = Operator(
    "QLinearReduceMean",
    domain="com.microsoft",
    summary="The mean of `dequantize(data)` over `axes`, quantized.",
    body_opset=18,
)

T = Constraint("T", tensors("int8", "uint8"))

v1 = qlinear_reduce_mean.first(
    1,
    inputs=[
        Input("data", T, "A tensor of any shape."),
        *scaled.parameters("data_scale", "data_zero_point", T, "data"),
        *scaled.parameters("reduced_scale", "reduced_zero_point", T, "reduced"),
    ],
    outputs=[Output("reduced", T, "The means; the reduced axes have size 1, or are gone.")],
    attributes=[
        Attribute("axes", "ints", "The axes to reduce; all axes where the list is empty.", required=True),
        Attribute("keepdims", "int", "1: the reduced axes remain, with size 1.", required=True),
    ],
)


@v1.infer
def infer(
    data: TensorType, scale: TensorType, zero: TensorType | None, to_scale: TensorType,
    to_zero: TensorType | None = None, /, *, axes: Sequence[int], keepdims: int,
) -> TensorType:  # fmt: skip
    scaled.check(data=(scale, zero), reduced=(to_scale, to_zero))
    if data.shape is None:
        return TensorType(data.element)
    reduced = _reduced(axes, len(data.shape))
    dims = [(1 if i in reduced else d) for i, d in enumerate(data.shape) if keepdims or i not in reduced]
    return TensorType(data.element, tuple(dims))


def _reduced(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the axes to reduce in ascending order, counted from the front."""
    return tuple(sorted({axis_in(axis, rank) for axis in axes})) if axes else tuple(range(rank))


@v1.evaluate
def evaluate(
    data: Array, scale: Array, zero: Array | None, to_scale: Array, to_zero: Array | None = None, /, *,
    axes: Sequence[int], keepdims: int,
) -> Array:  # fmt: skip
    hold(infer, data, scale, zero, to_scale, to_zero, axes=axes, keepdims=keepdims)
    reduced = _reduced(axes, data.ndim)
    return scaled_means.evaluated(data, reduced, scale, zero, to_scale, to_zero, keepdims=keepdims != 0)


@v1.body
def body(
    b: Builder, data: Value, scale: Value, zero: Value | None, to_scale: Value, to_zero: Value | None = None,
    /, *, axes: Sequence[int], keepdims: int,
) -> Value:  # fmt: skip
    reduced = _reduced(axes, len(shape_of("data", data)))
    return scaled_means.written(b, data, reduced, scale, zero, to_scale, to_zero, keepdims=keepdims != 0)


v1.absent("gradient", "the results are rounded to integers, which have no gradients")


@qlinear_reduce_mean.examples
def examples() -> Iterator[Example]:
    u, s, f = np.uint8, np.int8, np.float32
    x = np.array([[1, 2, 3], [4, 6, 14]])
    # by hand: with a zero point of 2 the means are -1, 0, 1 of rows: 0 and 6; of columns: 0.5, 2, 6.5; 3
    for dtype in (u, s):
        call = x.astype(dtype), f(1), dtype(2), f(1), dtype(10)
        yield Example(1, *call, axes=[1], keepdims=1, expect=[np.array([[10], [16]], dtype)])
        yield Example(1, *call, axes=[-2], keepdims=0, expect=[np.array([10, 12, 16], dtype)])
        yield Example(1, *call, axes=[0, 1], keepdims=0, expect=[np.array(13, dtype)])
    halves = x.astype(u), f(0.5), None, f(0.25)
    yield Example(1, *halves, axes=[0], keepdims=1, expect=[np.array([[5, 8, 17]], u)])
    yield Example(1, *halves, axes=[], keepdims=1, expect=[np.array([[10]], u)])
    large = np.full((2, 4), 127, s), f(2), s(-128), f(1), s(0)
    yield Example(1, *large, axes=[1], keepdims=0, expect=[np.array([127, 127], s)])
    yield Example(1, large[0][:0], *large[1:], axes=[1], keepdims=0, expect=[np.zeros(0, s)])
