"""Unsqueeze: a tensor with further dimensions of size 1."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.ir import MAX_RANK, Builder, TensorType, Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.axes import as_input, as_ints, from_front, ints
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.shapes import axes_in, shared_dim
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    CLASSIC,
    SMALL_TYPES_AND_FLOAT8,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
)

unsqueeze = Operator(
    "Unsqueeze", summary="`data` with a dimension of size 1 at each of `axes`, which are axes of the output."
)

T = Constraint("T", CLASSIC)
_AXES = "The positions of the new dimensions in the output, counted from its back if negative."

v1 = unsqueeze.first(
    1,
    inputs=[Input("data", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("expanded", T, "The same elements in more dimensions.", differentiable=True)],
    attributes=[Attribute("axes", "ints", "The new dimensions, as axes of the output.", required=True)],
)
v11 = v1.restate(11, "Negative `axes` count from the back of the output; duplicates are invalid.")
v13 = v11.evolve(
    13,
    "`axes` moves from attribute to input.",
    inputs=[
        Input("data", T, "A tensor of any shape.", differentiable=True),
        Input("axes", "tensor(int64)", _AXES, differentiable=False),
    ],
    drop=["axes"],
    widen={"T": BFLOAT16},
)
v25 = v13.widen_stepwise(SMALL_TYPES_AND_FLOAT8, "T")


@v1.infer
def infer_from_attribute(data: TensorType, /, *, axes: Sequence[int]) -> TensorType:
    if data.shape is None:
        return TensorType(data.element)
    places = axes_in(axes, len(data.shape) + len(axes))
    rest = iter(data.shape)
    dims = tuple(1 if i in places else next(rest) for i in range(len(data.shape) + len(axes)))
    return contents.moved(TensorType(data.element, dims), lambda known: known, data)


@v13.infer
def infer(data: TensorType, axes: TensorType, /) -> TensorType:
    # the text requires a 1-D tensor; a scalar is as clear, and onnxruntime accepts both
    check_rank("axes", axes, 0, 1)
    known = contents.ints(axes.known)
    if known is not None:
        return infer_from_attribute(data, axes=known)
    if data.shape is None or not isinstance(axes.size, int) or axes.size > contents.MOST:
        return TensorType(data.element)
    count, shape = axes.size, data.shape
    # an output dimension is new, or one of `data` that at most `count` new ones move back
    dims = (shared_dim((1, *shape[max(0, i - count) : i + 1])) for i in range(len(shape) + count))
    return TensorType(data.element, tuple(dims))


@v1.evaluate
def evaluate_from_attribute(data: Array, /, *, axes: Sequence[int]) -> Array:
    return _expanded(data, axes)


v1.lower(kernels.as_inferred)


@v13.evaluate
def evaluate(data: Array, axes: Array, /) -> Array:
    check_rank("axes", axes, 0, 1)
    return _expanded(data, axes.ravel())


def _expanded(data: Array, axes: Sequence[int] | Array) -> Array:
    if data.ndim + len(axes) > MAX_RANK:  # numpy would first compare each axis with each
        raise ValueError(f"{data.ndim + len(axes)} dimensions are more than {MAX_RANK}")
    return np.expand_dims(data, tuple(map(int, axes)))


@v11.downgrade
def axes_from_front(b: Builder, data: Value, /, *, axes: Sequence[int]) -> Value:
    return b.Unsqueeze(data, axes=ints("axes", from_front(axes, data, more=len(axes))))


@v13.upgrade
def axes_become_an_input(b: Builder, data: Value, /, *, axes: Sequence[int]) -> Value:
    return b.Unsqueeze(data, as_input(b, "axes", axes))


@v13.downgrade
def axes_become_an_attribute(b: Builder, data: Value, axes: Value, /) -> Value:
    return b.Unsqueeze(data, axes=ints("axes", as_ints("axes", axes)))


@v13.gradient
def gradient(g: Gradient, data: Value, axes: Value, /) -> tuple[Value, None]:
    return g.Reshape(g.dy, g.sizes(data), allowzero=1), None


@unsqueeze.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, 2]], np.float32)
    for opset in (1, 11):
        yield Example(opset, x, axes=[3, 0], expect=[[[[[1], [2]]]]])
        yield Example(opset, x, axes=[], expect=[x])
    yield Example(11, x, axes=[-1], expect=[[[[1], [2]]]])
    for opset in (13, 21, 23, 24, 25):
        yield Example(opset, x, [-4, 2], expect=[np.array([[[[1, 2]]]], np.float32).reshape(1, 1, 1, 2)])
    yield Example(13, "a", [0], expect=[["a"]])
    yield Example(13, 7, [0, 1], expect=[[[7]]])
    yield Example(13, np.zeros((0, 2), np.int8), [1], expect=[np.zeros((0, 1, 2), np.int8)])
