"""The ports, attributes and common versions of the reductions over some axes, and examples of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.schema import Version

ATTRIBUTES = (
    Attribute("keepdims", "int", "1: the reduced axes stay, with size 1; 0: they are removed.", default=1),
    Attribute("axes", "ints", "The axes to reduce; all of them by default.", lists_axes=True),
)
_NOOP = Attribute("noop_with_empty_axes", "int", "Without axes, 0: reduce all of them, 1: none.", default=0)
_AXES = Input(
    "axes",
    "tensor(int64)",
    "The axes to reduce, each in [-rank, rank-1].",
    optional=True,
    differentiable=False,
    lists_axes=True,
)


def data(of: Constraint) -> list[Input]:
    """Return the input to reduce."""
    return [Input("data", of, "A tensor of any shape.", differentiable=True)]


def reduced(of: Constraint, doc: str) -> list[Output]:
    """Return the output."""
    return [Output("reduced", of, doc, differentiable=True)]


def axes_as_input(older: Version, since: int, changes: str, **types: frozenset[str]) -> Version:
    """Declare a version whose axes are an input; it also admits more `types`, by constraint name."""
    inputs = [*older.inputs, _AXES]
    return older.evolve(since, changes, inputs=inputs, drop=["axes"], add=[_NOOP], widen=types)


def floats_only(older: Version, since: int, changes: str) -> Version:
    """Declare a version that no longer admits integers."""
    floats = Constraint("T", FLOATS, BFLOAT16)
    inputs = [replace(older.inputs[0], type=floats), *older.inputs[1:]]
    return older.evolve(since, changes, inputs=inputs, outputs=[replace(older.outputs[0], type=floats)])


def examples_of(
    function: Callable[[Sequence[float]], float], *, by_attribute: Sequence[int], by_input: Sequence[int]
) -> Iterator[Example]:
    """Yield calls of a reduction; `function` is the oracle, which reduces a list of Python numbers.

    `by_attribute` lists the opsets in which an attribute names the axes, `by_input` those of the input.
    """

    def reduce(numbers: Sequence[float]) -> float:
        with np.errstate(all="ignore"):
            return float(function(numbers))

    x = np.array([[[1, 2, 3], [4, 5, 9]], [[-1, 0, 1], [2, 2, 2]]], np.float32)
    rows = [[reduce(row) for row in matrix] for matrix in x.tolist()]
    columns = [[[reduce(x[:, i].ravel().tolist())] for i in range(x.shape[1])]]
    each = [[[reduce([number]) for number in row] for row in matrix] for matrix in x.tolist()]
    whole, nothing = reduce(x.ravel().tolist()), reduce([])
    for opset in by_attribute:
        yield Example(opset, x, axes=[2], keepdims=0, expect=[rows])
        yield Example(opset, x, axes=[0, 2], expect=[columns])
        yield Example(opset, x, expect=[[[[whole]]]])
    for opset in by_attribute[1:]:  # the first version counts axes from the front
        yield Example(opset, x, axes=[-1], expect=[[[[number] for number in row] for row in rows]])
    for opset in by_input:
        yield Example(opset, x, [-1], keepdims=0, expect=[rows])
        yield Example(opset, x, [0, 2], expect=[columns])
        yield Example(opset, x, [], keepdims=0, expect=[whole])
        yield Example(opset, x, expect=[[[[whole]]]])
        yield Example(opset, x, None, noop_with_empty_axes=1, keepdims=0, expect=[each])
        yield Example(opset, np.zeros((2, 0), np.float32), [1], expect=[[[nothing], [nothing]]])
        yield Example(opset, np.zeros((0, 2), np.float16), [1], expect=[np.zeros((0, 1), np.float16)])
        yield Example(opset, np.float64(3), expect=[reduce([3.0])])
