"""Sub: the difference of two tensors, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting
from sabir.opsets.typing import Gradient
from sabir.schema import Example, Operator

sub = Operator("Sub", summary="The difference of two tensors, elementwise: `A - B`.")

v7, v14 = arithmetic.declare(sub, "The minuend.", "The subtrahend.")

v7.infer(arithmetic.known_difference)
v7.evaluate(binary.elementwise(np.subtract))
v7.lower(kernels.elementwise("sub"))
broadcasting.one_way_before(v7)


@v14.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return g.fit(g.dy, a, b), g.fit(g.Neg(g.dy), b, a)


@sub.examples
def examples() -> Iterator[Example]:
    yield from arithmetic.examples_of("sub", one_way=(1, 6), both_ways=(7, 13, 14))
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[5, 6]]])
    yield Example(7, [1.0], [[1, 2, 3], [4, 5, 6]], expect=[[[0, -1, -2], [-3, -4, -5]]])
    yield Example(14, np.array([1, 7], np.uint8), [2, 7], expect=[[255, 0]])
    yield Example(7, -(2**63), 1, expect=[2**63 - 1])
    yield Example(7, np.float64(np.inf), np.inf, expect=[np.nan])
