"""Windows that are sums of cosines: `a0 - a1 cos(t) + a2 cos(2t)`, with t from 0 to a full turn."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, FLOAT16, element
from sabir.ir import Expr, TensorType, dim_max
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers.casting import converted
from sabir.opsets.families.shapes.ranks import as_number, check_one
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import (
    BFLOAT16,
    NUMBERS,
    Attribute,
    Constraint,
    Example,
    Input,
    Output,
    element_types,
    tensors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.ir import Builder, Value
    from sabir.loops import Expression, Lowering
    from sabir.opsets.typing import Array
    from sabir.schema import Operator

_BLOCK = 1 << 16  # elements that are computed at a time


def declare(operator: Operator, *terms: float) -> None:
    """Declare the operator of the window `terms[0] - terms[1] cos(t) + terms[2] cos(2t)`."""
    integers = Constraint("T1", tensors("int32", "int64"))
    numbers = Constraint("T2", NUMBERS, BFLOAT16)
    v17 = operator.first(
        17,
        inputs=[Input("size", integers, "The number of elements of the window.", differentiable=False)],
        outputs=[Output("output", numbers, "The window, (size).", differentiable=False)],
        attributes=[
            Attribute(
                "periodic", "int", "1: t ends one step before the full turn; 0: at the full turn.", default=1
            ),
            Attribute(
                "output_datatype",
                "int",
                "The element type of the output.",
                default=1,
                values=element_types("T2"),
            ),
        ],
    )
    v17.infer(_infer)

    @v17.evaluate
    def evaluate(size: Array, /, *, periodic: int, output_datatype: int) -> Array:
        return _sampled(size, terms, output_datatype, periodic=bool(periodic))

    @v17.lower
    def lower(size: Expression, /, *, periodic: int, output_datatype: int, call: Lowering) -> Expression:
        return _lowered(size, terms, output_datatype, call, periodic=bool(periodic))

    @v17.body
    def body(b: Builder, size: Value, /, *, periodic: int, output_datatype: int) -> Value:
        return _graph(b, size, terms, output_datatype, periodic=bool(periodic))


def _infer(size: TensorType, /, *, output_datatype: int) -> TensorType:
    check_one("size", size)
    length = size.known[0] if size.known else None
    dim = dim_max(length, 0) if isinstance(length, (int, Expr)) else None
    return TensorType(element(output_datatype), (dim,))


def _sampled(size: Array, terms: Sequence[float], number: int, *, periodic: bool) -> Array:
    """Return a window, computed in float64; by its formula a symmetric one of one element is NaN."""
    target = element(number)
    (count,) = allotted([max(0, int(as_number("size", size)))], target.dtype)
    angle = np.divide(math.tau, count if periodic else count - 1)
    window: Array = np.empty(count, target.dtype)
    for first in range(0, count, _BLOCK):
        angles = np.arange(first, min(first + _BLOCK, count)) * angle
        y = np.full(angles.shape, terms[0])
        for times, term in enumerate(terms[1:], 1):
            y += np.cos(angles * times) * (term if times % 2 == 0 else -term)
        y = y.astype(np.float32) if target.is_integer else y  # removes the rounding errors of integers
        window[first : first + _BLOCK] = converted(y, target)
    return window


def _lowered(
    size: Expression, terms: Sequence[float], number: int, call: Lowering, *, periodic: bool
) -> Expression:
    """Return the same window as an expression."""
    kernels.check_sizing(size, "`size`")
    (count,), target = call.shape(), element(number)
    turns = loops.sized("double", count if periodic else count - 1)
    angles = loops.cast(loops.count((count,), 0), "double")
    angles = loops.apply("mul", angles, loops.apply("div", math.tau, turns))
    y: Expression = loops.number("double", terms[0])
    for times, term in enumerate(terms[1:], 1):
        cosine = loops.apply("cos", loops.apply("mul", angles, times))
        y = loops.apply("add", y, loops.apply("mul", cosine, term if times % 2 == 0 else -term))
    return loops.cast(loops.cast(y, "float") if target.is_integer else y, target.name)


def _graph(b: Builder, size: Value, terms: Sequence[float], number: int, *, periodic: bool) -> Value:
    """Return the same window as a graph of other operators."""
    target = element(number)

    def constant(value: float) -> Value:
        return b.initializer("constant", np.array(value, np.float64))

    count = b.Cast(b.Reshape(size, b.initializer("scalar", np.zeros(0, np.int64))), to=DOUBLE.number)
    turns = count if periodic else b.Sub(count, constant(1))
    angles = b.Mul(b.Range(constant(0), count, constant(1)), b.Div(constant(math.tau), turns))
    y = constant(terms[0])
    for times, term in enumerate(terms[1:], 1):
        cosine = b.Cos(angles if times == 1 else b.Mul(angles, constant(times)))
        y = b.Add(y, b.Mul(cosine, constant(term if times % 2 == 0 else -term)))
    return b.Cast(b.Cast(y, to=FLOAT.number) if target.is_integer else y, to=target.number)


def examples(opset: int, quarters: Sequence[float], sixths: Sequence[float]) -> Iterator[Example]:
    """Yield examples for windows whose values at quarters and sixths of a turn were computed by hand."""
    four, five = np.array(4), np.array(5, np.int32)
    yield Example(opset, four, expect=[np.array(quarters, np.float32)])
    yield Example(opset, five, periodic=0, expect=[np.array([*quarters, quarters[0]], np.float32)])
    for target in (FLOAT16, DOUBLE, element("bfloat16")):
        expected = np.array(quarters).astype(target.dtype)
        yield Example(opset, four, output_datatype=target.number, tolerance=1e-7, expect=[expected])
    yield Example(opset, np.array(6), expect=[np.array(sixths, np.float32)])
    yield Example(opset, five - 1, output_datatype=7, expect=[np.array([0, 0, 1, 0])])
    yield Example(opset, np.array(0), expect=[np.zeros(0, np.float32)])
    yield Example(opset, np.array(1), expect=[np.array(quarters[:1], np.float32)])
    yield Example(opset, np.array(1), periodic=0, expect=[np.array([np.nan], np.float32)])
