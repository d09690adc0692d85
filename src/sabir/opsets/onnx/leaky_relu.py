"""LeakyRelu: each element, with a smaller slope below 0."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Attribute, Example, Operator

leaky_relu = Operator("LeakyRelu", summary="`x` where it is 0 or above, `alpha * x` below.")

v1 = declare_first(
    leaky_relu, "The input's shape.", Attribute("alpha", "float", "The slope below 0.", default=0.01)
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v16 = v6.widen(16, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    """Look up each slope by the sign, which is much faster than numpy's choice between two arrays."""
    slopes = np.array([1, alpha], x.dtype)
    return x * slopes.take(np.less(x, 0).view(np.uint8))


@v1.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    return loops.where(loops.apply("lt", x, 0), loops.apply("mul", x, alpha), x)


@v16.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    numbers = Numbers.like(b, x)
    return b.Where(numbers.op("Less", x, 0), numbers.op("Mul", x, alpha), x)


@v16.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    """At 0 it is `alpha`, as in PyTorch."""
    return g.Where(g.Greater(x, 0), g.dy, g.Mul(g.dy, alpha))


@leaky_relu.examples
def examples() -> Iterator[Example]:
    x = [-1, 2, -0.5, 0, -0.0, np.inf, -np.inf, np.nan]
    y = [-0.25, 2, -0.125, 0, -0.0, np.inf, -np.inf, np.nan]
    yield from over_floats(x, y, 1, 6, 16, bfloat16=16, alpha=0.25)
    flat = [0, 2, 0, 0, 0, np.inf, np.nan, np.nan]  # an infinity times 0 is NaN
    yield from over_floats(x, flat, 1, 6, 16, bfloat16=16, alpha=0.0)
    for opset in (1, 6, 16):
        yield Example(opset, [-3.0, 4], expect=[[-0.03, 4]])
        yield Example(opset, [-3.0, 4], alpha=2.0, expect=[[-6, 4]])
