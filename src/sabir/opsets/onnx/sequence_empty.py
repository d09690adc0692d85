"""SequenceEmpty: a sequence without items."""

from collections.abc import Iterator

from sabir.elements import FLOAT, element
from sabir.ir import SequenceType, TensorType
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Attribute, Constraint, Example, Operator, Output, element_types, sequences

sequence_empty = Operator(
    "SequenceEmpty", summary="A sequence of no items, of tensors of the element type `dtype`."
)

S = Constraint("S", sequences(CLASSIC))

v11 = sequence_empty.first(
    11,
    inputs=[],
    outputs=[Output("output", S, "A sequence without items; items of any shape may be inserted.")],
    attributes=[
        Attribute(
            "dtype", "int", "The number of an element type; float when absent.", values=element_types("S")
        )
    ],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(*, dtype: int | None) -> SequenceType:
    return SequenceType(TensorType(FLOAT if dtype is None else element(dtype)))


@v11.evaluate
def evaluate(*, dtype: int | None) -> list[Array]:
    return []


@sequence_empty.examples
def examples() -> Iterator[Example]:
    yield Example(11, expect=[[]])
    yield Example(11, dtype=7, expect=[[]])
