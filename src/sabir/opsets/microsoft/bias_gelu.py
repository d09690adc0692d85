"""BiasGelu: the Gaussian error linear unit of a tensor and a bias."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import gelus
from sabir.opsets.families.numbers.pointwise import TOLERANCES
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

bias_gelu = Operator(
    "BiasGelu",
    domain="com.microsoft",
    summary="`0.5 * x * (1 + erf(x / sqrt(2)))` of `x = A + B`.",
    body_opset=18,
)

T = Constraint("T", FLOATS, BFLOAT16)

v1 = bias_gelu.first(
    1,
    inputs=[
        Input("A", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("B", T, "The bias: one element for each of the last dimension of A.", differentiable=True),
    ],
    outputs=[Output("C", T, "The shape of A.", differentiable=True)],
)


@v1.infer
def infer(a: TensorType, b: TensorType, /) -> TensorType:
    gelus.check_bias("B", a, b)
    return TensorType(a.element, a.shape)


@v1.evaluate
def evaluate(a: Array, b: Array, /) -> Array:
    hold(infer, a, b)
    return gelus.gelu_with_bias(a, b, "none")


@v1.body
def body(b: Builder, x: Value, bias: Value, /) -> Value:
    return gelus.emitted_with_bias(b, x, bias, "none")


@bias_gelu.examples
def examples() -> Iterator[Example]:
    a, b = np.array([[0, 0.5], [1.5, np.nan]]), np.array([1, -1.5])
    y = np.array([[0.8413447460685429, -0.15865525393145705], [2.4844758366855597, np.nan]])  # mpmath
    for kind, tolerance in TOLERANCES.items():
        yield Example(1, a.astype(kind), b.astype(kind), expect=[y.astype(kind)], tolerance=tolerance)
    yield Example(1, [0.5], [0.5], expect=[[0.8413447460685429]])
    empty = np.zeros((0, 2), np.float32)
    yield Example(1, empty, b.astype(np.float32), expect=[empty])
