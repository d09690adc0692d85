"""HardSigmoid: a linear function limited to [0, 1], elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Operator

hard_sigmoid = Operator(
    "HardSigmoid", summary="A linear function limited to [0, 1]: `max(0, min(1, alpha * x + beta))`."
)

v1 = declare_first(
    hard_sigmoid,
    "The input's shape, within [0, 1]; NaN stays NaN.",
    Attribute("beta", "float", "The value at 0.", default=0.5),
    Attribute("alpha", "float", "The slope between the limits.", default=0.2),
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v22 = v6.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float, beta: float) -> Array:
    return np.clip(alpha * x + beta, 0, 1)


@v1.lower
def lower(x: Expression, /, *, alpha: float, beta: float) -> Expression:
    return kernels.hard_sigmoid(x, alpha, beta)


@v6.body
def body(b: Builder, x: Value, /, *, alpha: float, beta: float) -> Value:
    numbers = Numbers.like(b, x)
    line = numbers.op("Add", numbers.op("Mul", x, alpha), beta)
    return numbers.clipped(line, 0.0, 1.0)


@v6.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    """At both ends of the slope it is 0, as in PyTorch."""
    between = g.And(g.Greater(g.y(), 0), g.Less(g.y(), 1))
    return g.Where(between, g.Mul(g.dy, alpha), 0)


@hard_sigmoid.examples
def examples() -> Iterator[Example]:
    x = [1, -2, 0, 3, -3, np.inf, -np.inf, np.nan]
    y = [0.75, 0, 0.5, 1, 0, 1, 0, np.nan]
    yield from over_floats(x, y, 1, 6, 22, bfloat16=22, alpha=0.25)
    for opset in (1, 6, 22):  # 0.2 * x + 0.5
        yield Example(opset, -1.0, expect=[0.3])
        yield Example(opset, np.array([2.25]), beta=0.25, expect=[[0.7]], tolerance=1e-7)
