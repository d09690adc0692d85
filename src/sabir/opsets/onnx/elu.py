"""Elu: the exponential linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Operator

elu = Operator("Elu", summary="`x` where it is 0 or above, `alpha * (exp(x) - 1)` below.")

v1 = pointwise.declare_first(
    elu,
    "The input's shape, nothing below `-alpha`.",
    Attribute("alpha", "float", "The negative of the limit for `x` toward -infinity.", default=1.0),
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v22 = v6.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise.pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    return pointwise.exponential_unit(x, alpha)


@v1.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    return kernels.exponential_unit(x, alpha)


@v6.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    return Numbers.like(b, x).exponential_unit(x, alpha)


@v6.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    """At 0 it is `alpha`, as in PyTorch."""
    return g.Where(g.Greater(x, 0), g.dy, g.Mul(g.dy, g.Mul(g.Exp(g.Min(x, 0)), alpha)))


@elu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [-1, 2, -0.5, 0, np.inf, -np.inf, np.nan]
    y = [-0.6321205588285577, 2, -0.3934693402873666, 0, np.inf, -1, np.nan]
    yield from pointwise.over_floats(x, y, 1, 6, 22, bfloat16=22)
    scaled = [-1.2642411176571153, 2, -0.7869386805747332, 0, np.inf, -2, np.nan]
    yield from pointwise.over_floats(x, scaled, 1, 6, 22, bfloat16=22, alpha=2.0)
