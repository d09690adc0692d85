"""Elementwise operators with two inputs: their ports, the attributes of one-way broadcasting, examples."""

from __future__ import annotations

import operator
from itertools import starmap
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import LARGE_ARRAY
from sabir.opsets.families.numbers.results import computed
from sabir.schema import Attribute, Example, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.opsets.typing import Array, BehaviourFunction
    from sabir.schema import Constraint


def one_way(wide: str = "A", narrow: str = "B") -> tuple[Attribute, Attribute]:
    """Return the attributes that broadcast the input `narrow` to the shape of the input `wide`."""
    begin = f"The axis of `{wide}` at which the dimensions of `{narrow}` begin; by default they are its last."
    return (
        Attribute("axis", "int", begin),
        Attribute("broadcast", "int", f"1: `{narrow}` is broadcast to the shape of `{wide}`.", default=0),
    )


def inputs(
    of: Constraint,
    first: str = "The first operand.",
    second: str = "The second operand.",
    *,
    names: str = "AB",
    differentiable: bool,
) -> list[Input]:
    """Return two inputs, whose names are the letters of `names`, described as `first` and `second`."""
    return [
        Input(name, of, doc, differentiable=differentiable)
        for name, doc in zip(names, (first, second), strict=True)
    ]


def outputs(of: Constraint, name: str = "C", *, differentiable: bool) -> list[Output]:
    """Return the output, of the shape to which the inputs broadcast."""
    return [Output(name, of, "The shape to which both inputs broadcast.", differentiable=differentiable)]


def elementwise(function: Callable[[Array, Array], Array]) -> BehaviourFunction:
    """Return the evaluation of a binary operator by a numpy function; the binder cannot inspect a ufunc."""

    def evaluate(a: Array, b: Array, /) -> Array:
        if a.nbytes < LARGE_ARRAY and b.nbytes < LARGE_ARRAY:
            return function(a, b)
        return computed(function, a, b)

    return evaluate


def examples_of(
    name: str,
    a: Array,
    row: Array,
    column: Array,
    *,
    one_way: Sequence[int] = (),
    both_ways: Sequence[int] = (),
) -> Iterator[Example]:
    """Yield calls of an operator; the oracle is a function of Python's module `operator`, on Python numbers.

    `a` is a matrix of shape (m, n), `row` has shape (n), `column` (m, 1). `one_way` lists the opsets in which
    attributes broadcast the second input, `both_ways` those that broadcast as numpy does.
    """
    function: Callable[[Any, Any], Any] = getattr(operator, name)
    truths = isinstance(function(a.item(0), row.item(0)), bool)

    def call(opset: int, x: Array, y: Array, **attributes: Any) -> Example:
        pairs = np.broadcast(x.astype(object), y.astype(object))
        results = np.array(list(starmap(function, pairs)), np.bool_ if truths else a.dtype)
        second = y.ravel() if "axis" in attributes else y
        return Example(opset, x, second, expect=[results.reshape(pairs.shape)], **attributes)

    for opset in one_way:
        yield call(opset, a, np.broadcast_to(row, a.shape).copy())
        yield call(opset, a, row, broadcast=1)
        yield call(opset, a, column, broadcast=1, axis=0)
        yield call(opset, a, column[:1], broadcast=1)
    for opset in both_ways:
        for x, y in ((a, row), (a, column), (column, a), (a[:0], row), (a[0, 0], column[1, 0])):
            yield call(opset, x, y)
