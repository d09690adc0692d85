"""Log: the natural logarithm, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first, over_floats
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, Example, Operator

log = Operator("Log", summary="The natural logarithm of each element; NaN below 0.")

v1 = declare_first(log, "The input's shape; -infinity where the input is 0.", names=("input", "output"))
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(same_as_first)
v1.evaluate(through_float32(np.log))
v1.lower(kernels.elementwise("log"))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Div(g.dy, x)


@log.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [2, 1, 10, 0.125, 0, np.inf, -1, np.nan]
    y = [0.6931471805599453, 0, 2.302585092994046, -2.0794415416798357, -np.inf, np.inf, np.nan, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
