"""IsNaN: whether elements are NaN."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, BOOL, FLOAT8, FLOATS, Constraint, Example, Input, Operator, Output

is_nan = Operator("IsNaN", summary="Whether each element is NaN.")

T1 = Constraint("T1", FLOATS)
T2 = Constraint("T2", BOOL)

v9 = is_nan.first(
    9,
    inputs=[Input("X", T1, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("Y", T2, "The input's shape.", differentiable=False)],
)
v13 = v9.widen(13, T1=BFLOAT16)
v20 = v13.widen(20, T1=FLOAT8)


@v9.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(BOOLEAN, x.shape)


@v9.evaluate
def evaluate(x: Array, /) -> Array:
    return np.isnan(x)


v9.lower(kernels.elementwise("isnan"))


@v9.downgrade
def compare(b: Builder, x: Value, /) -> Value:
    """Every number is below 1 or above 0, and NaN is neither."""
    numbers = Numbers.like(b, x)
    return b.Not(b.Or(numbers.op("Less", x, 1.0), numbers.op("Greater", x, 0.0)))


v9.absent("gradient", "the results are truth values")


@is_nan.examples
def examples() -> Iterator[Example]:
    x, y = np.array([[1.0, np.nan], [-np.inf, -np.nan]]), [[False, True], [False, True]]
    for opset in (9, 13, 20):
        for kind in (np.float16, np.float32, np.float64):
            yield Example(opset, x.astype(kind), expect=[y])
        yield Example(opset, np.nan, expect=[1])
        yield Example(opset, np.zeros((0, 3), np.float32), expect=[np.zeros((0, 3), bool)])
    yield Example(13, x.astype(ml_dtypes.bfloat16), expect=[y])
    finite = np.array([0.5, np.nan])
    for of in map(element, ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz")):
        yield Example(20, finite.astype(of.dtype), expect=[[False, True]])
