"""SequenceConstruct: a sequence of tensors."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import SequenceType, TensorType, Value
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES, check_items, sequence_of
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, Constraint, Example, Input, Operator, Output, sequences

sequence_construct = Operator("SequenceConstruct", summary="The sequence of the inputs, in their order.")

T = Constraint("T", CLASSIC)
S = Constraint("S", sequences(CLASSIC))

v11 = sequence_construct.first(
    11,
    inputs=[Input("inputs", T, "Tensors of one element type; shapes may differ.", variadic=True, items=True)],
    outputs=[Output("output_sequence", S, "As many items as there are inputs.")],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(*inputs: TensorType) -> SequenceType:
    return sequence_of(*inputs)


@v11.evaluate
def evaluate(*inputs: Array) -> list[Array]:
    check_items(*inputs)
    return list(inputs)


@v11.gradient
def gradient(g: Gradient, /, *inputs: Value) -> tuple[Value, ...]:
    return tuple(g.SequenceAt(g.dy, index) for index in range(len(inputs)))


@sequence_construct.examples
def examples() -> Iterator[Example]:
    x, y = np.array([[1, 2]], np.float32), np.array(3, np.float32)
    yield Example(11, x, expect=[[x]])
    yield Example(11, x, y, x[:0], expect=[[x, y, x[:0]]])
    word = np.array(["a"], object)
    yield Example(11, word, word, expect=[[word, word]])
