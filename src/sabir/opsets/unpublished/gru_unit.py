"""GRUUnit: one step of a gated recurrent unit, from gates before their activations."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal, mul
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.building.removals import removed
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import as_number, check_one, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output, Unconvertible

gru_unit = Operator(
    "GRUUnit",
    summary="`u * hidden_prev + (1 - u) * tanh(o)` of the gates `u`, after a logistic function, and `o`;"
    " past the end of a sequence the state before, or 0.",
    body_opset=9,
)

T = Constraint("T", FLOATS)
_GATES = 3

v1 = gru_unit.first(
    1,
    inputs=[
        Input("hidden_prev", T, "The state before, (N, D) or (1, N, D)."),
        Input("gates", T, "The gates forget, update and output before their activations, (..., N, 3 * D);"
              " the forget gate is already in the output gate, and not read."),
        Input("seq_lengths", T, "The length of each sequence, (N)."),
        Input("t", T, "The number of the step, a scalar."),
    ],
    outputs=[Output("hidden", T, "The new state, in the shape of the one before.")],
    attributes=[
        Attribute("drop_states", "int", "1: the state past the end of a sequence is 0; else that before.")
    ],
    unpublished=True,
)  # fmt: skip
v10 = removed(v1, "GRU computes whole sequences.")


@v1.infer
def infer(hidden: TensorType, gates: TensorType, lengths: TensorType, step: TensorType, /) -> TensorType:
    check_rank("hidden_prev", hidden, 2, 3)
    check_rank("seq_lengths", lengths, 1)
    check_one("t", step)
    if hidden.shape is None:
        return TensorType(hidden.element)
    *batch, count, size = hidden.shape
    if batch and not may_be_equal(batch[0], 1):
        raise InferenceError(f"`hidden_prev` is of one step, and not of {batch[0]}")
    check_shape("gates", gates, *batch, count, mul(size, _GATES))
    check_shape("seq_lengths", lengths, count)
    return TensorType(hidden.element, hidden.shape)


@v1.evaluate
def evaluate(
    hidden: Array, gates: Array, lengths: Array, step: Array, /, *, drop_states: int | None
) -> Array:
    hold(infer, hidden, gates, lengths, step)
    before = widened(hidden)
    _, update, output = np.split(widened(gates), _GATES, axis=-1)
    with np.errstate(over="ignore"):
        share = sigmoid(update)
    after = before * share + np.tanh(output) * (1 - share)
    ended = np.zeros_like(before) if drop_states else before
    valid = as_number("t", step) < widened(lengths)
    return np.where(valid[:, None], after, ended).astype(hidden.dtype, copy=False)


@v1.lower
def lower(
    hidden: Expression,
    gates: Expression,
    lengths: Expression,
    step: Expression,
    /,
    *,
    drop_states: int | None,
) -> Expression:
    size = hidden.shape[-1]
    if not loops.equal(gates.shape[-1], size * _GATES):
        raise NotLowered("whether the gates have three times the size of the state is known at run time only")
    update, output = (loops.narrow(gates, -1, size * place, size) for place in (1, 2))
    share = loops.apply("sigmoid", update)
    rest = loops.apply(
        "mul", loops.apply("tanh", output), loops.apply("sub", loops.number(share.element, 1), share)
    )
    after = loops.apply("add", loops.apply("mul", hidden, share), rest)
    valid = loops.apply("lt", loops.reshape(step, ()), loops.reshape(lengths, (*lengths.shape, 1)))
    return loops.where(valid, after, 0 if drop_states else hidden)


@v10.upgrade
@v1.body
def write_out(
    b: Builder, hidden: Value, gates: Value, lengths: Value, step: Value, /, *, drop_states: int | None
) -> Value:
    rank = hidden.type.rank if isinstance(hidden.type, TensorType) else None
    if rank is None:
        raise Unconvertible("the rank of the state is unknown, and Split counts its axis from the front")
    numbers = Numbers.like(b, hidden)
    _, update, output = b.op("Split", gates, outputs=_GATES, axis=rank - 1)
    share = b.Sigmoid(update)
    rest = b.Mul(b.Tanh(output), b.Sub(numbers(1), share))
    after = b.Add(b.Mul(hidden, share), rest)
    valid = b.Unsqueeze(b.Less(b.Reshape(step, as_input(b, "scalar", [])), lengths), axes=[1])
    return b.Where(valid, after, numbers.op("Mul", hidden, 0.0) if drop_states else hidden)


@gru_unit.examples
def examples() -> Iterator[Example]:
    log3 = np.log(3)  # its logistic function is 3/4; the tangent of half of it is 1/2
    before, lengths = np.array([[4, 8], [1, 2], [3, 5]]), np.array([3, 1, 2])
    gates = np.tile([np.nan, np.nan, log3, 0, log3 / 2, -log3 / 2], (3, 1))
    gates[:, :2] = 9
    after = np.array([[3.125, 3.75], [0.875, 0.75], [2.375, 2.25]])
    for kind, rough in ((np.float32, 1e-6), (np.float64, 1e-12), (np.float16, 2e-3)):
        call = [a.astype(kind) for a in (before, gates, lengths)]
        for opset in (1, 9):
            ended = np.where([[True], [False], [True]], after, before).astype(kind)
            yield Example(opset, *call, kind(1), expect=[ended], tolerance=rough)
        dropped = np.where([[True], [False], [True]], after, 0).astype(kind)
        yield Example(
            9,
            call[0][None],
            call[1][None],
            call[2],
            np.array([1], kind),
            drop_states=1,
            expect=[dropped[None]],
            tolerance=rough,
        )
        yield Example(9, *call, kind(0), drop_states=0, expect=[after.astype(kind)], tolerance=rough)
    none = np.zeros((0, 2), np.float32)
    yield Example(9, none, np.zeros((0, 6), np.float32), none[:, 0], np.float32(0), expect=[none])
