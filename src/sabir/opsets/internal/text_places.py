"""TextPlaces: the index of each text in a table."""

from collections.abc import Callable

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.text.places import finding
from sabir.opsets.typing import Array, Strings
from sabir.schema import (
    INTERNAL,
    STRING,
    Attribute,
    Constraint,
    Input,
    Operator,
    Output,
    bound_once,
    tensors,
)

text_places = Operator(
    "TextPlaces",
    domain=INTERNAL,
    summary="The index of each text in a table; for a text that is not there, the number of all.",
)

v1 = text_places.first(
    1,
    inputs=[Input("X", Constraint("T", STRING), "Texts, of any shape.")],
    outputs=[Output("Y", Constraint("I", tensors("int64")), "The input's shape.")],
    attributes=[
        Attribute("keys", "strings", "The table; of equal keys the last applies."),
        Attribute("complete", "int", "1: a text that is not in the table is an error.", default=0),
    ],
)

v1.absent("lower", "kernels read no texts")


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    return TensorType(INT64, x.shape)


def _finding(*, keys: Strings, complete: int) -> Callable[[Array], Array]:
    """Return the function that finds texts in the table, which is made once."""
    return finding(keys or (), is_complete=bool(complete))


@v1.evaluate
@bound_once(_finding)
def evaluate(x: Array, /, *, keys: Strings, complete: int) -> Array:
    return _finding(keys=keys, complete=complete)(x)
