"""Sqrt: the square root, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

sqrt = Operator("Sqrt", summary="The square root of each element; NaN below 0.")

v1 = declare_first(sqrt, "The input's shape, nothing below 0.")
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.lower(kernels.elementwise("sqrt"))
v1.evaluate(through_float32(np.sqrt))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.Mul(g.dy, 0.5), g.y())


@sqrt.examples
def examples() -> Iterator[Example]:
    x = [4, 2, 0.25, 0, np.inf, -1, np.nan]
    y = [2, 1.4142135623730951, 0.5, 0, np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
