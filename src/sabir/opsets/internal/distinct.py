"""Distinct: the number of the different elements of a vector, and where they are."""

import numpy as np

from sabir import loops
from sabir.elements import INT64
from sabir.ir import TensorType, product, total
from sabir.loops import ROWS_OF_DISTINCT, Expression
from sabir.opsets.families.indexing import duplicates
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    BOOL,
    INTERNAL,
    NUMBERS,
    Attribute,
    Constraint,
    Input,
    Operator,
    Output,
    tensors,
)

distinct = Operator(
    "Distinct",
    domain=INTERNAL,
    summary="The number of the different elements of a vector, then three rows, each as long as the vector:"
    " the first index of each, the number of the one that each element equals, how often each occurs.",
)

v1 = distinct.first(
    1,
    inputs=[Input("x", Constraint("T", NUMBERS | BOOL | BFLOAT16), "A vector.")],
    outputs=[Output("found", Constraint("I", tensors("int64")), "The number and the rows.")],
    attributes=[Attribute("sorted", "int", "1: ascending; 0: by first index.", default=1)],
)


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    check_rank("x", x, 1)
    return TensorType(INT64, (total((1, product((ROWS_OF_DISTINCT, x.size)))),))


@v1.evaluate
def evaluate(x: Array, /, *, sorted: int) -> Array:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    check_rank("x", x, 1)
    duplicates.check_search(x)
    found = duplicates.of_elements(x)
    first, inverse, counts = found if sorted else duplicates.by_first_index(*found)
    rows: Array = np.zeros((ROWS_OF_DISTINCT, x.size), np.int64)
    for row, values in zip(rows, (first, inverse, counts), strict=True):
        row[: values.size] = values
    return np.concatenate([[first.size], rows.ravel()])


@v1.lower
def lower(x: Expression, /, *, sorted: int) -> Expression:  # ruff: ignore[builtin-argument-shadowing]  the attribute's name
    (count,) = x.shape
    wide = _WIDER.get(x.element, x.element)
    return loops.Distinct("int64", (count * ROWS_OF_DISTINCT + 1,), loops.cast(x, wide), bool(sorted))


_WIDER = {
    "bool": "int32",
    "int8": "int32",
    "uint8": "int32",
    "int16": "int32",
    "uint16": "int32",
} | dict.fromkeys(loops.HALVES, "float")
"""The element types as which narrower elements are compared."""
