"""GatedDeltaNet: linear attention by a state, of sequences that are packed one after the other."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Dim, TensorType, add, exact_quotient, may_be_equal, mul, sub
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.sequences import packed_places
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import spend_operations
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    one_of,
    tensors,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.opsets.typing import Array

gated_delta_net = Operator(
    "GatedDeltaNet",
    domain="com.microsoft",
    summary="LinearAttention of sequences of several lengths, packed one after the other, with the "
    "activations of its gates; a state of floats goes from each call to the next.",
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
TG = Constraint("TG", BFLOAT16, tensors("float", "float16"))
TS = Constraint("TS", tensors("float"))
TI = Constraint("TI", tensors("int32"))
_PLACES = "cu_seqlens"

v1 = gated_delta_net.first(
    1,
    inputs=[
        Input(
            "query",
            T,
            "[tokens, q heads, key size]; without `key` and `value` they follow in each row, [tokens, q "
            "heads * key size * 2 + heads * value size]. Two axes, [batch, steps], may be in place of the "
            "tokens, here and in the other inputs and the output.",
        ),
        Input("key", T, "[tokens, q heads, key size].", optional=True),
        Input("value", T, "[tokens, heads, value size].", optional=True),
        Input(
            _PLACES,
            TI,
            "[batch + 1]: the start of each sequence, and the last end; by default all have equal lengths.",
            optional=True,
        ),
        Input(
            "decay",
            TG,
            "[tokens, heads], or [tokens, heads, key size]: logarithms of factors; for the gated rules.",
            optional=True,
        ),
        Input("beta", TG, "[tokens, heads]: update rates; for the delta rules alone.", optional=True),
        Input(
            "initial_state",
            TS,
            "[batch, heads, value size, key size]; zeros by default. Without `cu_seqlens`, or with packed "
            "queries, keys and values, it is needed for its sizes.",
            optional=True,
        ),
        Input("a_log", TS, "[heads]: for `gate_activation`.", optional=True),
        Input("dt_bias", TS, "[heads], or of the size of a `decay` by key: for it too.", optional=True),
        Input(
            "capture_count",
            TI,
            "[batch]: how many updates of each sequence to return; with `state_update_capacity` alone.",
            optional=True,
        ),
        Input("state_update_active", TI, "One number; 0: `state_update` is zeros.", optional=True),
    ],
    outputs=[
        Output("output", T, "[tokens, heads, value size]."),
        Output("final_state", TS, "The state after the last token of each sequence.", optional=True),
        Output(
            "state_update",
            TS,
            "[batch, capacity * size]: factors of the decay, then keys, then what they are multiplied by in "
            "an update, each for the first tokens of a sequence; zeros after them.",
            optional=True,
        ),
    ],
    attributes=[
        Attribute(
            "state_update_capacity",
            "int",
            "The most updates to return of a sequence.",
            default=0,
            values=one_of(*range(9)),
        ),
        Attribute("chunk_size", "int", "A hint, which changes nothing.", default=64),
        Attribute(
            "beta_activation",
            "string",
            "none, or sigmoid: of `beta`.",
            default="none",
            values=one_of("none", "sigmoid"),
        ),
        Attribute(
            "gate_activation",
            "string",
            "none; softplus or qwen: the decay is `-exp(a_log) * softplus(decay + dt_bias)`; sigmoid or kda: "
            "`gate_lower_bound * sigmoid(exp(a_log) * (decay + dt_bias))`.",
            default="none",
            values=one_of("none", "softplus", "qwen", "sigmoid", "kda"),
        ),
        Attribute("scale", "float", "The factor of the output; 0: 1 / sqrt(key size).", default=0.0),
        Attribute("qk_l2_norm", "int", "1: queries and keys are divided by their norms.", default=0),
        Attribute("gate_lower_bound", "float", "Of the gates sigmoid and kda.", default=-5.0),
        Attribute(
            "update_rule",
            "string",
            "linear, gated, delta or gated_delta.",
            default="gated_delta",
            values=one_of("linear", "gated", "delta", "gated_delta"),
        ),
    ],
)

v1.absent("gradient", "it is an operator of inference, with the state of the call before")
v1.absent("lower", "the lengths of the sequences are decided by a run")

X = TypeVar("X")
_SMALL = np.float32(1e-12)  # in the norm of a query or a key


class _Inputs(NamedTuple, Generic[X]):
    """The inputs of a call."""

    query: X
    key: X | None = None
    value: X | None = None
    places: X | None = None
    decay: X | None = None
    beta: X | None = None
    state: X | None = None
    a_log: X | None = None
    dt_bias: X | None = None
    counts: X | None = None
    active: X | None = None

    def check(self, rule: str, gate: str, capacity: int) -> None:
        """Raise InferenceError for inputs that the attributes exclude or need."""
        wanted = {
            "decay": (self.decay, "gated" in rule, f"`update_rule` {rule}"),
            "beta": (self.beta, "delta" in rule, f"`update_rule` {rule}"),
            "a_log": (self.a_log, gate != "none", f"`gate_activation` {gate}"),
            "dt_bias": (self.dt_bias, gate != "none", f"`gate_activation` {gate}"),
            "capture_count": (self.counts, capacity > 0, f"`state_update_capacity` {capacity}"),
        }
        for name, (given, needed, why) in wanted.items():
            if needed != (given is not None) and (needed or name not in {"a_log", "dt_bias"}):
                raise InferenceError(f"`{name}` must be {'present' if needed else 'absent'} with {why}")
        if (self.key is None) != (self.value is None):
            raise InferenceError("`key` and `value` must be present or absent together")
        if self.state is None and (self.key is None or self.places is None):
            raise InferenceError(
                "`initial_state` is needed without `cu_seqlens`, and where queries have keys too"
            )


class _Sizes(NamedTuple):
    """The sizes of a call; `lead` are those of the tokens, one or two."""

    lead: tuple[Dim, ...]
    q_heads: Dim
    heads: Dim
    key: Dim
    value: Dim
    batch: Dim


def _sizes(x: _Inputs[TensorType]) -> _Sizes:
    """Return the sizes; raises InferenceError for operands that contradict each other."""
    check_rank("initial_state", x.state, 4)
    batch, heads, value, key = (x.state.shape if x.state else None) or (None,) * 4
    if x.key is None or x.value is None:
        check_rank("query", x.query, 2, 3)
        *lead, width = x.query.shape or (None, None)
        own = exact_quotient(sub(width, mul(heads, value)), mul(2, key))
        q_heads = own
    else:
        check_rank("query", x.query, 3, 4)
        check_rank("key", x.key, 3, 4)
        check_rank("value", x.value, 3, 4)
        *lead, q_heads, own = x.query.shape or (None,) * 3
        key = same_dim([key, own], "the sizes of keys")
        check_shape("key", x.key, *lead, q_heads, key)
        check_shape("value", x.value, *lead, heads, value)
        if x.value.shape is not None:
            heads, value = x.value.shape[-2:]
    if isinstance(q_heads, int) and isinstance(heads, int) and (q_heads < 1 or heads % q_heads):
        raise InferenceError(f"{heads} heads of values are no multiple of {q_heads} heads of queries")
    if x.places is not None:
        if len(lead) != 1:
            raise InferenceError("`cu_seqlens` are places in one axis of tokens, and there are two axes")
        batch = same_dim([batch, packed_places.batch_of(_PLACES, x.places, lead[0])], "the batch")
    elif len(lead) > 1:
        batch = same_dim([batch, lead[0]], "the batch")
    return _Sizes(tuple(lead), q_heads, heads, key, value, batch)


@v1.infer
def infer(
    *inputs: TensorType, update_rule: str, gate_activation: str, state_update_capacity: int
) -> tuple[TensorType, TensorType, TensorType]:
    x = _Inputs(*inputs)
    x.check(update_rule, gate_activation, state_update_capacity)
    lead, q_heads, heads, key, value, batch = _sizes(x)
    by_key = x.decay is not None and x.decay.shape is not None and len(x.decay.shape) > len(lead) + 1
    if x.decay is not None:
        check_rank("decay", x.decay, len(lead) + 1, len(lead) + 2)
        check_shape("decay", x.decay, *lead, heads, *([key] if by_key else []))
    check_shape("beta", x.beta, *lead, heads)
    check_shape("initial_state", x.state, batch, heads, value, key)
    check_shape("a_log", x.a_log, heads)
    _check_bias(x.dt_bias, heads, key if by_key else 1)
    check_shape("capture_count", x.counts, batch)
    check_shape("state_update_active", x.active, 1)
    width = add(add(mul(heads, key) if by_key else heads, mul(q_heads, key)), mul(heads, value))
    output = TensorType(x.query.element)
    return (
        output if x.query.shape is None else x.query.with_shape(*lead, heads, value),
        TensorType(FLOAT, (batch, heads, value, key)),
        TensorType(FLOAT, (batch, mul(state_update_capacity, width))),
    )


def _check_bias(bias: TensorType | None, heads: Dim, size: Dim) -> None:
    """Raise InferenceError unless a bias has the sizes of a decay: one, or one for each head and element."""
    check_rank("dt_bias", bias, 1, 2)
    if bias is None or bias.shape is None:
        return
    *rows, last = bias.shape
    if rows:
        check_shape("dt_bias", bias, heads, size)
        return
    sizes = [heads, mul(heads, size)]
    if not any(may_be_equal(last, wanted) for wanted in sizes):
        raise InferenceError(f"`dt_bias` must have {sizes[-1]} elements, and is {bias}")


@v1.evaluate
def evaluate(
    *inputs: Array,
    update_rule: str,
    gate_activation: str,
    beta_activation: str,
    state_update_capacity: int,
    scale: float,
    qk_l2_norm: int,
    gate_lower_bound: float,
    call: Call,
    **_: Any,
) -> tuple[Array, Array, Array | None]:
    hold(
        infer,
        *inputs,
        update_rule=update_rule,
        gate_activation=gate_activation,
        state_update_capacity=state_update_capacity,
    )
    x = _Inputs(*inputs)
    q, k, v = _heads(x)
    lead = x.query.shape[: x.query.ndim - (1 if x.key is None else 2)]
    places = _places_of(x, math.prod(lead))
    if qk_l2_norm:
        q, k = (t / np.sqrt((t * t).sum(axis=-1, keepdims=True) + _SMALL) for t in (q, k))
    decay, beta = _gates(x, gate_activation, gate_lower_bound, len(lead)), None
    if x.beta is not None:
        beta = widened(x.beta).reshape(v.shape[:2])
        with np.errstate(over="ignore"):
            beta = sigmoid(beta) if beta_activation == "sigmoid" else beta
    state = (
        np.zeros((len(places) - 1, *v.shape[1:], q.shape[2]), np.float32)
        if x.state is None
        else x.state.copy()
    )
    y, updates = _run(_Steps(q, k, v, decay, beta), places, state)
    y *= np.float32(scale or 1 / math.sqrt(max(q.shape[2], 1)))
    update = _captured(x, updates, places, state_update_capacity) if call.wants(2) else None
    return y.reshape(*lead, *v.shape[1:]).astype(x.query.dtype, copy=False), state, update


def _heads(x: _Inputs[Array]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values, [tokens, heads, size], in float32."""
    if x.key is not None and x.value is not None:
        tokens = math.prod(x.query.shape[:-2])
        q, k, v = (widened(t).reshape(tokens, *t.shape[-2:]) for t in (x.query, x.key, x.value))
        return q, k, v
    if x.state is None:
        raise InferenceError("packed queries, keys and values need `initial_state`")
    _, heads, value, key = x.state.shape
    rows = widened(x.query).reshape(math.prod(x.query.shape[:-1]), x.query.shape[-1])
    own = (rows.shape[1] - heads * value) // 2
    q, k, v = np.split(rows, [own, 2 * own], axis=1)
    shared = own // max(key, 1)
    return (
        q.reshape(len(q), shared, key),
        k.reshape(len(k), shared, key),
        v.reshape(len(v), heads, value),
    )


