"""ScaledSiLU: `z * sigmoid(z)` of a scaled tensor, each step rounded to the element type."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, Attribute, Constraint, Example, Input, Operator, Output, tensors

scaled_silu = Operator(
    "ScaledSiLU",
    domain="com.microsoft",
    summary="`z * sigmoid(z)` of `z = scale * X`; each of the three steps is rounded to the element type.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", BFLOAT16, tensors("float", "float16"))

v1 = scaled_silu.first(
    1,
    inputs=[
        Input("X", T, "A tensor of any shape.", differentiable=True),
        Input("scale", M, "A scalar; `alpha` by default.", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
    attributes=[Attribute("alpha", "float", "The scale where the input is absent.", default=1.0)],
)


@v1.infer
def infer(x: TensorType, scale: TensorType | None = None, /) -> TensorType:
    check_one("scale", scale)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, scale: Array | None = None, /, *, alpha: float) -> Array:
    factor = np.float32(alpha if scale is None else as_number("scale", scale))
    z = (widened(x) * factor).astype(x.dtype, copy=False)
    with np.errstate(over="ignore"):
        step = sigmoid(np.asarray(widened(z))).astype(x.dtype, copy=False)
    return np.asarray(widened(z) * widened(step)).astype(x.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, scale: Value | None = None, /, *, alpha: float) -> Value:
    wide = halves.widened(b, x)
    if scale is None:
        product = Numbers.like(b, wide).op("Mul", wide, alpha)
    else:
        product = b.Mul(wide, b.Reshape(typed(b, scale, FLOAT), as_input(b, "scalar", [])))
    z = halves.rounded(b, product, x)
    wide = halves.widened(b, z)
    step = halves.widened(b, halves.rounded(b, b.Sigmoid(wide), x))
    return halves.rounded(b, b.Mul(wide, step), x)


@scaled_silu.examples
def examples() -> Iterator[Example]:
    log3 = np.log(3)  # its logistic function is 3/4, that of its negative 1/4
    x, y = np.array([[log3, -log3], [0, np.nan]]), np.array([[0.75 * log3, -0.25 * log3], [0, np.nan]])
    for kind, rough in ((np.float32, 1e-6), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        results: dict[str, Any] = {"expect": [y.astype(kind)], "tolerance": rough}
        yield Example(1, x.astype(kind), **results)
        yield Example(1, (x / 2).astype(kind), alpha=2.0, **results)
        for other in (np.float32, np.float16, ml_dtypes.bfloat16):
            yield Example(1, (x * 4).astype(kind), other(0.25), alpha=7.0, **results)
    yield Example(1, np.array([100, -200], np.float32), expect=[[100, 0]])
    yield Example(1, np.float32(0), np.float32(3), expect=[0])
    yield Example(1, np.zeros((2, 0), np.float32), expect=[np.zeros((2, 0), np.float32)])
