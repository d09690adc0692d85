"""Relu: the positive part, elementwise."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Builder, Value, dim_max
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import declare_first, known_by
from sabir.opsets.families.numbers.results import computed
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, SIGNED, Example, Operator

relu = Operator("Relu", summary="The positive part of each element: `max(x, 0)`.")

v1 = declare_first(relu, "The input's shape, nothing below 0; NaN stays NaN.")
v6 = v1.evolve(6, "Drops the legacy hint `consumed_inputs`.", drop=["consumed_inputs"])
v13 = v6.widen(13, T=BFLOAT16)
v14 = v13.widen(14, T=SIGNED)

v1.infer(known_by(lambda x: dim_max(x, 0)))


@v1.evaluate
def evaluate(x: Array, /) -> Array:
    return computed(np.maximum, x, np.zeros((), x.dtype))


@v1.lower
def lower(x: Expression, /) -> Expression:
    return loops.apply("max", x, 0)


@v14.body
def body(b: Builder, x: Value, /) -> Value:
    return Numbers.like(b, x).op("Max", x, 0)


@v14.gradient
def gradient(g: Gradient, x: Value, /) -> Value:
    """At 0 it is 0, as in PyTorch."""
    return g.Where(g.Greater(g.y(), 0), g.dy, 0)


@relu.examples
def examples() -> Iterator[Example]:
    x = [[-1.5, 0.0, 2.0], [np.inf, -np.inf, np.nan]]
    y = [[0.0, 0.0, 2.0], [np.inf, 0.0, np.nan]]
    yield Example(1, x, expect=[y])
    yield Example(6, x, expect=[y])
    yield Example(13, x, expect=[y])
    yield Example(14, np.array([-128, 127], np.int8), expect=[[0, 127]])
    yield Example(14, np.float64(-3.0), expect=[0])
    yield Example(14, np.zeros((0, 2), np.float16))
