"""ReverseSequence: the first steps of each sequence of a batch in reverse order."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.elements import INT64
from sabir.ir import Builder, TensorType, Value, product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.extents import indices, numbered, shape_of, sizes, unsqueezed
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, CLASSIC, Attribute, Constraint, Example, Input, Operator, Output, one_of

reverse_sequence = Operator(
    "ReverseSequence",
    summary="`input` with the first `sequence_lens[i]` steps of each sequence i in reverse order.",
)

T = Constraint("T", CLASSIC)

v10 = reverse_sequence.first(
    10,
    inputs=[
        Input("input", T, "Sequences: one axis for the batch and one for time, any others after them."),
        Input("sequence_lens", "tensor(int64)", "The length of each sequence; later steps are unchanged."),
    ],
    outputs=[Output("Y", T, "The sequences, in the shape of `input`.")],
    attributes=[
        Attribute("batch_axis", "int", "The axis of the batch: 1 or 0.", default=1, values=one_of(0, 1)),
        Attribute("time_axis", "int", "The axis of time: 0 or 1.", default=0, values=one_of(0, 1)),
    ],
)
v28 = v10.widen(28, T=BFLOAT16)


@v10.infer
def infer(x: TensorType, lengths: TensorType, /, *, batch_axis: int, time_axis: int) -> TensorType:
    _check_axes(batch_axis, time_axis)
    if x.shape is None:
        return TensorType(x.element)
    if len(x.shape) < 2:  # ruff: ignore[magic-value-comparison]  an axis for the batch, and one for time
        raise InferenceError(f"`input` of rank {len(x.shape)} is not a batch of sequences")
    check_rank("sequence_lens", lengths, 1)
    if lengths.shape is not None:
        dims = list(x.shape)
        dims[batch_axis] = same_dim([dims[batch_axis], lengths.shape[0]], "the batch and `sequence_lens`")
        return TensorType(x.element, tuple(dims))
    return TensorType(x.element, x.shape)


def _check_axes(batch_axis: int, time_axis: int) -> None:
    if batch_axis == time_axis:
        raise InferenceError(f"`batch_axis` and `time_axis` are both {time_axis}, and must differ")


@v10.evaluate
def evaluate(x: Array, lengths: Array, /, *, batch_axis: int, time_axis: int) -> Array:
    _check_axes(batch_axis, time_axis)
    batch, steps = x.shape[batch_axis], x.shape[time_axis]
    check_shape("sequence_lens", lengths, batch)
    if ((lengths < 0) | (lengths > steps)).any():
        raise EvaluationError(f"`sequence_lens` {lengths.tolist()} must be lengths from 0 to {steps}")
    time: Array = np.arange(steps, dtype=np.int64)
    length: Array = lengths[:, None]
    source: Array = np.where(time < length, length - 1 - time, time)
    rows: Array = np.arange(batch, dtype=np.int64)[:, None]
    return x[rows, source] if batch_axis == 0 else x[source.T, rows.T]


@v10.lower
def lower(x: Expression, lengths: Expression, /, *, batch_axis: int, time_axis: int) -> Expression:
    """Number all steps of all sequences, and take them in the reverse order.

    A length that `evaluate` refuses leads outside of the tensor, which is an error of the run.
    """
    _check_axes(batch_axis, time_axis)
    shape = (x.shape[0], x.shape[1])
    if 0 in x.shape or not loops.at_least(x.shape[time_axis], 1):
        raise NotLowered("sequences without elements are evaluated")
    if not loops.same_shape(lengths.shape, (x.shape[batch_axis],)):
        raise NotLowered("whether the lengths are valid is known at run time only")
    rows, time = loops.count(shape, batch_axis), loops.count(shape, time_axis)
    steps = loops.sized("int64", x.shape[time_axis])
    length = loops.reshape(lengths, [d if i == batch_axis else 1 for i, d in enumerate(shape)])
    turned = loops.apply("sub", loops.apply("sub", length, 1), time)
    source = loops.where(loops.apply("lt", time, length), turned, time)
    valid = loops.apply("and", loops.apply("ge", length, 0), loops.apply("le", length, steps))
    source = loops.where(valid, source, steps)
    places = kernels.numbered((rows, source) if batch_axis == 0 else (source, rows), shape)
    return loops.take(loops.reshape(x, (product(shape) or 0, *x.shape[2:])), places, 0)


@v10.downgrade
def gather_steps(b: Builder, x: Value, lengths: Value, /, *, batch_axis: int, time_axis: int) -> Value:
    """Number all steps of all sequences, and gather the numbers in the reverse order."""
    _check_axes(batch_axis, time_axis)
    rank, counts = len(shape_of("input", x)), [sizes(b, x, [axis]) for axis in (0, 1)]
    rows, steps = (indices(b, counts[axis]) for axis in (batch_axis, time_axis))
    if batch_axis == 0:
        rows, lengths = (unsqueezed(b, v, [1]) for v in (rows, lengths))
    else:
        steps = unsqueezed(b, steps, [1])
    inside = b.Cast(b.Less(steps, lengths), to=INT64.number)
    shift = b.Sub(b.Sub(lengths, 1), b.Mul(steps, 2))
    places = b.Add(steps, b.Mul(inside, shift))
    numbers = numbered(b, (rows, places) if batch_axis == 0 else (places, rows), counts)
    if rank == 2:  # ruff: ignore[magic-value-comparison]  an axis for the batch, and one for time
        return b.Gather(b.Reshape(x, as_input(b, "row", [-1])), numbers, axis=0)
    y = b.Gather(b.Flatten(x, axis=2), numbers, axis=0)
    return y if rank == 3 else b.Reshape(y, b.Shape(x))  # ruff: ignore[magic-value-comparison]  one more axis


@v10.gradient
def gradient(
    g: Gradient, x: Value, lengths: Value, /, *, batch_axis: int, time_axis: int
) -> tuple[Value, None]:
    return g.ReverseSequence(g.dy, lengths, batch_axis=batch_axis, time_axis=time_axis), None


@reverse_sequence.examples
def examples() -> Iterator[Example]:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    for opset in (10, 28):
        yield Example(opset, x, [3, 2], expect=[[[4, 3], [2, 1], [0, 5]]])
        yield Example(opset, x, [2, 1, 0], batch_axis=0, time_axis=1, expect=[[[1, 0], [2, 3], [4, 5]]])
    deep = np.arange(8).reshape(2, 2, 2)
    yield Example(10, deep, [1, 2], expect=[[[[0, 1], [6, 7]], [[4, 5], [2, 3]]]])
    words = np.array([["a", "b"]], object)
    yield Example(10, words, [2], batch_axis=0, time_axis=1, expect=[words[:, ::-1]])
    yield Example(10, np.zeros((0, 2), bool), [0, 0], expect=[np.zeros((0, 2), bool)])
    brain = np.array([[1], [2]], ml_dtypes.bfloat16)
    yield Example(28, brain, [2], expect=[brain[::-1]])
