"""SequenceInsert: a sequence with one more tensor."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.elements import INT64
from sabir.ir import SequenceType, TensorType, Value, tensor_type
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.families.sequences.sequence_gradients import from_front
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES, check_items, item_of, place, sequence_of
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output, sequences

sequence_insert = Operator(
    "SequenceInsert", summary="The sequence with `tensor` before the item at `position`, or at its end."
)

T = Constraint("T", CLASSIC)
S = Constraint("S", sequences(CLASSIC))
I = Constraint("I", INDEX_TYPES)  # ruff: ignore[ambiguous-variable-name]  the standard's name

v11 = sequence_insert.first(
    11,
    inputs=[
        Input("input_sequence", S, "A sequence of n tensors.", items=True),
        Input("tensor", T, "The tensor to insert, of the element type of the others.", items=True),
        Input("position", I, "A scalar in [-n, n], counted from the back if negative.", optional=True),
    ],
    outputs=[Output("output_sequence", S, "n + 1 items.")],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(sequence: SequenceType, tensor: TensorType, position: TensorType | None = None, /) -> SequenceType:
    check_one("position", position)
    return sequence_of(item_of(sequence), tensor)


@v11.evaluate
def evaluate(sequence: Sequence[Array], tensor: Array, position: Array | None = None, /) -> list[Array]:
    check_items(*sequence[:1], tensor)
    index = place(position, len(sequence), default=len(sequence), last=len(sequence))
    return [*sequence[:index], tensor, *sequence[index:]]


@v11.gradient
def gradient(
    g: Gradient, sequence: Value, tensor: Value, position: Value | None = None, /
) -> tuple[Value | None, ...]:
    index = from_front(g, g.dy, position, more=1)
    return g.SequenceErase(g.dy, index), g.SequenceAt(g.dy, index), None


@sequence_insert.examples
def examples() -> Iterator[Example]:
    a, b, c = np.array([1, 2]), np.array([[3]]), np.array(4)
    yield Example(11, [a, b], c, expect=[[a, b, c]])
    for position, expect in ((0, [c, a, b]), (2, [a, b, c]), (-1, [a, c, b]), (-2, [c, a, b])):
        yield Example(11, [a, b], c, position, expect=[expect])
    yield Example(11, [a, b], c, np.array(1, np.int32), expect=[[a, c, b]])
    yield Example(11, [], a, expect=[[a]], types=[SequenceType(TensorType(INT64)), tensor_type("int64", [2])])
