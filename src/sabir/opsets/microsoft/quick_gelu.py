"""QuickGelu: a sigmoid that approximates the Gaussian error linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

quick_gelu = Operator(
    "QuickGelu",
    domain="com.microsoft",
    summary="`x * sigmoid(alpha * x)`.",
    body_opset=18,
)

T = Constraint("T", FLOATS, BFLOAT16)

v1 = quick_gelu.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    attributes=[
        Attribute("alpha", "float", "The factor of `x` in the sigmoid.", default=1.702),
    ],
)


v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    with np.errstate(over="ignore"):
        return x / (1 + np.exp(-alpha * x))


@v1.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    return loops.apply("mul", x, loops.apply("sigmoid", loops.apply("mul", x, alpha)))


@v1.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    return b.Mul(x, b.Sigmoid(Numbers.like(b, x).op("Mul", x, alpha)))


@v1.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    step = g.Sigmoid(g.Mul(x, alpha))
    return g.Mul(g.dy, g.Mul(step, g.Add(g.Mul(g.Mul(x, alpha), g.Sub(1, step)), 1)))


@quick_gelu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -1, 2.5, -0.125, 0, np.inf, np.nan]
    half = [0.6224593312018546, -0.3775406687981454, 1.943249652936728, -0.06054751053462305]
    yield from over_floats(x, [*half, 0, np.inf, np.nan], 1, bfloat16=1, alpha=0.5)
    y = [0.8457958, -0.1542042, 2.465014, -0.05587653]  # with the default, which is a float
    yield Example(1, np.array(x[:4], np.float32), expect=[np.array(y, np.float32)])
