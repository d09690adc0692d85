"""Sigmoid: the logistic function, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats, pointwise
from sabir.opsets.families.numbers.pointwise import sigmoid as logistic
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

sigmoid = Operator("Sigmoid", summary="The logistic function of each element: `1 / (1 + exp(-x))`.")

v1 = declare_first(sigmoid, "The input's shape; every value between 0 and 1.")
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.evaluate(pointwise(logistic))
v1.lower(kernels.elementwise("sigmoid"))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Mul(g.dy, g.Mul(g.y(), g.Sub(1, g.y())))


@sigmoid.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -2, 0, 100, -100, np.inf, -np.inf, np.nan]
    y = [0.7310585786300049, 0.11920292202211756, 0.5, 1, 3.720075976020836e-44, 1, 0, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
