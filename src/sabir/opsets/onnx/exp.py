"""Exp: the exponential, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

exp = Operator("Exp", summary="The exponential of each element.")

v1 = declare_first(exp, "The input's shape, nothing below 0.", names=("input", "output"))
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.evaluate(through_float32(np.exp))
v1.lower(kernels.elementwise("exp"))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.y())


@exp.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -2, 10, 0, np.inf, -np.inf, np.nan]
    y = [np.e, 0.1353352832366127, 22026.465794806718, 1, np.inf, 0, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
