"""Reciprocal: one over the input, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

reciprocal = Operator("Reciprocal", summary="One over each element: `1 / x`.")

v1 = declare_first(reciprocal, "The input's shape; infinite where the input is 0.")
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.evaluate(through_float32(np.reciprocal))
v1.lower(kernels.elementwise("reciprocal"))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Neg(g.Mul(g.Mul(g.dy, g.y()), g.y()))


@reciprocal.examples
def examples() -> Iterator[Example]:
    x = [4, -0.5, 0, -0.0, np.inf, -np.inf, np.nan]
    y = [0.25, -2, np.inf, -np.inf, 0, -0.0, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
