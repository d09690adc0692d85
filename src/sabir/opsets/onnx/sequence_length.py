"""SequenceLength: the number of items of a sequence."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.elements import FLOAT, INT64
from sabir.ir import SequenceType, TensorType
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES
from sabir.opsets.typing import Array
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output, sequences, tensors

sequence_length = Operator("SequenceLength", summary="The number of items of a sequence.")

S = Constraint("S", sequences(CLASSIC))
I = Constraint("I", tensors("int64"))  # ruff: ignore[ambiguous-variable-name]  the standard's name

v11 = sequence_length.first(
    11, inputs=[Input("input_sequence", S, "Any sequence.")], outputs=[Output("length", I, "A scalar.")]
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(sequence: SequenceType, /) -> TensorType:
    return TensorType(INT64, ())


@v11.evaluate
def evaluate(sequence: Sequence[Array], /) -> Array:
    return np.array(len(sequence), np.int64)


@sequence_length.examples
def examples() -> Iterator[Example]:
    x = np.array([1, 2], np.float32)
    yield Example(11, [x, x, x[:0]], expect=[3])
    yield Example(11, [], expect=[0], types=[SequenceType(TensorType(FLOAT))])