def _places_of(x: _Inputs[Array], tokens: int) -> Array:
    """Return the start of each sequence, and the last end."""
    if x.places is not None:
        packed_places.check_places(_PLACES, x.places.tolist(), tokens)
        return x.places.astype(np.int64)
    batch = 0 if x.state is None else len(x.state)
    if batch == 0 or tokens % batch:
        raise InferenceError(f"{tokens} tokens are not {batch} sequences of one length")
    return np.arange(batch + 1) * (tokens // batch)


def _gates(x: _Inputs[Array], gate: str, bound: float, lead: int) -> Array | None:
    """Return the logarithms of the decays, [tokens, heads, 1 or key size], in float32."""
    if x.decay is None:
        return None
    sizes = x.decay.shape
    decay = widened(x.decay).reshape(math.prod(sizes[:lead]), sizes[lead], math.prod(sizes[lead + 1 :]))
    if gate == "none" or x.a_log is None or x.dt_bias is None:
        return decay
    bias, factor = (
        x.dt_bias.reshape(decay.shape[1], x.dt_bias.size // max(decay.shape[1], 1)),
        np.exp(x.a_log)[:, None],
    )
    with np.errstate(over="ignore"):
        if gate in {"softplus", "qwen"}:
            return -factor * np.logaddexp(np.float32(0), decay + bias)
        return np.float32(bound) * sigmoid(factor * (decay + bias))


class _Steps(NamedTuple):
    """What each token does to the state; decays and rates may be absent."""

    queries: Array
    keys: Array
    values: Array
    decays: Array | None
    rates: Array | None


def _run(steps: _Steps, places: Array, state: Array) -> tuple[Array, tuple[Array, Array]]:
    """Update the state, [batch, heads, value size, key size], by all tokens, in place.

    Returns the products of the queries with it, and the factors and the changes of each update.
    """
    tokens, heads, size = steps.values.shape
    repeats = heads // max(steps.queries.shape[1], 1)
    q, k = (np.repeat(t, repeats, axis=1) for t in (steps.queries, steps.keys))
    spend_operations(4 * tokens, state.nbytes * max(tokens, 1))
    factors = np.ones((tokens, heads, 1), np.float32) if steps.decays is None else np.exp(steps.decays)
    y, changes = np.zeros((2, tokens, heads, size), np.float32)
    for item, (start, end) in enumerate(itertools.pairwise(places.tolist())):
        s = state[item]
        for t in range(start, end):
            s *= factors[t][:, None, :]
            change = steps.values[t]
            if steps.rates is not None:
                change = steps.rates[t][:, None] * (change - np.einsum("hvk,hk->hv", s, k[t]))
            s += change[:, :, None] * k[t][:, None, :]
            changes[t] = change
            y[t] = np.einsum("hvk,hk->hv", s, q[t])
    return y, (factors, changes)


def _captured(x: _Inputs[Array], updates: tuple[Array, Array], places: Array, capacity: int) -> Array:
    """Return the first updates of each sequence: all factors, then all keys, then all changes."""
    factors, changes = updates
    keys = _heads(x)[1]
    parts = [t.reshape(len(t), -1) for t in (factors, keys, changes)]
    found = [np.zeros((len(places) - 1, capacity, part.shape[1]), np.float32) for part in parts]
    counts = np.zeros(len(places) - 1, np.int64) if x.counts is None else x.counts
    if x.active is not None and not x.active.any():
        counts = np.zeros_like(counts)
    for item, count in enumerate(np.clip(counts, 0, np.minimum(np.diff(places), capacity))):
        for part, target in zip(parts, found, strict=True):
            target[item, :count] = part[places[item] :][:count]
    return np.concatenate([part.reshape(len(part), -1) for part in found], axis=1)


@gated_delta_net.examples
def examples() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  operands of calls
    """By onnxruntime 1.32, which the tests record; the first one by hand."""
    f, rng = np.float32, np.random.default_rng(4)
    row, places = [[[1.0, 2.0]]], np.array([0, 1], np.int32)
    y, state = np.array([[[55, 66]]], f), np.array([[[[15, 20], [18, 24]]]], f)
    hand = row, [[[3.0, 4.0]]], [[[5.0, 6.0]]]
    for kind in (f, np.float16, ml_dtypes.bfloat16):
        one: dict[str, Any] = {"scale": 1.0, "update_rule": "linear", "outputs": 2}
        rows = [np.array(t, kind) for t in hand]
        yield Example(1, *rows, places, **one, expect=[y.astype(kind), state])

    def drawn(*shape: int) -> Array:
        return (0.5 * rng.standard_normal(shape)).astype(f)

    q, k, v, before = drawn(5, 2, 4), drawn(5, 2, 4), drawn(5, 4, 3), drawn(2, 4, 3, 4)
    decay, beta, ends = -np.abs(drawn(5, 4)), np.abs(drawn(5, 4)), np.array([0, 2, 5], np.int32)
    yield Example(1, q, k, v, ends, decay, beta, before, outputs=2)
    yield Example(1, q, k, v, ends, None, beta, None, update_rule="delta", qk_l2_norm=1, outputs=2)
    yield Example(1, q, k, v, ends, -np.abs(drawn(5, 4, 4)), None, before, update_rule="gated", outputs=2)
    packed = np.concatenate([t.reshape(5, -1) for t in (q, k, v)], axis=1)
    yield Example(1, packed, None, None, ends, decay, beta, before, outputs=2)
    apart = [t[:4].reshape(2, 2, *t.shape[1:]) for t in (q, k, v, decay, beta)]
    yield Example(1, *apart[:3], None, *apart[3:], before, outputs=2)
    gates = drawn(4), drawn(4)
    for gate in ("softplus", "kda"):
        active: dict[str, Any] = {"gate_activation": gate, "beta_activation": "sigmoid", "outputs": 2}
        yield Example(1, q, k, v, ends, decay, beta, before, *gates, **active)
    count = np.array([1, 2], np.int32)
    captured: dict[str, Any] = {"state_update_capacity": 2, "outputs": 3}
    yield Example(1, q, k, v, ends, decay, beta, before, None, None, count, **captured)
    yield Example(1, q, k, v, ends, decay, beta, before, None, None, count, [0], **captured)
