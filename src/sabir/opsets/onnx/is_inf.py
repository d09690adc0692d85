"""IsInf: whether elements are infinite."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import BOOL as BOOLEAN
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOAT8,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    tensors,
)

is_inf = Operator("IsInf", summary="Whether each element is infinite, with one of the detected signs.")

T1 = Constraint("T1", tensors("double", "float"))
T2 = Constraint("T2", BOOL)

v10 = is_inf.first(
    10,
    inputs=[Input("X", T1, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("Y", T2, "The input's shape.", differentiable=False)],
    attributes=[
        Attribute("detect_negative", "int", "0: -infinity does not count.", default=1),
        Attribute("detect_positive", "int", "0: +infinity does not count.", default=1),
    ],
)
v20 = v10.widen(20, T1=FLOATS | FLOAT8 | BFLOAT16)


@v10.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(BOOLEAN, x.shape)


@v10.evaluate
def evaluate(x: Array, /, *, detect_negative: int, detect_positive: int) -> Array:
    if detect_negative and detect_positive:
        return np.isinf(x)
    if not detect_negative and not detect_positive:
        return np.zeros(x.shape, np.bool_)
    return np.equal(widened(x), np.inf if detect_positive else -np.inf)


@v10.lower
def lower(x: Expression, /, *, detect_negative: int, detect_positive: int) -> Expression:
    if not detect_negative and not detect_positive:
        return kernels.filled("bool", 0, x.shape)
    if detect_negative and detect_positive:
        return loops.apply("eq", loops.apply("abs", x), np.inf)
    return loops.apply("isinf_pos" if detect_positive else "isinf_neg", x)


@v10.downgrade
def compare(b: Builder, x: Value, /, *, detect_negative: int, detect_positive: int) -> Value:
    """Compare with the greatest and the least number of the type."""
    numbers, limits = Numbers.like(b, x), np.finfo(element_of(x).dtype)
    found = [numbers.op("Greater", x, float(limits.max))] if detect_positive else []
    found += [numbers.op("Less", x, float(limits.min))] if detect_negative else []
    return b.Or(*found) if len(found) > 1 else found[0] if found else b.Less(x, x)


v10.absent("gradient", "the results are truth values")


@is_inf.examples
def examples() -> Iterator[Example]:
    x = np.array([[1, np.inf, -np.inf], [np.nan, 0, np.inf]])
    plus, minus = np.array([[0, 1, 0], [0, 0, 1]], bool), np.array([[0, 0, 1], [0, 0, 0]], bool)
    half = (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2)
    for opset in (10, 20):
        for kind in (np.float32, np.float64, *(half if opset >= v20.since else ())):
            yield Example(opset, x.astype(kind), expect=[plus | minus])
            yield Example(opset, x.astype(kind), detect_negative=0, expect=[plus])
            yield Example(opset, x.astype(kind), detect_positive=0, expect=[minus])
        yield Example(opset, x, detect_positive=0, detect_negative=0, expect=[np.zeros((2, 3), bool)])
        yield Example(opset, -np.inf, expect=[1])
        yield Example(opset, np.zeros((0, 3), np.float32), expect=[np.zeros((0, 3), bool)])
    finite = np.array([0.5, -2, np.nan])  # these types have no infinities
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz):
        yield Example(20, finite.astype(kind), expect=[np.zeros(3, bool)])
