"""Mean: the mean of several tensors, elementwise."""

import functools
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers import arithmetic, broadcasting, variadic
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, Example, Operator, Unconvertible

mean = Operator("Mean", summary="The sum of all inputs, elementwise, divided by their number.")

v8 = variadic.declare(mean, "mean")
v13 = v8.widen(13, T=BFLOAT16)

v8.infer(broadcasting.merged)


@v8.evaluate
def evaluate(*inputs: Array) -> Array:
    wide = (arithmetic.widened(x) for x in inputs)  # halves are rounded once, at the end
    return (functools.reduce(np.add, wide) / len(inputs)).astype(inputs[0].dtype, copy=False)


@v8.lower
def lower(*inputs: Expression) -> Expression:
    return loops.apply("div", variadic.folded_expression("add")(*inputs), len(inputs))


def divided_sum(b: Builder, *inputs: Value) -> Value:
    element = next((v.type.element for v in inputs if isinstance(v.type, TensorType)), None)
    if element is None or not element.number:
        raise Unconvertible("the element type is unknown, and the count of inputs must be of it")
    count = b.initializer("count", np.array(len(inputs), element.dtype))
    return b.Div(functools.reduce(b.Add, inputs), count)


variadic.one_shape_before(v8, divided_sum)


@v13.gradient
def gradient(g: Gradient, /, *inputs: Value) -> tuple[Value, ...]:
    share = g.Div(g.dy, len(inputs))
    return tuple(g.fit(share, x) for x in inputs)


@mean.examples
def examples() -> Iterator[Example]:
    a, b = [[1.0, np.nan, np.inf]], np.array([[2.0, 0.0, -3.0]], np.float32)
    both = [[1.5, np.nan, np.inf]]
    for opset in (1, 6, 8, 13):
        yield Example(opset, a, b, expect=[both])
        yield Example(opset, b, expect=[b])
        yield Example(opset, b, b + 1, b - 1, expect=[b])
    column = [[0.0], [5.0]]
    yield Example(8, b, column, expect=[[[1, 0, -1.5], [3.5, 2.5, 1]]])
    yield Example(8, np.float64(1), 4, expect=[2.5])
    yield Example(8, 1, np.zeros((0, 2)), expect=[np.zeros((0, 2))])
    yield Example(8, *[np.array([60000], np.float16)] * 2, expect=[[60000]])
    # an accumulator in bfloat16 would stay at 256
    parts = [np.array([p], ml_dtypes.bfloat16) for p in (256, 1, 1, 1, 1)]
    yield Example(13, *parts, expect=[[52]])
