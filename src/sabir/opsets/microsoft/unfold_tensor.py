"""UnfoldTensor: overlapping slices of an axis."""

from collections.abc import Iterator

import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, add, floor_div, sub
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
)

unfold_tensor = Operator(
    "UnfoldTensor",
    domain="com.microsoft",
    summary="All slices of `size` elements along an axis, `step` apart, in a new last axis.",
    body_opset=18,
)

T = Constraint("T", CLASSIC, BFLOAT16)

v1 = unfold_tensor.first(
    1,
    inputs=[Input("input", T, "A tensor of rank 1 or more.", differentiable=True)],
    outputs=[
        Output(
            "output",
            T,
            "The shape of the input, with (d - size) / step + 1 instead of d along `dim`, then `size`.",
            differentiable=True,
        )
    ],
    attributes=[
        Attribute("dim", "int", "The axis.", default=-1),
        Attribute("size", "int", "The elements of a slice.", required=True, values=at_least(1)),
        Attribute("step", "int", "From one slice to the next.", default=1, values=at_least(1)),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, dim: int, size: int, step: int) -> TensorType:
    if x.shape is None:
        return TensorType(x.element)
    axis = axis_in(dim, len(x.shape))
    length = x.shape[axis]
    if isinstance(length, int) and length < size:
        raise InferenceError(f"a slice of {size} elements is longer than the axis of {length}")
    count = add(floor_div(sub(length, size), step), 1)
    return TensorType(x.element, (*x.shape[:axis], count, *x.shape[axis + 1 :], size))


@v1.evaluate
def evaluate(x: Array, /, *, dim: int, size: int, step: int) -> Array:
    hold(infer, x, dim=dim, size=size, step=step)
    axis = axis_in(dim, x.ndim)
    slices = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    y = slices[*(slice(None),) * axis, ::step]
    allotted(y.shape, x.dtype, x.size)
    return y.copy()


@v1.body
def body(b: Builder, x: Value, /, *, dim: int, size: int, step: int) -> Value:
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of the input is unknown, and the slices are moved to the last axis")
    axis = axis_in(dim, rank)
    one, zero, width = (b.initializer(f"number_{n}", np.array(n, np.int64)) for n in (1, 0, size))
    length = b.Squeeze(b.Shape(x, start=axis, end=axis + 1))
    starts = b.Range(zero, b.Add(b.Sub(length, width), one), b.initializer("step", np.array(step, np.int64)))
    column = b.Unsqueeze(starts, b.initializer("last", np.array([-1], np.int64)))
    places = b.Add(column, b.initializer("places", np.arange(size, dtype=np.int64)))
    y = b.Gather(x, places, axis=axis)
    return b.Transpose(y, perm=[*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])


@unfold_tensor.examples
def examples() -> Iterator[Example]:
    x = np.arange(12).reshape(3, 4)
    yield Example(1, x, size=2, expect=[np.stack([x[:, :3], x[:, 1:]], axis=-1)])
    yield Example(1, x, size=2, dim=0, step=2, expect=[[[[0, 4], [1, 5], [2, 6], [3, 7]]]])
    yield Example(1, x, size=3, dim=1, step=2, expect=[x[:, None, :3]])
    yield Example(1, x, size=4, dim=-1, expect=[x[:, None]])
    yield Example(1, x, size=1, dim=-2, step=2, expect=[x[::2, :, None]])
    yield Example(1, ["a", "b", "c"], size=2, expect=[[["a", "b"], ["b", "c"]]])
    yield Example(1, np.array([True, False]), size=2, expect=[[[True, False]]])
    for kind in (np.float32, np.float64, np.float16, np.uint8, np.int32, np.uint64, np.complex64):
        pair = np.array([1, 2, 3, 4, 5], kind)
        yield Example(1, pair, size=3, step=2, expect=[np.array([[1, 2, 3], [3, 4, 5]], kind)])
    yield Example(1, x[:0], size=2, expect=[np.zeros((0, 3, 2), np.int64)])
