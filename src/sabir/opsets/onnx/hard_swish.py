"""HardSwish: each element times a linear function limited to [0, 1]."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

hard_swish = Operator("HardSwish", summary="`x * max(0, min(1, x / 6 + 0.5))`.")

T = Constraint("T", FLOATS)

v14 = hard_swish.first(
    14,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape: 0 up to -3, the input from 3 on.", differentiable=True)],
)
v22 = v14.widen(22, T=BFLOAT16)

v14.infer(same_as_first)


@v14.evaluate
@pointwise
def evaluate(x: Array, /) -> Array:
    return x * np.clip(x / 6 + 0.5, 0, 1)


@v14.lower
def lower(x: Expression, /) -> Expression:
    return loops.apply("mul", x, kernels.hard_sigmoid(x, 1 / 6, 0.5))


@v14.body
def body(b: Builder, x: Value, /) -> Value:
    return b.Mul(x, b.HardSigmoid(x, alpha=1 / 6, beta=0.5))


@v14.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """At -3 it is 0 and at 3 it is 1, as in PyTorch."""
    between = g.Mul(g.dy, g.Add(g.Div(x, 3), 0.5))
    return g.Where(g.Greater(x, -3), g.Where(g.Less(x, 3), between, g.dy), 0)


@hard_swish.examples
def examples() -> Iterator[Example]:
    # by hand; -infinity times 0 is NaN
    x = [1, -1.5, 0, 3, -3, 7, -7, np.inf, -np.inf, np.nan]
    y = [2 / 3, -0.375, 0, 3, 0, 7, 0, np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 14, 22, bfloat16=22)
