"""GivenTensorFill: a tensor of numbers that the node has."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, Dim, TensorType, Value, product
from sabir.loops import Expression, Lowering, NotLowered
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.fills import SHAPE_ATTRIBUTES, emitted_sizes, filled_shape, filled_sizes
from sabir.opsets.typing import Array, Floats, Ints
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output

given_tensor_fill = Operator(
    "GivenTensorFill", summary="The tensor with these `values` in row-major order.", body_opset=6
)

T = Constraint("T", FLOATS)

v1 = given_tensor_fill.first(
    1,
    inputs=[
        Input("shape", T, "A tensor of the shape, or the shape if `input_as_shape` is set.", optional=True)
    ],
    outputs=[Output("X", T, "The tensor; float without an input.")],
    attributes=[
        Attribute("values", "floats", "The elements; none if absent."),
        *SHAPE_ATTRIBUTES,
    ],
    unpublished=True,
)
v10 = removed(v1, "Constant has the numbers, and Reshape the shape.")


def _check(shape: Sequence[Dim] | None, values: Floats) -> None:
    size = None if shape is None else product(shape)
    if isinstance(size, int) and size != len(values or ()):
        raise InferenceError(f"{len(values or ())} values do not fill the shape {list(shape or ())}")


@v1.infer
def infer(
    like: TensorType | None = None, /, *, values: Floats, shape: Ints, input_as_shape: int | None,
    extra_shape: Ints,
) -> TensorType:  # fmt: skip
    found = filled_shape(like, shape, input_as_shape, extra_shape)
    _check(found, values)
    return TensorType(FLOAT if like is None else like.element, found)


@v1.evaluate
def evaluate(
    like: Array | None = None, /, *, values: Floats, shape: Ints, input_as_shape: int | None,
    extra_shape: Ints,
) -> Array:  # fmt: skip
    sizes = filled_sizes(like, shape, input_as_shape, extra_shape)
    _check(sizes, values)
    return np.array(values or (), np.float32 if like is None else like.dtype).reshape(sizes)


@v1.lower
def lower(like: Expression | None = None, /, *, values: Floats, call: Lowering) -> Expression:
    shape = call.shape()
    if not all(isinstance(size, int) for size in shape):
        raise NotLowered("whether the values fill the shape is known at run time only")
    numbers = np.array(values or (), np.float32)
    if math.prod(size for size in shape if isinstance(size, int)) != numbers.size:
        raise NotLowered("the values do not fill the shape")
    return loops.cast(loops.reshape(loops.tensor(numbers), shape), "float" if like is None else like.element)


@v10.upgrade
@v1.body
def constant(
    b: Builder, like: Value | None = None, /, *, values: Floats, shape: Ints, input_as_shape: int | None,
    extra_shape: Ints,
) -> Value:  # fmt: skip
    kind = FLOAT if like is None else element_of(like)
    numbers = b.initializer("values", np.array(values or (), kind.dtype))
    return b.Reshape(numbers, emitted_sizes(b, like, shape, input_as_shape, extra_shape))


@given_tensor_fill.examples
def examples() -> Iterator[Example]:
    numbers = [1.0, 2.0, 3.0, 4.0]
    for opset in (1, 9):
        y = np.array([[1, 2], [3, 4]], np.float32)
        yield Example(opset, values=numbers, shape=[2, 2], expect=[y])
        yield Example(opset, values=numbers, shape=[4], input_as_shape=0, expect=[y.ravel()])
    for kind in (np.float32, np.float16, np.float64):
        filled = y.astype(kind)
        yield Example(9, np.zeros((2, 2), kind), values=numbers, expect=[filled])
        yield Example(9, np.zeros(2, kind), values=numbers, extra_shape=[2], expect=[filled])
        yield Example(9, np.array([2, 2], kind), values=numbers, input_as_shape=1, expect=[filled])
        yield Example(
            9, np.array([2], kind), values=numbers, input_as_shape=1, extra_shape=[2], expect=[filled]
        )
    yield Example(9, shape=[0, 2], expect=[np.zeros((0, 2), np.float32)])
