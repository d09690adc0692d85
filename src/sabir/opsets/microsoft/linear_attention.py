"""LinearAttention: attention by a state that is updated step by step, instead of by all keys and values."""

from collections.abc import Iterator
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import UnsupportedError
from sabir.ir import Builder, TensorType, Value, mul
from sabir.loops import Expression
from sabir.opsets.families.recurrence import linear_states
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    at_least,
    one_of,
    tensors,
)

linear_attention = Operator(
    "LinearAttention",
    domain="com.microsoft",
    summary="The product of queries with a state S, step by step, as the standard's operator; "
    "there may be more heads of keys than of queries.",
    body_opset=18,
    lacks=("`state_window` above 0: onnxruntime's CPU provider refuses it too.",),
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
S = Constraint("S", BFLOAT16, tensors("float", "float16"))

v1 = linear_attention.first(
    1,
    inputs=[
        Input("query", T, "[batch, steps, q heads * key size].", differentiable=True),
        Input("key", T, "[batch, steps, kv heads * key size].", differentiable=True),
        Input("value", T, "[batch, steps, kv heads * value size].", differentiable=True),
        Input(
            "past_state", S, "[batch, kv heads, key size, value size]; zeros by default.", optional=True,
            differentiable=True,
        ),
        Input(
            "decay", T, "[batch, steps, kv heads], or one for each element of a key; for the gated rules.",
            optional=True, differentiable=True,
        ),
        Input(
            "beta", T, "[batch, steps, kv heads], or one for all heads; for the delta rules.", optional=True,
            differentiable=True,
        ),
    ],
    outputs=[
        Output(
            "output", T, "[batch, steps, heads * value size], for all heads of queries or of keys.",
            differentiable=True,
        ),
        Output("present_state", S, "The state after the last step.", differentiable=True),
    ],
    attributes=[
        Attribute("chunk_size", "int", "A hint, which changes nothing.", default=64),
        Attribute("kv_num_heads", "int", "The heads of keys.", required=True, values=at_least(1)),
        Attribute("q_num_heads", "int", "The heads of queries.", required=True, values=at_least(1)),
        Attribute("scale", "float", "The factor of the output; 0: 1 / sqrt(key size).", default=0.0),
        Attribute("state_window", "int", "The number of states.", default=0, values=one_of(*range(9))),
        Attribute(
            "update_rule", "string", "linear, gated, delta or gated_delta.", default="gated_delta",
            values=one_of(*linear_states.RULES),
        ),
    ],
)  # fmt: skip

X = TypeVar("X")
_DECAY, _BETA = 1, 2  # of the inputs after `value`


def _used(optional: tuple[X | None, ...], rule: str, window: int) -> list[X | None]:
    """Return the inputs that a rule reads; raises UnsupportedError for several states."""
    if window:
        raise UnsupportedError("LinearAttention has one state, and no state_window")
    inputs = [*optional, *(None,) * (3 - len(optional))]
    reads = linear_states.RULES[rule]
    inputs[_DECAY] = inputs[_DECAY] if reads.decays else None
    inputs[_BETA] = inputs[_BETA] if reads.corrects else None
    return inputs


def _repeats(queries: int, keys: int) -> int:
    """Return how many heads of keys read one head of queries, where there are more of keys."""
    return keys // queries if keys > queries and keys % queries == 0 else 1


@v1.infer
def infer(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    /,
    *optional: TensorType | None,
    update_rule: str,
    q_num_heads: int,
    kv_num_heads: int,
    state_window: int,
) -> tuple[TensorType, TensorType]:
    repeats = _repeats(q_num_heads, kv_num_heads)
    if repeats > 1 and q.shape:
        q = q.with_shape(*q.shape[:-1], mul(q.shape[-1], repeats))
    used = _used(optional, update_rule, state_window)
    heads = {"q_num_heads": q_num_heads * repeats, "kv_num_heads": kv_num_heads}
    return linear_states.infer(q, k, v, *used, update_rule=update_rule, **heads)


@v1.evaluate
def evaluate(
    q: Array,
    k: Array,
    v: Array,
    /,
    *optional: Array | None,
    q_num_heads: int,
    kv_num_heads: int,
    state_window: int,
    update_rule: str,
    scale: float,
    **_: int,
) -> tuple[Array, Array]:
    repeats = _repeats(q_num_heads, kv_num_heads)
    if repeats > 1 and q.ndim > 1 and q.shape[-1] % q_num_heads == 0:
        heads = q.reshape(*q.shape[:-1], q_num_heads, q.shape[-1] // q_num_heads)
        q = np.repeat(heads, repeats, axis=-2).reshape(*q.shape[:-1], q.shape[-1] * repeats)
    return linear_states.evaluate(
        q,
        k,
        v,
        *_used(optional, update_rule, state_window),
        update_rule=update_rule,
        scale=scale,
        q_num_heads=q_num_heads * repeats,
        kv_num_heads=kv_num_heads,
        chunk_size=0,
    )


@v1.lower
def lower(
    q: Expression,
    k: Expression,
    v: Expression,
    /,
    *optional: Expression | None,
    q_num_heads: int,
    kv_num_heads: int,
    state_window: int,
    update_rule: str,
    scale: float,
) -> tuple[Expression, Expression]:
    used = _used(optional, update_rule, state_window)
    repeats = _repeats(q_num_heads, kv_num_heads)
    if repeats > 1:
        size, width = loops.divided(q.shape[2], q_num_heads), mul(q.shape[2], repeats)
        if size is None or width is None:
            raise loops.NotLowered("the size of a head is known at run time only")
        heads = loops.reshape(q, (*q.shape[:2], q_num_heads, 1, size))
        every = loops.expand(heads, (*q.shape[:2], q_num_heads, repeats, size))
        q = loops.reshape(every, (*q.shape[:2], width))
    heads_of = {"q_num_heads": q_num_heads * repeats, "kv_num_heads": kv_num_heads}
    return linear_states.lower(q, k, v, *used, scale=scale, **heads_of)


@v1.body
def body(
    b: Builder,
    query: Value,
    key: Value,
    value: Value,
    /,
    *optional: Value | None,
    q_num_heads: int,
    kv_num_heads: int,
    state_window: int,
    update_rule: str,
    scale: float,
) -> tuple[Value, Value]:
    used = _used(optional, update_rule, state_window)
    repeats = _repeats(q_num_heads, kv_num_heads)
    if repeats > 1:
        count, rows = as_input(b, "heads", [q_num_heads]), b.Shape(query, start=0, end=2)
        size = b.Div(b.Shape(query, start=2), count)
        heads = b.Reshape(query, b.Concat(rows, count, as_input(b, "one", [1]), size, axis=0), allowzero=1)
        every = b.Expand(heads, as_input(b, "repeats", [1, 1, 1, repeats, 1]))
        width = b.Mul(b.Shape(query, start=2), as_input(b, "repeats", [repeats]))
        query = b.Reshape(every, b.Concat(rows, width, axis=0), allowzero=1)
    heads_of = {"q_num_heads": q_num_heads * repeats, "kv_num_heads": kv_num_heads}
    return linear_states.body(b, query, key, value, *used, update_rule=update_rule, scale=scale, **heads_of)


@linear_attention.examples
def examples() -> Iterator[Example]:
    """By onnxruntime, which computes floats; the standard's room has examples by hand."""
    f, rng = np.float32, np.random.default_rng(4)

    def drawn(*shape: int) -> Array:
        return (0.5 * rng.standard_normal(shape)).astype(f)

    q, k, v, past = drawn(2, 3, 8), drawn(2, 3, 8), drawn(2, 3, 6), drawn(2, 2, 4, 3)
    decay, beta = -np.abs(drawn(2, 3, 2)), np.abs(drawn(2, 3, 2))
    two: dict[str, Any] = {"q_num_heads": 2, "kv_num_heads": 2, "outputs": 2}
    yield Example(1, q, k, v, update_rule="linear", **two)
    yield Example(1, q, k, v, past, decay, update_rule="gated", **two)
    yield Example(1, q, k, v, None, None, beta, update_rule="delta", **two)
    yield Example(1, q, k, v, past, decay, beta, scale=0.3, **two)
    yield Example(1, q, k, v, past, decay, beta, update_rule="linear", **two)  # the gates are not read
    yield Example(1, q, k, v, past, -np.abs(drawn(2, 3, 8)), beta[:, :, :1], chunk_size=2, **two)
    yield Example(1, drawn(2, 3, 16), k, v, past, decay, beta, q_num_heads=4, kv_num_heads=2, outputs=2)
    yield Example(1, drawn(2, 3, 4), k, v, past, decay, beta, q_num_heads=1, kv_num_heads=2, outputs=2)
    wide = drawn(1, 3, 16), drawn(1, 3, 8), None, -np.abs(drawn(1, 3, 4)), np.abs(drawn(1, 3, 4))
    yield Example(1, q[:1], *wide, q_num_heads=2, kv_num_heads=4, outputs=2)
    # by hand: one step adds the outer product of the key and the value
    for kind in (f, np.float16, ml_dtypes.bfloat16):
        rows = [np.array(t, kind).reshape(1, 1, 2) for t in ([1, 2], [3, 4], [5, 6])]
        y, state = np.array([[[55, 66]]], kind), np.array([[[[15, 18], [20, 24]]]], kind)
        one: dict[str, Any] = {"q_num_heads": 1, "kv_num_heads": 1, "scale": 1.0, "update_rule": "linear"}
        yield Example(1, *rows, **one, outputs=2, expect=[y, state])
