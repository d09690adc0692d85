"""Affine: `alpha * x + beta`, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output

affine = Operator("Affine", summary="`alpha * X + beta`, elementwise.")

T = Constraint("T", FLOATS)

v1 = affine.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.")],
    outputs=[Output("Y", T, "The input's shape.")],
    attributes=[
        Attribute("alpha", "float", "The factor.", default=1.0),
        Attribute("beta", "float", "The summand.", default=0.0),
    ],
    unpublished=True,
)
v10 = removed(v1, "Mul and Add compute it.")

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, alpha: float, beta: float) -> Array:
    return x * x.dtype.type(alpha) + x.dtype.type(beta)


@v1.lower
def lower(x: Expression, /, *, alpha: float, beta: float) -> Expression:
    return loops.apply("add", loops.apply("mul", x, alpha), beta)


@v10.upgrade
@v1.body
def write_out(b: Builder, x: Value, /, *, alpha: float, beta: float) -> Value:
    numbers = Numbers.like(b, x)
    return numbers.op("Add", numbers.op("Mul", x, alpha), beta)


@affine.examples
def examples() -> Iterator[Example]:
    x = [1, -2, 0, np.inf, np.nan]
    yield from over_floats(x, x, 1, 7, 9, bfloat16=99)
    yield from over_floats(x, [2.5, -3.5, 0.5, np.inf, np.nan], 9, bfloat16=99, alpha=2.0, beta=0.5)
