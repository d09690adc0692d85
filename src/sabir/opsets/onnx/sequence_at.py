"""SequenceAt: one tensor of a sequence."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.ir import SequenceType, TensorType, Value
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.families.sequences.sequence_gradients import from_front
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES, item_of, place
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output, sequences

sequence_at = Operator("SequenceAt", summary="The item of a sequence at `position`.")

S = Constraint("S", sequences(CLASSIC))
T = Constraint("T", CLASSIC)
I = Constraint("I", INDEX_TYPES)  # ruff: ignore[ambiguous-variable-name]  the standard's name

v11 = sequence_at.first(
    11,
    inputs=[
        Input("input_sequence", S, "A sequence of n tensors."),
        Input("position", I, "A scalar in [-n, n-1], counted from the back if negative."),
    ],
    outputs=[Output("tensor", T, "The item there.")],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(sequence: SequenceType, position: TensorType, /) -> TensorType:
    check_one("position", position)
    return item_of(sequence)


@v11.evaluate
def evaluate(sequence: Sequence[Array], position: Array, /) -> Array:
    return sequence[place(position, len(sequence), default=0, last=len(sequence) - 1)]


@v11.gradient
def gradient(g: Gradient, sequence: Value, position: Value, /) -> tuple[Value | None, ...]:
    index, zeros = from_front(g, sequence, position), g.zeros(sequence)
    return g.SequenceInsert(g.SequenceErase(zeros, index), g.dy, index), None


@sequence_at.examples
def examples() -> Iterator[Example]:
    a, b, c = np.array([1, 2], np.float16), np.array([[3]], np.float16), np.array(4, np.float16)
    for position, expect in ((0, a), (2, c), (-1, c), (-3, a)):
        yield Example(11, [a, b, c], position, expect=[expect])
    yield Example(11, [b, b], np.array(1, np.int32), expect=[b])
    yield Example(11, [np.array(["a"], object)], 0, expect=[["a"]])
