"""Mul: the product of two tensors, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting
from sabir.opsets.typing import Gradient
from sabir.schema import Example, Operator

mul = Operator("Mul", summary="The product of two tensors, elementwise: `A * B`.")

v7, v14 = arithmetic.declare(mul, "One factor.", "The other factor.")

v7.infer(arithmetic.known_product)
v7.evaluate(binary.elementwise(np.multiply))
v7.lower(kernels.elementwise("mul"))
broadcasting.one_way_before(v7, commutes=True)


@v14.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return g.fit(g.Mul(g.dy, b), a, b), g.fit(g.Mul(g.dy, a), b, a)


@mul.examples
def examples() -> Iterator[Example]:
    yield from arithmetic.examples_of("mul", one_way=(1, 6), both_ways=(7, 13, 14))
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[14, 16]]])
    yield Example(7, [2.0], [[1, 2, 3], [4, 5, 6]], expect=[[[2, 4, 6], [8, 10, 12]]])
    yield Example(14, np.array([100, -128], np.int8), -1, expect=[[-100, -128]])
    yield Example(14, np.array([300], np.uint16), [300], expect=[[24464]])
    yield Example(7, np.float64(0), np.inf, expect=[np.nan])
