"""Div: the quotient of two tensors, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, broadcasting
from sabir.opsets.typing import Gradient
from sabir.schema import Example, Operator

div = Operator(
    "Div", summary="The quotient of two tensors, elementwise: `A / B`; integers are truncated toward zero."
)

v7, v14 = arithmetic.declare(div, "The dividend.", "The divisor; integers divided by 0 are 0.")

v7.infer(arithmetic.known_quotient)
v7.evaluate(arithmetic.divide)
v7.lower(kernels.elementwise("div"))
broadcasting.one_way_before(v7)


@v14.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return g.fit(g.Div(g.dy, b), a, b), g.fit(g.Neg(g.Div(g.Mul(g.dy, g.y()), b)), b, a)


@div.examples
def examples() -> Iterator[Example]:
    yield from arithmetic.examples_of("truediv", one_way=(1, 6), both_ways=(7, 13, 14))
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[3, 4]]])
    yield Example(7, [12.0], [[1, 2, 3], [4, 5, 6]], expect=[[[12, 6, 4], [3, 2.4, 2]]])
    for opset in (7, 13, 14):
        yield Example(opset, [7, -7, 7, -7, 6], [2, 2, -2, -2, -3], expect=[[3, -3, -3, 3, -2]])
        yield Example(opset, np.array([5, -5, 0], np.int32), 0, expect=[[0, 0, 0]])
    yield Example(14, np.array([-128, 127], np.int8), -1, expect=[[-128, -127]])
    yield Example(14, np.array([7, 9], np.uint8), [0, 2], expect=[[0, 4]])
    yield Example(7, np.array([1.0, 0.0, -1.0]), 0, expect=[[np.inf, np.nan, -np.inf]])
