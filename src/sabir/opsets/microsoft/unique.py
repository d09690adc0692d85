"""Unique: the elements of a vector without duplicates, in the order of their first indices."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.indexing import duplicates
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output

unique = Operator(
    "Unique",
    domain="com.microsoft",
    summary="The unique elements of a vector in the order of their first indices, the number of each element"
    " among them, and their counts; NaN equals NaN.",
    body_opset=18,
)

T = Constraint("T", CLASSIC)

v1 = unique.first(
    1,
    inputs=[Input("x", T, "A vector.", differentiable=False)],
    outputs=[
        Output("y", T, "The unique elements.", differentiable=False),
        Output("idx", "tensor(int64)", "The index in `y` of each element of `x`.", differentiable=False),
        Output(
            "counts",
            "tensor(int64)",
            "The number of occurrences of each element of `y`.",
            differentiable=False,
        ),
    ],
)

v1.absent("lower", "the shape of the result depends on the contents of the operands")
v1.absent("gradient", "equal elements share one result, so it has no derivative by one of them")


@v1.infer
def infer(x: TensorType, /) -> tuple[TensorType, TensorType, TensorType]:
    check_rank("x", x, 1)
    count = x.size if x.size in {0, 1} else None
    return TensorType(x.element, (count,)), TensorType(INT64, (x.size,)), TensorType(INT64, (count,))


@v1.evaluate
def evaluate(x: Array, /) -> tuple[Array, ...]:
    check_rank("x", x, 1)
    duplicates.check_search(x)
    first, inverse, counts = duplicates.by_first_index(*duplicates.of_elements(x))
    return x[first], *(a.astype(np.int64, copy=False) for a in (inverse, counts))


@v1.body
def body(b: Builder, x: Value, /) -> tuple[Value, ...]:
    y, _, inverse, counts = b.op("Unique", x, outputs=4, sorted=0)
    return y, inverse, counts


@unique.examples
def examples() -> Iterator[Example]:
    x, f = [2, 1, 1, 3, 4, 3], np.float32
    for kind in (f, np.int8, np.float16):
        results = [np.array([2, 1, 3, 4], kind), [0, 1, 1, 2, 3, 2], [1, 2, 2, 1]]
        yield Example(1, np.array(x, kind), outputs=3, expect=results)
    yield Example(1, ["b", "a", "b"], outputs=3, expect=[["b", "a"], [0, 1, 0], [2, 1]])
    nans = np.array([np.nan, 1, np.nan], f)
    yield Example(1, nans, outputs=3, expect=[np.array([np.nan, 1], f), [0, 1, 0], [2, 1]])
    none = np.zeros(0, np.int64)
    yield Example(1, np.zeros(0, f), outputs=3, expect=[np.zeros(0, f), none, none])
    yield Example(1, np.array([7], f), outputs=3, expect=[[7], [0], [1]])
