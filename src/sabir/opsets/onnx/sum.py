"""Sum: the sum of several tensors, elementwise."""

import functools
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.numbers import arithmetic, variadic
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator

summation = Operator("Sum", summary="The sum of all inputs, elementwise.")

v8 = variadic.declare(summation, "sum")
v13 = v8.widen(13, T=BFLOAT16)

v8.infer(arithmetic.known_total)


@v8.evaluate
def evaluate(*inputs: Array) -> Array:
    wide = (arithmetic.widened(x) for x in inputs)  # halves are rounded once, at the end
    return functools.reduce(functools.partial(computed, np.add), wide).astype(inputs[0].dtype, copy=False)


v8.lower(variadic.folded_expression("add"))


def chain(b: Builder, *inputs: Value) -> Value:
    return functools.reduce(b.Add, inputs)


variadic.one_shape_before(v8, chain)


@v13.gradient
def gradient(g: Gradient, /, *inputs: Value) -> tuple[Value, ...]:
    return tuple(g.fit(g.dy, x) for x in inputs)


@summation.examples
def examples() -> Iterator[Example]:
    a, b = [[1.0, np.nan, -np.inf]], [[2.0, 0.5, np.inf]]
    for opset in (1, 6, 8, 13):
        yield Example(opset, a, b, expect=[[[3.0, np.nan, np.nan]]])
        yield Example(opset, a, expect=[a])
        yield Example(opset, b, b, b, expect=[[[6.0, 1.5, np.inf]]])
    column = np.array([[0.0], [5.0]])
    yield Example(8, [1.0, 2.0], column, 1, expect=[[[2.0, 3.0], [7.0, 8.0]]])
    yield Example(8, 1, np.zeros((0, 2), np.float16), expect=[np.zeros((0, 2), np.float16)])
    # rounding after each addition would leave 2048 and 256
    yield Example(8, np.float16(2048), 1, 1, expect=[2050])
    one, much = np.ones(1, ml_dtypes.bfloat16), np.full(1, 256, ml_dtypes.bfloat16)
    yield Example(13, much, one, one, expect=[[258]])
