"""SequenceErase: a sequence without one of its tensors."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.ir import SequenceType, TensorType, Value
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.families.sequences.sequence_gradients import from_front
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES, item_of, place
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output, sequences

sequence_erase = Operator(
    "SequenceErase", summary="The sequence without the item at `position`, or without its last one."
)

S = Constraint("S", sequences(CLASSIC))
I = Constraint("I", INDEX_TYPES)  # ruff: ignore[ambiguous-variable-name]  the standard's name

v11 = sequence_erase.first(
    11,
    inputs=[
        Input("input_sequence", S, "A sequence of n tensors, at least one."),
        Input("position", I, "A scalar in [-n, n-1], counted from the back if negative.", optional=True),
    ],
    outputs=[Output("output_sequence", S, "The n - 1 others, in their order.")],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(sequence: SequenceType, position: TensorType | None = None, /) -> SequenceType:
    check_one("position", position)
    return SequenceType(item_of(sequence))


@v11.evaluate
def evaluate(sequence: Sequence[Array], position: Array | None = None, /) -> list[Array]:
    index = place(position, len(sequence), default=-1, last=len(sequence) - 1)
    return [*sequence[:index], *sequence[index + 1 :]]


@v11.gradient
def gradient(g: Gradient, sequence: Value, position: Value | None = None, /) -> tuple[Value | None, ...]:
    index = from_front(g, sequence, position)
    return g.SequenceInsert(g.dy, g.zeros(g.SequenceAt(sequence, index)), index), None


@sequence_erase.examples
def examples() -> Iterator[Example]:
    a, b, c = np.array([1, 2]), np.array([[3]]), np.array(4)
    yield Example(11, [a, b, c], expect=[[a, b]])
    for position, expect in ((0, [b, c]), (2, [a, b]), (-1, [a, b]), (-3, [b, c])):
        yield Example(11, [a, b, c], position, expect=[expect])
    yield Example(11, [a], np.array(0, np.int32), expect=[[]])
