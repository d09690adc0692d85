"""AttnLSTM: an LSTM whose steps also read a memory, by additive attention of the state of the step before."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import Dim, TensorType, add
from sabir.opsets.families.recurrence import lstm_steps, recurrences
from sabir.opsets.families.recurrence import recurrence_ports as ports
from sabir.opsets.families.recurrence.directions import of_direction, time_reversed
from sabir.opsets.families.recurrence.lstm_steps import LAYER
from sabir.opsets.families.recurrence.recurrence_shapes import RecurrentInputs, directions_of
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

attn_lstm = Operator(
    "AttnLSTM",
    domain="com.microsoft",
    summary="LSTM, where the input of a step is joined with the mean of a memory, weighted by "
    "`softmax(sum(V * tanh(M @ MW + h @ QW)))`.",
)

T = Constraint("T", tensors("float", "double"))
T1 = Constraint("T1", tensors("int32"))

v1 = attn_lstm.first(
    1,
    inputs=[
        Input("X", T, "Shape (time, batch, input)."),
        Input("W", T, "Shape (directions, 4 hidden, input + attention): gates i, o, f, g."),
        Input("R", T, "Shape (directions, 4 hidden, hidden): the same gates."),
        Input("B", T, "(directions, 8 hidden): biases of W, then of R.", optional=True),
        Input("sequence_lens", T1, "(batch): the number of steps of each sequence.", optional=True),
        Input("initial_h", T, "Shape (directions, batch, hidden).", optional=True),
        Input("initial_c", T, "Shape (directions, batch, hidden).", optional=True),
        Input("P", T, "(directions, 3 hidden): from c to i, o, f.", optional=True),
        Input("QW", T, "Shape (directions, hidden, width): the weights of queries; needed.", optional=True),
        Input("MW", T, "Shape (directions, depth, width): the weights of the memory; needed.", optional=True),
        Input("V", T, "Shape (directions, width): the weights of a score; needed.", optional=True),
        Input("M", T, "Shape (batch, steps, depth): the memory; needed.", optional=True),
        Input("memory_seq_lens", T1, "(batch): the number of steps of each memory.", optional=True),
        Input(
            "AW",
            T,
            "(directions, hidden + depth, attention): the weights of h and of the weighted mean; by default "
            "the mean itself is the attention.",
            optional=True,
        ),
    ],
    outputs=[
        Output("Y", T, "(time, directions, batch, hidden): every h.", optional=True),
        Output("Y_h", T, "(directions, batch, hidden): the last h.", optional=True),
        Output("Y_c", T, "(directions, batch, hidden): the last c.", optional=True),
    ],
    attributes=[
        ports.DIRECTION,
        ports.HIDDEN_SIZE,
        ports.CLIP,
        ports.ACTIVATION_BETA,
        ports.ACTIVATION_ALPHA,
        *lstm_steps.ATTRIBUTES,
    ],
)

v1.absent("lower", "no recurrence of kernels has an attention in its step")
v1.absent("gradient", "no recurrence of the standard has an attention in its step, to differentiate")

_LSTM = 8  # the inputs of an LSTM, which come first
_RANK = 3  # of X, of weights, and of the memory


@v1.infer
def infer(*inputs: TensorType, **attributes: Any) -> tuple[TensorType, ...]:
    lstm = RecurrentInputs(*inputs[:_LSTM])
    check_rank("X", lstm.x, _RANK)
    hidden = lstm.r.shape[-1] if lstm.r.shape else attributes["hidden_size"]
    batch, size = lstm.x.shape[1:] if lstm.x.shape else (None, None)
    directions = len(directions_of(attributes["direction"]))
    attention = _attention_size(*inputs[_LSTM:], directions=directions, batch=batch, hidden=hidden)
    check_shape("W", lstm.w, None, None, add(size, attention))
    if lstm.w.shape:
        lstm = lstm._replace(w=lstm.w.with_shape(*lstm.w.shape[:2], size))
    return recurrences.infer(LAYER, lstm, **attributes)


def _attention_size(
    queries: TensorType | None = None, keys: TensorType | None = None, scores: TensorType | None = None,
    memory: TensorType | None = None, lens: TensorType | None = None, joint: TensorType | None = None, *,
    directions: int, batch: Dim, hidden: Dim,
) -> Dim:  # fmt: skip
    """Return the number of elements of an attention; raises InferenceError for inputs that do not match."""
    if queries is None or keys is None or scores is None or memory is None:
        raise InferenceError("the attention needs QW, MW, V and M")
    check_rank("MW", keys, _RANK)
    check_shape("M", memory, batch, None, None)
    _, steps, depth = memory.shape or (None,) * _RANK
    width = keys.shape[-1] if keys.shape else None
    if steps == 0:
        raise InferenceError("the memory `M` has no steps")
    check_shape("QW", queries, directions, hidden, width)
    check_shape("MW", keys, directions, depth, width)
    check_shape("V", scores, directions, width)
    check_shape("memory_seq_lens", lens, batch)
    check_shape("AW", joint, directions, add(hidden, depth), None)
    if joint is None:
        return depth
    return joint.shape[-1] if joint.shape else None


@v1.evaluate
def evaluate(
    *inputs: Array, activations: Sequence[str] | None, activation_alpha: Sequence[float] | None,
    activation_beta: Sequence[float] | None, direction: str, **attributes: Any,
) -> tuple[Array, ...]:  # fmt: skip
    hold(infer, *inputs, activations=activations, direction=direction, **attributes)
    functions = recurrences.activations_of(
        LAYER, activations, activation_alpha, activation_beta, direction=direction
    )
    whole = RecurrentInputs(*inputs[:_LSTM])
    results: list[tuple[Array, ...]] = []
    for number, backwards in enumerate(directions_of(direction)):
        lstm = of_direction(whole, number)
        if backwards:
            lstm = lstm._replace(x=time_reversed(lstm.x, whole.lens))
        attention = _Attention.of(number, *inputs[_LSTM:])
        y, *states = _forward(lstm, attention, functions[number], **attributes)
        results.append((time_reversed(y[:, 0], whole.lens) if backwards else y[:, 0], *states))
    y, h, c = zip(*results, strict=True)
    return np.stack(y, 1), np.concatenate(h), np.concatenate(c)


class _Attention(NamedTuple):
    """The attention of one direction."""

    queries: Array  # weights (hidden, width)
    keys: Array  # (batch, steps, width)
    scores: Array  # weights (width)
    memory: Array  # (batch, steps, depth)
    present: Array  # (batch, steps): which steps the memories have
    joint: Array | None  # weights (hidden + depth, attention)

    @classmethod
    def of(
        cls, number: int, queries: Array, keys: Array, scores: Array, memory: Array,
        lens: Array | None = None, joint: Array | None = None,
    ) -> "_Attention":  # fmt: skip
        """Read the inputs of a direction; raises EvaluationError for lengths outside the memory."""
        batch, steps, _ = memory.shape
        if lens is None:
            lens = np.full(batch, steps)
        if np.any((lens < 1) | (lens > steps)):
            raise EvaluationError(f"`memory_seq_lens` must be 1 to {steps}, the steps of `M`")
        present = np.arange(int(steps)) < lens[:, None]
        memory = np.where(present[..., None], memory, memory.dtype.type(0))
        weights = None if joint is None else joint[number]
        return cls(queries[number], memory @ keys[number], scores[number], memory, present, weights)

    @property
    def size(self) -> int:
        """The number of elements that an attention has."""
        return self.memory.shape[2] if self.joint is None else self.joint.shape[1]

    def after(self, h: Array) -> Array:
        """Return the attention after a step whose state is `h` (batch, hidden)."""
        scores = np.tanh(self.keys + (h @ self.queries)[:, None]) @ self.scores
        scores = np.where(self.present, scores, scores.dtype.type(-np.inf))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        context = (weights[:, None] @ self.memory)[:, 0]
        return context if self.joint is None else np.concatenate([h, context], axis=1) @ self.joint


def _forward(
    inputs: RecurrentInputs[Array], attention: _Attention, functions: Sequence[recurrences.Activation], *,
    clip: float | None, input_forget: int, hidden_size: int | None,
) -> tuple[Array, ...]:  # fmt: skip
    """Return Y and the final states of one direction, forward in time."""
    size = inputs.x.shape[2]
    of_input, of_attention = inputs.w[0, :, :size].T, inputs.w[0, :, size:].T
    recurrent = inputs.r[0].T

    def cell(x: Array, _: int) -> tuple[Array, recurrences.RecurrentStep]:
        bias, p = (None if part is None else part[0] for part in (inputs.b, inputs.p))
        gates = x @ of_input
        if bias is not None:
            gates += bias.reshape(2, -1).sum(axis=0)
        limited = lstm_steps.limited(functions, clip)
        step = lstm_steps.step_of(lambda h: h @ recurrent, p, limited, coupled=input_forget != 0)
        current: Array = np.zeros((x.shape[1], attention.size), x.dtype)

        def attending(gates: Array, h: Array, c: Array) -> tuple[Array, ...]:
            nonlocal current
            h, c = step(gates + current @ of_attention, h, c)
            current = attention.after(h)
            return h, c

        return gates, attending

    used = inputs._replace(w=inputs.w[:, :, :size])
    return recurrences.recur(LAYER, used, cell, direction="forward", hidden_size=hidden_size)


@attn_lstm.examples
def examples() -> Iterator[Example]:
    """Floats are computed by onnxruntime, which refuses doubles: the last example is by hand."""
    time, batch, size, hidden = 5, 2, 3, 4
    draw = np.random.default_rng(0)

    def drawn(*shape: int) -> Array:
        return (draw.standard_normal(shape) / 2).astype(np.float32)

    def call(directions: int, attention: int, *, joint: bool) -> list[Array | None]:
        width, depth, steps = 5, 3, 4
        columns = size + (attention if joint else depth)
        lstm = [drawn(time, batch, size), drawn(directions, 4 * hidden, columns)]
        lstm += [drawn(directions, 4 * hidden, hidden), drawn(directions, 8 * hidden)]
        lstm += [np.array([3, 5], np.int32), *(drawn(directions, batch, hidden) for _ in range(2))]
        lstm += [drawn(directions, 3 * hidden)]
        memory = [drawn(directions, hidden, width), drawn(directions, depth, width)]
        memory += [drawn(directions, width), drawn(batch, steps, depth), np.array([4, 2], np.int32)]
        return [*lstm, *memory, *([drawn(directions, hidden + depth, attention)] if joint else [])]

    options: dict[str, Any] = {"hidden_size": hidden, "outputs": 3}
    for direction, count in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for joint in (False, True):
            inputs = call(count, 6, joint=joint)
            yield Example(1, *inputs, direction=direction, **options)
            inputs[3:8] = [None] * 5  # B to P
            yield Example(1, *inputs, direction=direction, **options)
            inputs[12] = None  # memory_seq_lens
            yield Example(1, *inputs, direction=direction, input_forget=1, **options)
    inputs = call(1, 2, joint=True)
    yield Example(1, *inputs, clip=0.25, hidden_size=hidden)
    yield Example(
        1,
        *inputs,
        activations=["HardSigmoid", "Tanh", "LeakyRelu"],
        activation_alpha=[0.3, 0.2],
        activation_beta=[0.4],
        **options,
    )
    doubles: list[Array | None] = [
        None if x is None or x.dtype == np.int32 else np.zeros(x.shape) for x in inputs
    ]
    doubles[6] = np.ones((1, batch, hidden))  # without weights each step halves c
    cells = np.broadcast_to(0.5 ** np.arange(1.0, time + 1).reshape(-1, 1, 1, 1), (time, 1, batch, hidden))
    states = np.tanh(cells) / 2
    yield Example(1, *doubles, **options, expect=[states, states[-1], cells[-1]])
