"""Sign: the sign of each element."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE
from sabir.ir import Builder, Value, dim_max, dim_min
from sabir.loops import Expression
from sabir.opsets.families.numbers.pointwise import known_by, over_floats
from sabir.opsets.families.numbers.pointwise_gradients import zero
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, NUMBERS, Constraint, Example, Input, Operator, Output

sign = Operator(
    "Sign", summary="1 where an element is above 0, -1 where it is below, 0 where it is 0; NaN stays NaN."
)

T = Constraint("T", NUMBERS)

v9 = sign.first(
    9,
    inputs=[Input("input", T, "A tensor of any shape.", differentiable=False)],
    outputs=[Output("output", T, "The input's shape, of -1, 0 and 1.", differentiable=False)],
)
v13 = v9.widen(13, T=BFLOAT16)

v9.infer(known_by(lambda x: dim_max(-1, dim_min(x, 1))))


@v9.evaluate
def evaluate(x: Array, /) -> Array:
    return np.sign(x)


@v9.lower
def lower(x: Expression, /) -> Expression:
    return loops.apply("min", x, 1) if x.element.startswith("u") else loops.apply("sign", x)


@v9.downgrade
def compare(b: Builder, x: Value, /) -> Value:
    """Subtract the comparisons with 0; integers, which Less:7 does not admit, are compared as double."""
    kind = element_of(x)
    wide = x if kind.is_float else b.Cast(x, to=DOUBLE.number)
    numbers = Numbers.like(b, wide)
    above, below = (
        b.Cast(numbers.op(name, wide, 0.0), to=numbers.element.number) for name in ("Greater", "Less")
    )
    y = b.Sub(above, below)
    if not kind.is_float:
        return b.Cast(y, to=kind.number)
    return b.Add(y, numbers.op("Mul", numbers.clipped(x, -1.0, 1.0), 0.0))  # 0, or NaN where x is


v13.gradient(zero)


@sign.examples
def examples() -> Iterator[Example]:
    x, y = [1.5, -2, 0, -0.0, np.inf, -np.inf, np.nan], [1, -1, 0, 0, 1, -1, np.nan]
    yield from over_floats(x, y, 9, 13, bfloat16=13)
    for opset in (9, 13):
        yield Example(opset, np.array([-128, 127, 0], np.int8), expect=[[-1, 1, 0]])
        yield Example(opset, np.array([0, 2**64 - 1], np.uint64), expect=[[0, 1]])
