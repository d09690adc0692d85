"""Scale: a tensor times a number."""

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

scaling = Operator("Scale", summary="`scale * input`, elementwise.")

T = Constraint("T", FLOATS)

v1 = scaling.first(
    1,
    inputs=[Input("input", T, "A tensor of any shape.")],
    outputs=[Output("output", T, "The input's shape.")],
    attributes=[Attribute("scale", "float", "The factor.", default=1.0)],
    unpublished=True,
)
v10 = removed(v1, "Mul computes it.")

v1.infer(same_as_first)


@v1.evaluate
@pointwise
def evaluate(x: Array, /, *, scale: float) -> Array:
    return x * x.dtype.type(scale)


@v1.lower
def lower(x: Expression, /, *, scale: float) -> Expression:
    return loops.apply("mul", x, scale)


@v10.upgrade
@v1.body
def multiply(b: Builder, x: Value, /, *, scale: float) -> Value:
    return Numbers.like(b, x).op("Mul", x, scale)


@scaling.examples
def examples() -> Iterator[Example]:
    yield from over_floats([1, -2, np.inf, np.nan], [0.5, -1, np.inf, np.nan], 1, 9, bfloat16=99, scale=0.5)
    yield Example(7, np.array([3], np.float32), expect=[[3]])
