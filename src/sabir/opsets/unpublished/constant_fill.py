"""ConstantFill: a tensor of one number."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.fills import SHAPE_ATTRIBUTES, emitted_sizes, filled_shape, filled_sizes
from sabir.opsets.families.shapes.sizes import allotted
from sabir.opsets.typing import Array, Ints
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, element_types, tensors

constant_fill = Operator(
    "ConstantFill",
    summary="A tensor of `value`, in the shape of an attribute, of the input, or that the input contains.",
    body_opset=9,
)

T1 = Constraint("T1", tensors("float", "int32", "int64", "bool"))
T2 = Constraint("T2", tensors("float", "int32", "int64", "bool"))

v1 = constant_fill.first(
    1,
    inputs=[
        Input("input", T1, "A tensor of the shape, or the shape if `input_as_shape` is set.", optional=True)
    ],
    outputs=[Output("output", T2, "The tensor.")],
    attributes=[
        Attribute("value", "float", "The number.", default=0.0),
        Attribute(
            "dtype",
            "int",
            "The element type of the output, as a number of TensorProto.DataType; 1 is float.",
            default=1,
            values=element_types("T2"),
        ),
        *SHAPE_ATTRIBUTES,
    ],
    status="experimental",
    unpublished=True,
)

v1.absent("gradient", "the result does not depend on the elements of the input")


@v1.infer
def infer(
    like: TensorType | None = None, /, *, dtype: int, shape: Ints, input_as_shape: int | None,
    extra_shape: Ints,
) -> TensorType:  # fmt: skip
    return TensorType(element(dtype), filled_shape(like, shape, input_as_shape, extra_shape))


@v1.evaluate
def evaluate(
    like: Array | None = None, /, *, value: float, dtype: int, shape: Ints, input_as_shape: int | None,
    extra_shape: Ints,
) -> Array:  # fmt: skip
    number = _number(value, dtype)
    sizes = filled_sizes(like, shape, input_as_shape, extra_shape)
    return np.full(allotted(sizes, number.dtype), number)


def _number(value: float, dtype: int) -> Array:
    """Return the number in the element type; any but 0 is true."""
    with np.errstate(invalid="ignore"):  # NaN as an integer
        return np.array(value, np.float32).astype(element(dtype).dtype)


@v1.lower
def lower(like: Expression | None = None, /, *, value: float, dtype: int, call: Lowering) -> Expression:
    kind = element(dtype)
    number = value if kind.is_float else int(_number(value, dtype))
    return kernels.filled("bool" if kind is BOOLEAN else kind.name, number, call.shape())


@v1.body
def body(
    b: Builder, like: Value | None = None, /, *, value: float, dtype: int, shape: Ints,
    input_as_shape: int | None, extra_shape: Ints,
) -> Value:  # fmt: skip
    sizes = emitted_sizes(b, like, shape, input_as_shape, extra_shape)
    return b.ConstantOfShape(sizes, value=_number(value, dtype).reshape(1))


@constant_fill.examples
def examples() -> Iterator[Example]:
    for opset in (1, 9, 13):
        yield Example(opset, shape=[2, 1], value=1.5, expect=[np.full((2, 1), 1.5, np.float32)])
    for number, kind in ((1, np.float32), (6, np.int32), (7, np.int64), (9, bool)):
        three = np.full((2, 3), 3, kind)
        options: dict[str, Any] = {"value": 3.0, "dtype": number}
        yield Example(9, np.zeros((2, 3), kind), **options, expect=[three])
        yield Example(9, np.zeros(2, kind), extra_shape=[3], **options, expect=[three])
    sizes = np.array([2, 3], np.int64)
    yield Example(9, sizes, input_as_shape=1, expect=[np.zeros((2, 3), np.float32)])
    yield Example(
        9, sizes[:1], input_as_shape=1, extra_shape=[3], value=-1.0, expect=[np.full((2, 3), -1, np.float32)]
    )
    yield Example(9, np.zeros(0, np.int32), input_as_shape=1, value=2.0, expect=[np.float32(2)])
    yield Example(9, np.zeros((0, 2), np.float32), dtype=7, expect=[np.zeros((0, 2), np.int64)])
