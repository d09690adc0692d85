"""The ports, attributes and common versions of the reductions over some axes, and examples of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.numbers.arithmetic import LARGE_INTEGERS
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sabir.schema import Operator, Version

_WIDENED = {13: BFLOAT16}
_NOOP = Attribute("noop_with_empty_axes", "int", "Without axes, 0: reduce all of them, 1: none.", default=0)
_AXES = Input(
    "axes",
    "tensor(int64)",
    "The axes to reduce, each in [-rank, rank-1].",
    optional=True,
    differentiable=False,
    lists_axes=True,
)


def declare(
    operator: Operator, result: str, widened: Mapping[int, frozenset[str]] = _WIDENED
) -> tuple[Version, Version]:
    """Declare the versions of a reduction up to opset 18; `result` describes the output.

    `widened` has the types that opsets after 11 admit too. The results are the first version, and 18, in
    which the axes are an input.
    """
    v1, v11 = declare_first(operator, result)
    return v1, axes_as_input(v11.widen_stepwise(widened, "T"), 18)


def declare_first(operator: Operator, result: str) -> tuple[Version, Version]:
    """Declare versions 1 and 11, whose axes are an attribute; `result` describes the output."""
    of = Constraint("T", FLOATS, LARGE_INTEGERS)
    v1 = operator.first(
        1,
        inputs=[Input("data", of, "A tensor of any shape.", differentiable=True)],
        outputs=[Output("reduced", of, result, differentiable=True)],
        attributes=[
            Attribute(
                "keepdims", "int", "1: the reduced axes stay, with size 1; 0: they are removed.", default=1
            ),
            Attribute("axes", "ints", "The axes to reduce; all of them by default.", lists_axes=True),
        ],
    )
    return v1, v1.restate(11, "A negative axis counts from the end.")


def axes_as_input(older: Version, since: int, **types: frozenset[str]) -> Version:
    """Declare a version whose axes are an input; it also admits more `types`, by constraint name."""
    changes = "`axes` becomes an input; adds `noop_with_empty_axes`."
    inputs = [*older.inputs, _AXES]
    return older.evolve(since, changes, inputs=inputs, drop=["axes"], add=[_NOOP], widen=types)


def floats_only(older: Version, since: int) -> Version:
    """Declare a version that no longer admits integers."""
    floats = Constraint("T", FLOATS, BFLOAT16)
    inputs = [replace(older.inputs[0], type=floats), *older.inputs[1:]]
    outputs = [replace(older.outputs[0], type=floats)]
    return older.evolve(since, "No longer admits integers.", inputs=inputs, outputs=outputs)


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
