"""ScaledTanh: `alpha * tanh(beta * x)`, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.required_numbers import check_given, infer_scaled
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output

scaled_tanh = Operator("ScaledTanh", summary="`alpha * tanh(beta * input)`, elementwise.")

T = Constraint("T", FLOATS)

v1 = scaled_tanh.first(
    1,
    inputs=[Input("input", T, "A tensor of any shape.")],
    outputs=[Output("output", T, "The input's shape.")],
    attributes=[
        Attribute("alpha", "float", "The factor of the result; a call must state it."),
        Attribute("beta", "float", "The factor of the input; a call must state it."),
    ],
    unpublished=True,
)
v10 = removed(v1, "Mul and Tanh compute it.")


v1.infer(infer_scaled)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float | None, beta: float | None) -> Array:
    alpha, beta = check_given(alpha=alpha, beta=beta)
    return x.dtype.type(alpha) * np.tanh(x.dtype.type(beta) * x)


@v1.lower
def lower(x: Expression, /, *, alpha: float | None, beta: float | None) -> Expression:
    alpha, beta = check_given(alpha=alpha, beta=beta)
    return loops.apply("mul", loops.apply("tanh", loops.apply("mul", x, beta)), alpha)


@v10.upgrade
@v1.body
def write_out(b: Builder, x: Value, /, *, alpha: float | None, beta: float | None) -> Value:
    alpha, beta = check_given(alpha=alpha, beta=beta)
    numbers = Numbers.like(b, x)
    return numbers.op("Mul", b.Tanh(numbers.op("Mul", x, beta)), alpha)


@scaled_tanh.examples
def examples() -> Iterator[Example]:
    # mpmath, the tangents of 1/2 and 1
    y = [2 * 0.46211715726000976, -2 * 0.7615941559557649, 0, 2, np.nan]
    for opset in (1, 9):
        yield from over_floats([1, -2, 0, np.inf, np.nan], y, opset, bfloat16=99, alpha=2.0, beta=0.5)
