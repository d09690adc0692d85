"""IsAllFinite: whether no element of some tensors is infinite or NaN."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import BOOL as BOOLEAN
from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.sizes import passed_over
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    one_of,
)

is_all_finite = Operator(
    "IsAllFinite",
    domain="com.microsoft",
    summary="Whether no element of the inputs is infinite or NaN, or is of the one kind that is looked for.",
    body_opset=18,
)

V = Constraint("V", FLOATS, BFLOAT16)
T = Constraint("T", BOOL)

v1 = is_all_finite.first(
    1,
    inputs=[Input("input", V, "Tensors of any shapes.", variadic=True, minimum=1, differentiable=False)],
    outputs=[Output("output", T, "A scalar.", differentiable=False)],
    attributes=[
        Attribute("isinf_only", "int", "1: look for infinities only.", default=0, values=one_of(0, 1)),
        Attribute("isnan_only", "int", "1: look for NaN only.", default=0, values=one_of(0, 1)),
    ],
    status="experimental",
)

v1.absent("gradient", "the result is a truth value")


@v1.infer
def infer(*inputs: TensorType, isinf_only: int, isnan_only: int) -> TensorType:
    if isinf_only and isnan_only:
        raise InferenceError("`isinf_only` and `isnan_only` exclude each other; 0 for both looks for both")
    return TensorType(BOOLEAN, ())


@v1.evaluate
def evaluate(*inputs: Array, isinf_only: int, isnan_only: int) -> Array:
    infer(isinf_only=isinf_only, isnan_only=isnan_only)
    for x in inputs:
        passed_over(x)
    if isnan_only:
        return np.array(not any(np.isnan(x).any() for x in inputs))
    if isinf_only:
        return np.array(not any(np.isinf(x).any() for x in inputs))
    return np.array(all(np.isfinite(x).all() for x in inputs))


@v1.body
def body(b: Builder, *inputs: Value, isinf_only: int, isnan_only: int) -> Value:
    """Count the elements that are looked for."""
    found: Value | None = None
    for x in inputs:
        wide = halves.widened(b, x)
        if isnan_only:
            bad = b.IsNaN(wide)
        else:
            bad = b.IsInf(wide) if isinf_only else b.Or(b.IsInf(wide), b.IsNaN(wide))
        count = b.ReduceSum(b.Cast(bad, to=INT64.number), keepdims=0)
        found = count if found is None else b.Add(found, count)
    if found is None:
        return b.initializer("none", np.array(1, np.bool_))
    return Numbers(b, INT64).op("Equal", found, 0)


@is_all_finite.examples
def examples() -> Iterator[Example]:
    finite, infinite, nan = np.array([[1, 2]]), np.array([1, -np.inf]), np.array([[np.nan]])
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        good, first, second = (a.astype(kind) for a in (finite, infinite, nan))
        yield Example(1, good, expect=[True])
        yield Example(1, good, first, expect=[False])
        yield Example(1, second, good, good, isinf_only=0, expect=[False])
        yield Example(1, first, good, isnan_only=1, expect=[True])
        yield Example(1, first, second, isnan_only=1, expect=[False])
        yield Example(1, second, good, isinf_only=1, expect=[True])
        yield Example(1, first, isinf_only=1, expect=[False])
    yield Example(1, np.zeros((0, 2), np.float32), np.float32(1), expect=[True])
