"""TruePlaces: the number of the true elements of a vector, and their indices."""

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType, total
from sabir.loops import Expression, TruePlaces
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.typing import Array
from sabir.schema import BOOL, INTERNAL, Constraint, Input, Operator, Output, tensors

true_places = Operator(
    "TruePlaces",
    domain=INTERNAL,
    summary="The number of the true elements of a vector, then their indices.",
)

v1 = true_places.first(
    1,
    inputs=[Input("marks", Constraint("T", BOOL), "A vector.")],
    outputs=[Output("found", Constraint("I", tensors("int64")), "An element more than the vector has.")],
)


@v1.infer
def infer(marks: TensorType, /) -> TensorType:
    check_rank("marks", marks, 1)
    return TensorType(INT64, (total([marks.size, 1]),))


@v1.evaluate
def evaluate(marks: Array, /) -> Array:
    check_rank("marks", marks, 1)
    places = np.flatnonzero(marks)
    found: Array = np.zeros(marks.size + 1, np.int64)
    found[0], found[1 : places.size + 1] = places.size, places
    return found


@v1.lower
def lower(marks: Expression, /) -> Expression:
    (count,) = marks.shape
    return TruePlaces("int64", (count + 1,), marks)
