"""Gelu: the Gaussian error linear unit, elementwise."""

import math
from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.error_function import erf
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
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

_CUBIC = 0.044715


v20.infer(same_as_first)


@v20.evaluate
@pointwise
def evaluate(x: Array, /, *, approximate: str) -> Array:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + _CUBIC * (x * x * x))))
    y = erf(x / math.sqrt(2))
    y += 1
    y *= 0.5 * x
    return y


@v20.lower
def lower(x: Expression, /, *, approximate: str) -> Expression:
    half = loops.apply("mul", x, 0.5)
    if approximate == "tanh":
        cube = loops.apply("mul", x, loops.apply("mul", x, x))
        argument = loops.apply("add", x, loops.apply("mul", cube, _CUBIC))
        step = loops.apply("tanh", loops.apply("mul", argument, math.sqrt(2 / math.pi)))
    else:
        step = loops.apply("erf", loops.apply("mul", x, math.sqrt(0.5)))
    return loops.apply("mul", half, loops.apply("add", step, 1))


@v20.body
def body(b: Builder, x: Value, /, *, approximate: str) -> Value:
    numbers = Numbers.like(b, x)
    if approximate == "tanh":
        cubic = numbers.op("Mul", b.Mul(x, b.Mul(x, x)), _CUBIC)
        sided = b.Tanh(numbers.op("Mul", b.Add(x, cubic), math.sqrt(2 / math.pi)))
    else:
        sided = b.Erf(numbers.op("Mul", x, math.sqrt(0.5)))
    return b.Mul(numbers.op("Mul", x, 0.5), numbers.op("Add", sided, 1.0))


@v20.gradient
def gradient(g: Gradient, x: Value, /, *, approximate: str) -> Value:
    square = g.Mul(x, x)
    if approximate == "tanh":
        scale = math.sqrt(2 / math.pi)
        step = g.Tanh(g.Mul(g.Mul(x, g.Add(g.Mul(square, _CUBIC), 1)), scale))
        slope = g.Mul(g.Add(g.Mul(square, 3 * _CUBIC), 1), scale)
        rise = g.Mul(g.Mul(g.Sub(1, g.Mul(step, step)), slope), g.Mul(x, 0.5))
    else:
        step = g.Erf(g.Mul(x, math.sqrt(0.5)))
        rise = g.Mul(g.Exp(g.Mul(square, -0.5)), g.Mul(x, math.sqrt(0.5 / math.pi)))
    return g.Mul(g.dy, g.Add(g.Add(g.Mul(step, 0.5), 0.5), rise))


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
