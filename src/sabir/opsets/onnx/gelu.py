"""Gelu: the Gaussian error linear unit, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import gelus
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output, one_of

gelu = Operator(
    "Gelu", summary="`x` times the normal distribution function: `0.5 * x * (1 + erf(x / sqrt(2)))`."
)

T = Constraint("T", FLOATS, BFLOAT16)

v20 = gelu.first(
    20,
    inputs=[Input("X", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    attributes=[
        Attribute(
            "approximate",
            "string",
            "'tanh': `0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))`; 'none': exact.",
            default="none",
            values=one_of("none", "tanh"),
        )
    ],
)


v20.infer(same_as_first)


@v20.evaluate
@pointwise
def evaluate(x: Array, /, *, approximate: str) -> Array:
    return gelus.gelu(x, approximate)


@v20.lower
def lower(x: Expression, /, *, approximate: str) -> Expression:
    return gelus.lowered(x, approximate)


@v20.body
def body(b: Builder, x: Value, /, *, approximate: str) -> Value:
    return gelus.emitted(b, x, approximate)


@v20.gradient
def gradient(g: Gradient, x: Value, /, *, approximate: str) -> Value:
    return g.Mul(g.dy, gelus.slope(g, x, approximate))


@gelu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -1, 2.5, -0.125, 0, np.inf, np.nan]
    y = [0.8413447460685429, -0.15865525393145705, 2.4844758366855597, -0.056282721896235885, 0, np.inf]
    y += [np.nan]
    yield from over_floats(x, y, 20, bfloat16=20)
    near = [0.8411919906082767, -0.1588080093917233, 2.484915733910001, -0.05628280137577661, 0, np.inf]
    near += [np.nan]
    yield from over_floats(x, near, 20, bfloat16=20, approximate="tanh")
