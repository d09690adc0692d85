"""ThresholdedRelu: each element above a threshold, 0 elsewhere."""

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

thresholded_relu = Operator(
    "ThresholdedRelu", summary="`x` where it is above `alpha`, 0 elsewhere and for NaN."
)

T = Constraint("T", FLOATS)

v1 = thresholded_relu.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    attributes=[Attribute("alpha", "float", "The threshold.", default=1.0)],
    unpublished=True,
)
v10 = v1.restate(10, "Released; the operator was in use before.")
v22 = v10.widen(22, T=BFLOAT16)

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float) -> Array:
    return np.where(x > alpha, x, 0)


@v1.lower
def lower(x: Expression, /, *, alpha: float) -> Expression:
    return loops.where(loops.apply("gt", x, alpha), x, 0)


@v10.downgrade  # the version before was never released
@v10.body
def body(b: Builder, x: Value, /, *, alpha: float) -> Value:
    numbers = Numbers.like(b, x)
    return b.Where(numbers.op("Greater", x, alpha), x, numbers(0))


@v10.gradient
def gradient(g: Gradient, x: Value, /, *, alpha: float) -> Value:
    """At `alpha` it is 0, as in PyTorch."""
    return g.Where(g.Greater(x, alpha), g.dy, 0)


@thresholded_relu.examples
def examples() -> Iterator[Example]:
    x = [2, 1, 0, 1.5, -3, np.inf, -np.inf, np.nan]
    y = [2, 0, 0, 1.5, 0, np.inf, 0, 0]
    yield from over_floats(x, y, 1, 10, 22, bfloat16=22)
    low = [2, 1, 0, 1.5, 0, np.inf, 0, 0]
    yield from over_floats(x, low, 10, 22, bfloat16=22, alpha=-1.5)
