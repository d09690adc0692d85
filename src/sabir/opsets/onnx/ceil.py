"""Ceil: rounding up, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.arithmetic import through_float32
from sabir.opsets.families.numbers.pointwise import declare_first, known_rounding, over_floats
from sabir.opsets.families.numbers.pointwise_gradients import zero
from sabir.schema import BFLOAT16, Example, Operator

ceil = Operator("Ceil", summary="The least integer that is not below each element.")

v1 = declare_first(ceil, "The input's shape, of integers.", differentiable=False)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(known_rounding(np.ceil))
v1.evaluate(through_float32(np.ceil))
v1.lower(kernels.elementwise("ceil"))
v13.gradient(zero)


@ceil.examples
def examples() -> Iterator[Example]:
    x = [1.5, -1.5, 0.5, -0.5, 2, -np.inf, np.nan]
    y = [2, -1, 1, -0.0, 2, -np.inf, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
