"""IsNaN: which elements are no numbers."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.elements import BOOL as BOOLEAN
from sabir.ir import TensorType
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
    for kind in (
        ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2, ml_dtypes.float8_e5m2fnuz
    ):  # fmt: skip
        yield Example(20, finite.astype(kind), expect=[[False, True]])
