"""Sub: the difference of two tensors, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting
from sabir.opsets.typing import Gradient
from sabir.schema import BFLOAT16, FLOATS, NUMBERS, Constraint, Example, Operator

sub = Operator("Sub", summary="The difference of two tensors, elementwise: `A - B`.")

T = Constraint("T", FLOATS)

v1 = sub.first(
    1,
    inputs=binary.inputs(T, "The minuend.", "The subtrahend.", differentiable=True),
    outputs=binary.outputs(T, differentiable=True),
    attributes=arithmetic.ATTRIBUTES,
)
v6 = v1.evolve(
    6,
    "Drops the legacy hint `consumed_inputs`; admits 32- and 64-bit integers.",
    drop=["consumed_inputs"],
    widen={"T": arithmetic.LARGE_INTEGERS},
)
v7 = v6.evolve(7, "Broadcasts both inputs, as numpy does.", drop=["axis", "broadcast"])
v13 = v7.widen(13, T=BFLOAT16)
v14 = v13.widen(14, T=NUMBERS)

v7.infer(arithmetic.known_difference)
v7.evaluate(binary.elementwise(np.subtract))
v7.lower(kernels.elementwise("sub"))
broadcasting.one_way_before(v7)


@v14.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return g.fit(g.dy, a), g.fit(g.Neg(g.dy), b)


@sub.examples
def examples() -> Iterator[Example]:
    yield from arithmetic.examples_of("sub", one_way=(1, 6), both_ways=(7, 13, 14))
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[5, 6]]])
    yield Example(7, [1.0], [[1, 2, 3], [4, 5, 6]], expect=[[[0, -1, -2], [-3, -4, -5]]])
    yield Example(14, np.array([1, 7], np.uint8), [2, 7], expect=[[255, 0]])
    yield Example(7, -(2**63), 1, expect=[2**63 - 1])
    yield Example(7, np.float64(np.inf), np.inf, expect=[np.nan])
