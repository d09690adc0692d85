"""SplitToSequence: the parts of a tensor along an axis, as a sequence."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Dim, SequenceType, TensorType, Value, exact_quotient, known_equal, may_be_equal, total
from sabir.opsets.families.indexing.indexing import INDEX_TYPES
from sabir.opsets.families.indexing.splitting import check_parts, cut
from sabir.opsets.families.sequences.sequences import NO_SEQUENCES
from sabir.opsets.families.shapes.ranks import check_rank
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.families.shapes.sizes import sizes_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, sequences

split_to_sequence = Operator(
    "SplitToSequence",
    summary="The parts of `input` along `axis`: of the sizes in `split`, all of one size, or of size 1.",
)

T = Constraint("T", CLASSIC)
I = Constraint("I", INDEX_TYPES)  # ruff: ignore[ambiguous-variable-name]  the standard's name
S = Constraint("S", sequences(CLASSIC))

v11 = split_to_sequence.first(
    11,
    inputs=[
        Input("input", T, "The tensor to divide."),
        Input(
            "split",
            I,
            "The sizes of the parts; or the size of all but a smaller last one, a scalar. 1 when absent.",
            optional=True,
        ),
    ],
    outputs=[Output("output_sequence", S, "The parts, in order.")],
    attributes=[
        Attribute("keepdims", "int", "0 drops `axis` from the parts where `split` is absent.", default=1),
        Attribute("axis", "int", "The dimension to divide, counted from the back if negative.", default=0),
    ],
)
v24 = v11.widen(24, T=BFLOAT16, S=sequences(BFLOAT16))

v11.absent("lower", "kernels compute tensors, no sequences")
v11.absent("downgrade", NO_SEQUENCES)


@v11.infer
def infer(x: TensorType, split: TensorType | None = None, /, *, keepdims: int, axis: int) -> SequenceType:
    check_rank("split", split, 0, 1)
    if x.shape is None:
        return SequenceType(TensorType(x.element))
    axis = axis_in(axis, len(x.shape))
    before, size, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    if split is None and not keepdims:
        return SequenceType(TensorType(x.element, (*before, *after)))
    part = 1 if split is None else _size_of_all(size, split)
    return SequenceType(TensorType(x.element, (*before, part, *after)))


def _size_of_all(size: Dim, split: TensorType) -> Dim:
    """Return the common size of the parts; None where they differ or are unknown."""
    if split.rank == 0:
        return _size_of_chunks(size, split.known[0]) if split.known else None
    sizes = sizes_in("split", split) if split.rank == 1 else None
    if sizes is None:
        return None
    if not may_be_equal(total(sizes), size):
        raise InferenceError(f"sizes with the sum {total(sizes)} do not fit a dimension of {size}")
    return sizes[0] if sizes and all(known_equal(s, sizes[0]) for s in sizes) else None


def _size_of_chunks(size: Dim, step: object) -> Dim:
    if not isinstance(step, int):
        return None
    if step <= 0:
        raise InferenceError(f"parts cannot be of size {step}")
    if isinstance(size, int) and size <= step:
        return size
    return None if exact_quotient(size, step) is None else step


@v11.evaluate
def evaluate(x: Array, split: Array | None = None, /, *, keepdims: int, axis: int) -> list[Array]:
    axis = axis_in(axis, x.ndim)
    size = x.shape[axis]
    if split is None:
        check_parts(size, x)
        parts = cut(x, [1] * size, axis)
        return list(parts) if keepdims else [part.squeeze(axis) for part in parts]
    check_rank("split", split, 0, 1)
    if split.ndim:
        return list(cut(x, split.tolist(), axis))
    step = int(split)
    if step <= 0:
        raise ValueError(f"parts cannot be of size {step}")
    rest = size % step
    check_parts(size // step, x)
    return list(cut(x, [step] * (size // step) + [rest] * (rest > 0), axis))


@v11.gradient
def gradient(
    g: Gradient, x: Value, split: Value | None = None, /, *, keepdims: int, axis: int
) -> tuple[Value | None, ...]:
    items, shape, stacked = g.dy, g.shape(x), split is None and not keepdims
    size = None if shape is None else shape[axis_in(axis, len(shape))]
    if isinstance(size, int) and size > 0:
        return g.Reshape(g.ConcatFromSequence(items, axis=axis, new_axis=int(stacked)), g.sizes(x)), None
    # there may be no items, and nothing cannot be concatenated
    if stacked:
        first = g.ReduceSum(g.zeros(x), [axis], keepdims=0)
        joined = g.ConcatFromSequence(g.SequenceInsert(items, first, 0), axis=axis, new_axis=1)
        return g.Slice(joined, [1], [np.iinfo(np.int64).max], [axis]), None
    first = g.Slice(g.zeros(x), [0], [0], [axis])
    return g.ConcatFromSequence(g.SequenceInsert(items, first, 0), axis=axis), None


@split_to_sequence.examples
def examples() -> Iterator[Example]:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    rows, columns = [x[:1], x[1:2], x[2:]], [x[:, :1], x[:, 1:]]
    for opset in (11, 24):
        yield Example(opset, x, expect=[rows])
        yield Example(opset, x, axis=-1, expect=[columns])
        yield Example(opset, x, keepdims=0, expect=[[x[0], x[1], x[2]]])
        yield Example(opset, x, axis=1, keepdims=0, expect=[[x[:, 0], x[:, 1]]])
        yield Example(opset, x, 2, expect=[[x[:2], x[2:]]])
        yield Example(opset, x, np.array(5, np.int32), expect=[[x]])
        yield Example(opset, x, [1, 0, 2], expect=[[x[:1], x[1:1], x[1:]]])
        yield Example(opset, x, 1, axis=1, keepdims=0, expect=[columns])  # no effect with `split`
        yield Example(opset, x[:0], 2, expect=[[]])
    half = np.array([1, 2], ml_dtypes.bfloat16)
    yield Example(24, half, np.array([1, 1], np.int32), expect=[[half[:1], half[1:]]])
