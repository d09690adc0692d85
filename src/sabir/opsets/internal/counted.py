"""Counted: the items of a tensor that begins with their number."""

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.typing import Array
from sabir.schema import INTERNAL, Attribute, Constraint, Input, Operator, Output, tensors

counted = Operator(
    "Counted",
    domain=INTERNAL,
    summary="The items after the first number, which is their number; a view.",
)

_T = Constraint("T", tensors("int64"))

v1 = counted.first(
    1,
    inputs=[Input("found", _T, "The number of items, then rows that begin with the items.")],
    outputs=[Output("items", _T, "`[items]`, or `[items, width]`.")],
    attributes=[
        Attribute("width", "int", "The numbers of an item; 0: one, without an axis.", default=0),
        Attribute("rows", "int", "How many rows of equal length there are.", default=1),
        Attribute("row", "int", "The row to read.", default=0),
    ],
)

v1.absent("lower", "a run decides the number of items")


@v1.infer
def infer(found: TensorType, /, *, width: int) -> TensorType:
    check_rank("found", found, 1)
    return TensorType(INT64, (None, width) if width else (None,))


@v1.evaluate
def evaluate(found: Array, /, *, width: int, rows: int, row: int) -> Array:
    count, first = int(found[0]), 1 + row * ((found.size - 1) // rows)
    return (
        found[first : first + count * width].reshape(count, width) if width else found[first : first + count]
    )
