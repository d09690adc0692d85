"""Mish: each element times a smooth step function."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

mish = Operator("Mish", summary="`x * tanh(softplus(x))`, with `softplus(x) = log(1 + exp(x))`.")

T = Constraint("T", FLOATS)

v18 = mish.first(
    18,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
)
v22 = v18.widen(22, T=BFLOAT16)

v18.infer(same_as_first)

_STEP_DONE = 20.0  # from here on the factor is 1 in every type, long before the exponentials overflow


@v18.evaluate
@pointwise
def evaluate(x: Array, /) -> Array:
    """Avoid the logarithm: tanh(log(1 + e)) is ((1 + e)**2 - 1) / ((1 + e)**2 + 1)."""
    e = np.exp(np.minimum(x, _STEP_DONE))
    less = e * (e + 2)
    return x * (less / (less + 2))


@v18.lower
def lower(x: Expression, /) -> Expression:
    e = loops.apply("exp", loops.apply("min", x, _STEP_DONE))
    less = loops.apply("mul", e, loops.apply("add", e, 2))
    return loops.apply("mul", x, loops.apply("div", less, loops.apply("add", less, 2)))


@v18.body
def body(b: Builder, x: Value, /) -> Value:
    return b.Mul(x, b.Tanh(b.Softplus(x)))


@v18.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    gate = g.Tanh(g.Softplus(x))
    rise = g.Mul(g.Mul(x, g.Sigmoid(x)), g.Sub(1, g.Mul(gate, gate)))
    return g.Mul(g.dy, g.Add(gate, rise))


@mish.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits; minus infinity times 0 is NaN
    x = [1, -2, 0, 8, 100, -30, np.inf, -np.inf, np.nan]
    y = [0.8650983882673103, -0.2525014826957089, 0, 7.999998200644843, 100, -2.807286890651921e-12]
    y += [np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 18, 22, bfloat16=22)
