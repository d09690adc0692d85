"""Neg: the negative of each element."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value, sub
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.pointwise import declare_first, known_by, over_floats
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, SIGNED, Example, Operator

neg = Operator("Neg", summary="The negative of each element: `-x`; the least signed integer is unchanged.")

v1 = declare_first(neg, "The input's shape.")
v6 = v1.evolve(
    6,
    "Admits signed integers; drops the legacy hint `consumed_inputs`.",
    drop=["consumed_inputs"],
    widen={"T": SIGNED},
)
v13 = v6.widen(13, T=BFLOAT16)

v1.infer(known_by(lambda x: sub(0, x)))


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return np.negative(x)


v1.lower(kernels.elementwise("neg"))


@v13.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    return g.Neg(g.dy)


@neg.examples
def examples() -> Iterator[Example]:
    x, y = [1.5, -2, 0, -0.0, np.inf, -np.inf, np.nan], [-1.5, 2, -0.0, 0, -np.inf, np.inf, np.nan]
    yield from over_floats(x, y, 1, 6, 13, bfloat16=13)
    for opset in (6, 13):
        yield Example(opset, np.array([-128, 127, 0], np.int8), expect=[[-128, -127, 0]])
        yield Example(opset, [-(2**63), 7], expect=[[-(2**63), -7]])
