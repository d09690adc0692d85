"""Shrink: each element moved toward 0, and 0 near 0."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, INT64, ElementType, element
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.numbers.casting import converted
from sabir.opsets.families.numbers.pointwise import over_floats, pointwise
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array, Gradient
from sabir.schema import NUMBERS, Attribute, Constraint, Example, Input, Operator, Output

shrink = Operator(
    "Shrink", summary="`x + bias` where `x < -lambd`, `x - bias` where `x > lambd`, 0 in between."
)

T = Constraint("T", NUMBERS)

v9 = shrink.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=True)],
    outputs=[Output("output", T, "The input's shape; integers are truncated.", differentiable=True)],
    attributes=[
        Attribute("bias", "float", "The distance by which elements move.", default=0.0),
        Attribute("lambd", "float", "Elements at most this far from 0 become 0.", default=0.5),
    ],
)

v9.infer(same_as_first)


@v9.evaluate
def evaluate(x: Array, /, *, bias: float, lambd: float) -> Array:
    if x.dtype.kind == "f":
        return _shrunk(x, bias=bias, lambd=lambd)
    return _moved(x, bias=bias, lambd=lambd)


@v9.lower
def lower(x: Expression, /, *, bias: float, lambd: float) -> Expression:
    wide = x if x.is_float else loops.cast(x, "double")
    carried = x if x.is_float else loops.cast(x, _carrier(bias).name)
    low, high = loops.apply("lt", wide, -lambd), loops.apply("gt", wide, lambd)
    lesser = loops.where(high, loops.apply("sub", carried, bias), 0)
    return loops.cast(loops.where(low, loops.apply("add", carried, bias), lesser), x.element)


@pointwise
def _moved(x: Array, /, *, bias: float, lambd: float) -> Array:
    carrier = _carrier(bias)
    moved = converted(x, carrier)
    step = np.array(bias, carrier.dtype)
    moved = np.where(x < -lambd, moved + step, np.where(x > lambd, moved - step, 0))
    return converted(moved, element(x.dtype))


@pointwise
def _shrunk(x: Array, /, *, bias: float, lambd: float) -> Array:
    return np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))


def _carrier(bias: float) -> ElementType:
    """Return the type in which integers are moved: integers where `bias` is one."""
    return INT64 if bias.is_integer() and abs(bias) < 1 << 62 else DOUBLE


@v9.body
def body(b: Builder, x: Value, /, *, bias: float, lambd: float) -> Value:
    """Cast integers to the types in which they are compared and moved."""
    kind = element_of(x)
    compare, move = (kind, kind) if kind.is_float else (DOUBLE, _carrier(bias))
    near, numbers = Numbers(b, compare), Numbers(b, move)
    compared, moved = (x if to is kind else b.Cast(x, to=to.number) for to in (compare, move))
    above = b.Where(near.op("Greater", compared, lambd), numbers.op("Sub", moved, bias), numbers(0))
    y = b.Where(near.op("Less", compared, -lambd), numbers.op("Add", moved, bias), above)
    return y if move is kind else b.Cast(y, to=kind.number)


@v9.gradient
def gradient(g: Gradient, x: Value, /, *, lambd: float) -> Value:
    """At both ends of the interval it is 0, as in PyTorch."""
    outside = g.Or(g.Less(x, -lambd), g.Greater(x, lambd))
    return g.Where(outside, g.dy, 0)


@shrink.examples
def examples() -> Iterator[Example]:
    x = [-2, -1.5, -1, 0, 1, 1.75, 2, np.inf, -np.inf, np.nan]
    hard = [-2, 0, 0, 0, 0, 1.75, 2, np.inf, -np.inf, 0]
    soft = [-0.5, 0, 0, 0, 0, 0.25, 0.5, np.inf, -np.inf, 0]
    yield from over_floats(x, hard, 9, bfloat16=99, lambd=1.5)
    yield from over_floats(x, soft, 9, bfloat16=99, lambd=1.5, bias=1.5)
    # by hand; -3 + 1.5 and 3 - 1.5 are truncated toward zero
    for kind in (np.int8, np.int16, np.int32, np.int64):
        x = np.array([-3, -1, 0, 1, 3], kind)
        yield Example(9, x, lambd=1.5, bias=1.5, expect=[[-1, 0, 0, 0, 1]])
        yield Example(9, x, lambd=0.0, bias=2.0, expect=[[-1, 1, 0, -1, 1]])
    for kind in (np.uint8, np.uint16, np.uint32, np.uint64):
        yield Example(9, np.array([0, 1, 9], kind), lambd=1.0, bias=1.0, expect=[[0, 0, 8]])
    large = 2**60 + 1  # not exact in float64
    yield Example(9, np.array([-large, large]), bias=1.0, expect=[np.array([1 - large, large - 1])])
    yield Example(9, np.uint64(2**64 - 1), bias=1.0, expect=[2**64 - 2])
    yield Example(9, np.int8(-128), bias=-1.0, expect=[127])
