"""Max: the greatest of several tensors, elementwise."""

import functools
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families import arithmetic, variadic
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
)

maximum = Operator("Max", summary="The greatest of all inputs, elementwise; NaN where one of them is NaN.")

T = Constraint("T", FLOATS)

v1 = maximum.first(
    1,
    inputs=[Input("data_0", T, "One or more tensors.", variadic=True, differentiable=True)],
    outputs=[Output("max", T, "The shape that all inputs broadcast to.", differentiable=True)],
    attributes=[Attribute("consumed_inputs", "ints", legacy=True)],
)
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v8 = v6.restate(8, "The inputs are broadcast; before, they had to be of one shape.")
v12 = v8.widen(12, T=NUMBERS)
v13 = v12.widen(13, T=BFLOAT16)

v1.infer(variadic.infer_one_shape)
v8.infer(arithmetic.known_maximum)


@v8.evaluate
def evaluate(*inputs: Array) -> Array:
    return functools.reduce(np.maximum, inputs)


v1.evaluate(variadic.of_one_shape(evaluate))


@v8.downgrade
def shapes_must_agree(b: Builder, /, *inputs: Value) -> Value:
    if not variadic.are_of_one_shape(*inputs):
        raise Unconvertible("the inputs are not known to be of one shape, and Max-6 does not broadcast")
    return b.Max(*inputs)


@maximum.examples
def examples() -> Iterator[Example]:
    a, b = [[1.0, np.nan, -np.inf]], np.array([[2.0, 0.0, -3.0]], np.float32)
    both = [[2.0, np.nan, -3.0]]
    for opset in (1, 6, 8, 12, 13):
        yield Example(opset, a, b, expect=[both])
        yield Example(opset, b, expect=[b])
        yield Example(opset, b, b + 1, b - 1, expect=[b + 1])
    column = [[0.0], [5.0]]
    yield Example(8, b, column, expect=[[[2, 0, 0], [5, 5, 5]]])
    yield Example(8, 1, np.zeros((0, 2)), expect=[np.zeros((0, 2))])
    yield Example(12, np.array([2**63, 1], np.uint64), 7, expect=[[2**63, 7]])
    yield Example(12, np.array([3, -4], np.int8), -3, expect=[[3, -3]])
    halves, others = np.array([[1, -2, np.nan], [-1, 2, 0]], ml_dtypes.bfloat16)
    yield Example(13, halves, others, expect=[[1, 2, np.nan]])
