"""ParametricSoftplus: `alpha * log(exp(beta * x) + 1)`, elementwise."""

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

parametric_softplus = Operator("ParametricSoftplus", summary="`alpha * log(exp(beta * X) + 1)`, elementwise.")

T = Constraint("T", FLOATS)

v1 = parametric_softplus.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.")],
    outputs=[Output("Y", T, "The input's shape.")],
    attributes=[
        Attribute("alpha", "float", "The factor of the logarithm; a call must state it."),
        Attribute("beta", "float", "The factor of the input; a call must state it."),
    ],
    unpublished=True,
)
v10 = removed(v1, "Mul and Softplus compute it.")


v1.infer(infer_scaled)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float | None, beta: float | None) -> Array:
    """Compute only the distance from the positive part by an exponential, which cannot overflow."""
    alpha, beta = check_given(alpha=alpha, beta=beta)
    steep = x * x.dtype.type(beta)
    return x.dtype.type(alpha) * (np.maximum(steep, 0) + np.log1p(np.exp(-np.abs(steep))))


@v1.lower
def lower(x: Expression, /, *, alpha: float | None, beta: float | None) -> Expression:
    alpha, beta = check_given(alpha=alpha, beta=beta)
    return loops.apply("mul", loops.apply("softplus", loops.apply("mul", x, beta)), alpha)


@v10.upgrade
@v1.body
def write_out(b: Builder, x: Value, /, *, alpha: float | None, beta: float | None) -> Value:
    alpha, beta = check_given(alpha=alpha, beta=beta)
    numbers = Numbers.like(b, x)
    return numbers.op("Mul", b.Softplus(numbers.op("Mul", x, beta)), alpha)


@parametric_softplus.examples
def examples() -> Iterator[Example]:
    # mpmath: log(exp(x) + 1) of 1/2, -1, 0 and 64
    y = [2 * 0.9740769841801067, 2 * 0.31326168751822286, 2 * 0.6931471805599453, 128, np.inf, 0, np.nan]
    x = [1, -2, 0, 128, np.inf, -np.inf, np.nan]
    for opset in (1, 9):
        yield from over_floats(x, y, opset, bfloat16=99, alpha=2.0, beta=0.5)
