"""Attention by a state that is updated step by step, instead of by all keys and values."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import exact_quotient, may_be_equal, mul
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.recurrence import state_kernels
from sabir.opsets.families.recurrence.state_gradients import ints, matrices
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.families.shapes.sizes import spend_operations

if TYPE_CHECKING:
    from sabir.ir import Builder, Dim, Graph, TensorType, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array


class UpdateRule(NamedTuple):
    """What a step does besides adding the product of a key and a value."""

    decays: bool
    corrects: bool


RULES = {
    "linear": UpdateRule(decays=False, corrects=False),
    "gated": UpdateRule(decays=True, corrects=False),
    "delta": UpdateRule(decays=False, corrects=True),
    "gated_delta": UpdateRule(decays=True, corrects=True),
}

RANK = 3  # of all but the states


def infer(
    q: TensorType, k: TensorType, v: TensorType, past: TensorType | None = None,
    decay: TensorType | None = None, beta: TensorType | None = None, /, *,
    update_rule: str, q_num_heads: int, kv_num_heads: int,
) -> tuple[TensorType, TensorType]:  # fmt: skip
    """Infer the output and the last state; raises InferenceError for inputs that do not fit."""
    _check(update_rule, decay, beta, (q_num_heads, kv_num_heads))
    known = [t for t in (q, k, v, decay, beta) if t is not None and t.shape is not None]
    wrong = next((t for t in known if len(t.shape or ()) != RANK), None)
    if wrong is not None:
        raise InferenceError(f"inputs must have rank {RANK}, and one is {wrong}")
    batch = same_dim([t.shape[0] for t in known if t.shape], "the batch of the inputs")
    steps = same_dim([t.shape[1] for t in known if t.shape], "the steps of the inputs")
    key_size = same_dim([_each(q, q_num_heads), _each(k, kv_num_heads)], "the sizes of queries and keys")
    value_size = _each(v, kv_num_heads)
    _check_gates(decay, beta, key_size, kv_num_heads)
    heads: Dim = kv_num_heads
    if past is not None and past.shape is not None:
        if len(past.shape) != RANK + 1:
            raise InferenceError(f"`past_state` must have rank {RANK + 1}, and is {past}")
        found = zip((batch, heads, key_size, value_size), past.shape, strict=True)
        batch, heads, key_size, value_size = (same_dim(pair, "the state and the inputs") for pair in found)
    state = (q if past is None else past).with_shape(batch, heads, key_size, value_size)
    return q.with_shape(batch, steps, mul(value_size, q_num_heads)), state


def _check_gates(decay: TensorType | None, beta: TensorType | None, key_size: Dim, heads: int) -> None:
    """Raise InferenceError unless decay is per head or key element, and beta per head or one for all."""
    for name, gate, widths in (("decay", decay, (heads, mul(key_size, heads))), ("beta", beta, (heads, 1))):
        if gate is not None and gate.shape and all(not may_be_equal(gate.shape[-1], w) for w in widths):
            allowed = " or ".join(map(str, widths))
            raise InferenceError(f"the last dimension of `{name}` must be {allowed}, and is {gate.shape[-1]}")


def _each(t: TensorType, heads: int) -> Dim:
    width = t.shape[2] if t.shape else None
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"a dimension of {width} cannot be split into {heads} heads")
    return exact_quotient(width, heads)


def _check(update_rule: str, decay: object, beta: object, heads: tuple[int, int]) -> UpdateRule:
    """Return a rule by its name; raises InferenceError if it requires other inputs."""
    rule = RULES[update_rule]
    for name, needed, operand in (("decay", rule.decays, decay), ("beta", rule.corrects, beta)):
        if needed != (operand is not None):
            raise InferenceError(
                f"the rule {update_rule!r} {'needs' if needed else 'does not take'} `{name}`"
            )
    if heads[0] % heads[1]:
        raise InferenceError(f"{heads[0]} heads of queries are not a multiple of {heads[1]} heads of keys")
    return rule


def evaluate(  # ruff: ignore[too-many-arguments]  the operator's signature
    q: Array,
    k: Array,
    v: Array,
    past: Array | None = None,
    decay: Array | None = None,
    beta: Array | None = None,
    /,
    *,
    update_rule: str,
    scale: float,
    q_num_heads: int,
    kv_num_heads: int,
    chunk_size: int,
) -> tuple[Array, Array]:
    """Compute in float32; the state is (batch, kv heads, key size, value size)."""
    hold(
        infer, q, k, v, past, decay, beta,
        update_rule=update_rule, q_num_heads=q_num_heads, kv_num_heads=kv_num_heads,
    )  # fmt: skip
    batch, steps, width = q.shape
    size, group = width // q_num_heads, q_num_heads // kv_num_heads
    queries = _over_time(q, kv_num_heads, group, size)
    keys, values = (
        _over_time(k, kv_num_heads, 1, size),
        _over_time(v, kv_num_heads, 1, v.shape[2] // kv_num_heads),
    )
    gates = (
        None if decay is None else np.exp(_over_time(decay, kv_num_heads, decay.shape[2] // kv_num_heads, 1))
    )
    rates = None if beta is None else _over_time(beta, beta.shape[2], 1, 1)
    shape = (batch, kv_num_heads, size, values.shape[-1])
    state = np.zeros(shape, np.float32) if past is None else past.astype(np.float32)
    if state.shape != shape:
        raise ValueError(f"`past_state` must have the shape {list(shape)}, and has {list(state.shape)}")
    y = np.empty((steps, batch, kv_num_heads, group, shape[-1]), np.float32)
    spend_operations(8 * steps, state.nbytes * steps)
    for t in range(steps):
        if gates is not None:
            state *= gates[t]
        new = values[t]
        if rates is not None:
            new = (new - keys[t] @ state) * rates[t]
        state += keys[t].swapaxes(2, 3) * new
        np.matmul(queries[t], state, out=y[t])
    y *= np.float32(scale or 1 / math.sqrt(size))
    joined = y.transpose(1, 0, 2, 3, 4).reshape(batch, steps, q_num_heads * shape[-1])
    return joined.astype(q.dtype, copy=False), state.astype((q if past is None else past).dtype, copy=False)


def lower(
    q: Expression, k: Expression, v: Expression, past: Expression | None = None,
    decay: Expression | None = None, beta: Expression | None = None, /, *,
    scale: float, q_num_heads: int, kv_num_heads: int,
) -> tuple[Expression, Expression]:  # fmt: skip
    """Return the output and the last state as tensor expressions."""
    return state_kernels.attended((q, k, v), past, decay, beta, (q_num_heads, kv_num_heads), scale)


def _over_time(x: Array, heads: int, rows: int, columns: int) -> Array:
    """Return (batch, steps, width) as float32 matrices (steps, batch, heads, rows, columns)."""
    parts = x.astype(np.float32).reshape(*x.shape[:2], heads, rows, columns)
    return np.ascontiguousarray(parts.swapaxes(0, 1))


def body(  # ruff: ignore[too-many-arguments]  the operator's signature
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    past: Value | None = None,
    decay: Value | None = None,
    beta: Value | None = None,
    /,
    *,
    update_rule: str,
    scale: float,
    q_num_heads: int,
    kv_num_heads: int,
) -> tuple[Value, Value]:
    """Build a scan over the steps; the heads of one group of queries are rows of a matrix."""
    rule = _check(update_rule, decay, beta, (q_num_heads, kv_num_heads))
    group = ints(b, q_num_heads // kv_num_heads)
    heads, one = ints(b, kv_num_heads), ints(b, 1)
    size, width = (b.Div(b.Shape(x, start=2), heads) for x in (k, v))
    if past is None:
        state = b.ConstantOfShape(b.Concat(b.Shape(q, start=0, end=1), heads, size, width, axis=0))
    else:
        state = b.Cast(past, to=FLOAT.number)
    scanned = [
        matrices(b, q, heads, group, size),
        matrices(b, k, heads, one, size),
        matrices(b, v, heads, one, width),
    ]
    if decay is not None:
        scanned.append(matrices(b, decay, heads, b.Div(b.Shape(decay, start=2), heads), one))
    if beta is not None:
        scanned.append(matrices(b, beta, b.Shape(beta, start=2), one, one))
    state, y = b.Scan(state, *scanned, outputs=2, num_scan_inputs=len(scanned), body=_step(b, rule))
    if scale:
        y = b.Mul(y, b.initializer("scale", np.float32(scale)))
    else:
        y = b.Div(y, b.Sqrt(b.Cast(size, to=FLOAT.number)))
    shape = b.Concat(b.Shape(q, start=0, end=2), b.Mul(width, ints(b, q_num_heads)), axis=0)
    y = b.Reshape(b.Transpose(y, perm=[1, 0, 2, 3, 4]), shape)
    kinds = element_of(q), element_of(q if past is None else past)
    return b.Cast(y, to=kinds[0].number), b.Cast(state, to=kinds[1].number)


def _step(b: Builder, rule: UpdateRule) -> Graph:
    """Return the graph of one step: from a state and matrices to the next state and the output."""

    def build(inner: Builder) -> None:
        shape = (None,) * 4
        state, query, key, new = (inner.input(n, FLOAT, shape) for n in ("state", "query", "key", "value"))
        if rule.decays:
            state = inner.Mul(state, inner.Exp(inner.input("decay", FLOAT, shape)))
        if rule.corrects:
            rate = inner.input("beta", FLOAT, shape)
            new = inner.Mul(inner.Sub(new, inner.MatMul(key, state)), rate)
        after = inner.Add(state, inner.Mul(inner.Transpose(key, perm=[0, 1, 3, 2]), new))
        inner.output(after, "after", FLOAT, shape)
        inner.output(inner.MatMul(query, after), "read", FLOAT, shape)

    return b.subgraph(build, name="step")
