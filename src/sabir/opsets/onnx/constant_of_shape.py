"""ConstantOfShape: one value in every element of a shape that is an input."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, Tensor, TensorType, Value
from sabir.loops import Expression, Lowering
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.ranks import as_list
from sabir.opsets.families.shapes.sizes import allotted, sizes_in
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOAT8,
    NUMBERS,
    SMALL_TYPES,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

constant_of_shape = Operator(
    "ConstantOfShape", summary="A tensor of the shape in `input`, `value` everywhere."
)

T1 = Constraint("T1", tensors("int64"))
T2 = Constraint("T2", NUMBERS, BOOL)

v9 = constant_of_shape.first(
    9,
    inputs=[Input("input", T1, "The sizes, none below 0; no sizes mean a 0-D tensor.")],
    outputs=[Output("output", T2, "A tensor of that shape, of the type of `value`.")],
    attributes=[Attribute("value", "tensor", "One element; a float 0 when absent.")],
)
v20 = v9.widen(20, T2=FLOAT8 | BFLOAT16)
v25 = v20.widen_stepwise(SMALL_TYPES, "T2")


@v9.infer
def infer(sizes: TensorType, /, *, value: Tensor | None) -> TensorType:
    element = FLOAT if value is None else value.element
    if value is not None and value.size != 1:
        raise InferenceError(f"`value` must have one element, and has {value.size}")
    return TensorType(element, sizes_in("input", sizes))


@v9.evaluate
def evaluate(sizes: Array, /, *, value: Tensor | None) -> Array:
    """Return zeros as untouched pages; other values are written, because BLAS would copy a view."""
    one = np.zeros(1, np.float32) if value is None else value.array().reshape(1)
    dims = allotted(as_list("input", sizes), one.dtype)
    return np.full(dims, one[0], one.dtype) if any(one.tobytes()) else np.zeros(dims, one.dtype)


@v9.lower
def lower(sizes: Expression, /, *, value: Tensor | None, call: Lowering) -> Expression:
    kernels.check_sizing(sizes, "`input`")
    loops.check_element("float" if value is None else value.element.name)
    one = (
        loops.number("float", 0) if value is None else loops.number(value.element.name, value.array().item())
    )
    return loops.expand(one, call.shape())


@v9.downgrade
def expand_one(b: Builder, sizes: Value, /, *, value: Tensor | None) -> Value:
    one = np.zeros((), np.float32) if value is None else value.array().reshape(())
    return b.Expand(b.initializer("value", one), sizes)


@constant_of_shape.examples
def examples() -> Iterator[Example]:
    sizes = [2, 1]
    for opset in (9, 20, 21, 23, 24, 25):
        yield Example(opset, sizes, value=np.array([3], np.int32), expect=[np.array([[3], [3]], np.int32)])
    yield Example(9, sizes, expect=[np.array([[0], [0]], np.float32)])
    yield Example(9, [], value=np.array([True]), expect=[np.ones((), np.bool_)])
    yield Example(9, [3, 0], value=np.array([1.0]), expect=[np.zeros((3, 0))])
    yield Example(
        20, [2], value=np.array([0.5], ml_dtypes.bfloat16), expect=[np.full(2, 0.5, ml_dtypes.bfloat16)]
    )
    yield Example(21, [2], value=np.array([-8], ml_dtypes.int4), expect=[np.full(2, -8, ml_dtypes.int4)])
