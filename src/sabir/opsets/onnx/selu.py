"""Selu: the scaled exponential linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Operator

selu = Operator("Selu", summary="`gamma * x` where `x` is above 0, `gamma * alpha * (exp(x) - 1)` elsewhere.")

v1 = pointwise.declare_first(
    selu,
    "The input's shape, nothing below `-gamma * alpha`.",
    Attribute("gamma", "float", "The factor of all results.", default=1.0507),
    Attribute("alpha", "float", "A further factor where `x` is not above 0.", default=1.6732),
)
v6 = v1.evolve(
    6,
    "The defaults of `alpha` and `gamma` have more digits; drops the legacy hint `consumed_inputs`.",
    drop=["consumed_inputs"],
    defaults={"gamma": 1.050701, "alpha": 1.6732632},
)
v22 = v6.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise.pointwise
def evaluate(x: Array, /, *, alpha: float, gamma: float) -> Array:
    return gamma * pointwise.exponential_unit(x, alpha)


@v1.lower
def lower(x: Expression, /, *, alpha: float, gamma: float) -> Expression:
    return loops.apply("mul", kernels.exponential_unit(x, alpha), gamma)


@v6.upgrade
@v6.downgrade
def with_explicit_constants(b: Builder, x: Value, /, *, alpha: float, gamma: float) -> Value:
    return b.Selu(x, alpha=alpha, gamma=gamma)


@v6.body
def body(b: Builder, x: Value, /, *, alpha: float, gamma: float) -> Value:
    numbers = Numbers.like(b, x)
    return numbers.op("Mul", numbers.exponential_unit(x, alpha), gamma)


@v6.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float, gamma: float) -> Value:
    """At 0 it is `alpha * gamma`, as in PyTorch."""
    dy = g.Mul(g.dy, gamma)
    return g.Where(g.Greater(x, 0), dy, g.Mul(dy, g.Mul(g.Exp(g.Min(x, 0)), alpha)))


@selu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits, of the defaults as float32
    x = [-1, 2, -0.5, 0, np.inf, -np.inf, np.nan]
    first = [-1.111287644, 2.1013998985, -0.6917313635, 0, np.inf, -1.758031167, np.nan]
    y = [-1.111330741, 2.1014020443, -0.69175819, 0, np.inf, -1.758099346, np.nan]
    for opset, expected in ((1, first), (6, y), (22, y)):
        yield Example(opset, np.array(x, np.float32), expect=[np.array(expected, np.float32)], tolerance=1e-6)
    halved = [-0.6321205588285577, 1, -0.3934693402873666, 0, np.inf, -1, np.nan]
    yield from pointwise.over_floats(x, halved, 1, 6, 22, bfloat16=22, alpha=2.0, gamma=0.5)
