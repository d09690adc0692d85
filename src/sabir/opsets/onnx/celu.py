"""Celu: the continuously differentiable exponential linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, tensors

celu = Operator("Celu", summary="`x` where it is 0 or above, `alpha * (exp(x / alpha) - 1)` below.")

T = Constraint("T", tensors("float"))

v12 = celu.first(
    12,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape, nothing below `-alpha`.", differentiable=True)],
    attributes=[
        Attribute("alpha", "float", "The negative of the limit for `x` toward -infinity.", default=1.0)
    ],
)
v28 = v12.widen(28, T=FLOATS | BFLOAT16)

v12.infer(same_as_first)


@v12.evaluate
@pointwise.pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0) / alpha)


@v12.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    below = loops.apply("expm1", loops.apply("div", loops.apply("min", x, 0), alpha))
    return loops.apply("add", loops.apply("max", x, 0), loops.apply("mul", below, alpha))


@v12.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    """Emit the part below 0 as an Elu, whose slope at 0 is 1."""
    numbers = Numbers.like(b, x)
    below = b.Elu(numbers.op("Div", b.Neg(b.Relu(b.Neg(x))), alpha))
    return b.Add(b.Relu(x), numbers.op("Mul", below, alpha))


@v12.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    return g.Mul(g.dy, g.Exp(g.Div(g.Min(x, 0), alpha)))


@celu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [-1, 2, -0.5, 0, np.inf, -np.inf, np.nan]
    y = [-0.6321205588285577, 2, -0.3934693402873666, 0, np.inf, -1, np.nan]
    scaled = [-0.7869386805747332, 2, -0.4423984338571903, 0, np.inf, -2, np.nan]
    yield from pointwise.over_floats(x, y, 28, bfloat16=28)
    yield from pointwise.over_floats(x, scaled, 28, bfloat16=28, alpha=2.0)
    single, results = np.array(x, np.float32), np.array([y, scaled], np.float32)
    yield Example(12, single, expect=[results[0]])
    yield Example(12, single, alpha=2.0, expect=[results[1]])
    yield Example(12, np.zeros((0, 3), np.float32), expect=[np.zeros((0, 3), np.float32)])
