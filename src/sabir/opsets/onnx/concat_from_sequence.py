"""ConcatFromSequence: the tensors of a sequence joined into one."""

from collections.abc import Iterator, Sequence

import numpy as np

from sabir.base import EvaluationError
from sabir.elements import INT64
from sabir.ir import UNDEFINED, Builder, SequenceType, TensorType, Value
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES, item_of
from sabir.opsets.families.shapes.ranks import check_shape
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, one_of, sequences

concat_from_sequence = Operator(
    "ConcatFromSequence",
    summary="The items of a sequence concatenated along `axis`, or stacked on a new axis there.",
)

S = Constraint("S", sequences(CLASSIC))
T = Constraint("T", CLASSIC)

v11 = concat_from_sequence.first(
    11,
    inputs=[Input("input_sequence", S, "At least one tensor; shapes may differ along a concatenated axis.")],
    outputs=[Output("concat_result", T, "The items as one tensor.")],
    attributes=[
        Attribute("new_axis", "int", "1: stack on a new axis.", default=0, values=one_of(0, 1)),
        Attribute("axis", "int", "The axis of the result, counted from the back if negative.", required=True),
    ],
)

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(sequence: SequenceType, /, *, new_axis: int, axis: int) -> TensorType:
    item = item_of(sequence)
    if item.shape is None:
        return TensorType(item.element)
    axis = axis_in(axis, len(item.shape) + new_axis)
    after = axis if new_axis else axis + 1
    return TensorType(item.element, (*item.shape[:axis], None, *item.shape[after:]))


@v11.evaluate
def evaluate(sequence: Sequence[Array], /, *, new_axis: int, axis: int) -> Array:
    if not sequence:
        raise EvaluationError("the sequence is empty, and the shape of the result is unknown")
    rank = sequence[0].ndim
    along = axis_in(axis, rank + new_axis)
    free = None if new_axis else along
    for number, item in enumerate(sequence):
        check_shape(
            f"item {number}", item, *(None if a == free else d for a, d in enumerate(sequence[0].shape))
        )
    return np.stack(sequence, along) if new_axis else np.concatenate(sequence, along)


@v11.gradient
def gradient(g: Gradient, sequence: Value, /, *, new_axis: int, axis: int) -> Value:
    if new_axis:
        return g.SplitToSequence(g.dy, axis=axis, keepdims=0)
    return g.SplitToSequence(g.dy, g.ConcatFromSequence(_sizes(g, sequence, axis), axis=0), axis=axis)


def _sizes(g: Gradient, sequence: Value, axis: int) -> Value:
    """Return the sizes of the items along an axis, as a sequence of tensors of one element."""
    kind = TensorType(UNDEFINED) if sequence.type is None else item_of(sequence.type)

    def size(b: Builder) -> Value:
        shape = b.Shape(b.input("item", kind))
        found = b.Gather(shape, b.Constant(value=np.array([axis])))
        found.type = TensorType(INT64, (1,))
        return found

    return g.SequenceMap(sequence, body=g.subgraph(size, name="sizes"), outputs=1)


@concat_from_sequence.examples
def examples() -> Iterator[Example]:
    x, y = np.array([[1, 2], [3, 4]], np.float32), np.array([[5], [6]], np.float32)
    yield Example(11, [x, x[:1]], axis=0, expect=[np.array([[1, 2], [3, 4], [1, 2]], np.float32)])
    for axis in (1, -1):
        yield Example(11, [x, y], axis=axis, expect=[np.array([[1, 2, 5], [3, 4, 6]], np.float32)])
    yield Example(11, [x[0], x[1]], axis=0, new_axis=1, expect=[x])
    for axis in (1, -1):
        yield Example(11, [x[0], x[1]], axis=axis, new_axis=1, expect=[x.T])
    yield Example(11, [np.array(7), np.array(8)], axis=0, new_axis=1, expect=[[7, 8]])
    words = np.array(["a", "bc"], object)
    yield Example(11, [words, words[:0]], axis=0, expect=[words])
