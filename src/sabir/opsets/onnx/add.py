"""Add: the sum of two tensors, elementwise."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Value
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import arithmetic, binary, broadcasting
from sabir.opsets.typing import Gradient
from sabir.schema import Example, Operator

add = Operator("Add", summary="The sum of two tensors, elementwise: `A + B`.")

v7, v14 = arithmetic.declare(add, "One summand.", "The other summand.")

v7.infer(arithmetic.known_sum)
v7.evaluate(binary.elementwise(np.add))
v7.lower(kernels.elementwise("add"))
broadcasting.one_way_before(v7, commutes=True)


@v14.gradient
def gradient(g: Gradient, a: Value, b: Value, /) -> tuple[Value, Value]:
    return g.fit(g.dy, a, b), g.fit(g.dy, b, a)


@add.examples
def examples() -> Iterator[Example]:
    yield from arithmetic.examples_of("add", one_way=(1, 6), both_ways=(7, 13, 14))
    yield Example(6, [[7, 8]], [2], broadcast=1, expect=[[[9, 10]]])
    yield Example(7, [1.0], [[1, 2, 3], [4, 5, 6]], expect=[[[2, 3, 4], [5, 6, 7]]])
    yield Example(14, np.array([250, 1], np.uint8), [10, 2], expect=[[4, 3]])
    yield Example(14, np.int8(127), 1, expect=[-128])
    # 256 + 1 is halfway between two bfloat16 numbers, and is rounded to the even one
    half = np.array([256, 1], ml_dtypes.bfloat16)
    yield Example(13, half, half[1:], expect=[[256, 2]])
