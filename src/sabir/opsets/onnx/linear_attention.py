"""LinearAttention: attention by a state that is updated step by step, instead of by all keys and values."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import FLOAT
from sabir.ir import Value
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.recurrence import linear_states, state_gradients
from sabir.opsets.families.recurrence.state_gradients import ints, matrices
from sabir.opsets.typing import Gradient
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
    summary="The product of queries with a state S, step by step: `S = exp(g) S'`, then "
    "`S += k (beta (v - S k))`, then `o = scale S q`; some rules lack g or the correction.",
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
S = Constraint("S", BFLOAT16, tensors("float", "float16"))


v27 = linear_attention.first(
    27,
    inputs=[
        Input("query", T, "(batch, steps, heads * key size).", differentiable=True),
        Input("key", T, "(batch, steps, kv heads * key size).", differentiable=True),
        Input("value", T, "(batch, steps, kv heads * value size).", differentiable=True),
        Input(
            "past_state",
            S,
            "(batch, kv heads, key size, value size); zeros by default.",
            optional=True,
            differentiable=False,
        ),
        Input(
            "decay",
            T,
            "g, (batch, steps, kv heads), or one for each element of a key; for the gated rules.",
            optional=True,
            differentiable=True,
        ),
        Input(
            "beta",
            T,
            "(batch, steps, kv heads), or one for all heads; for the delta rules.",
            optional=True,
            differentiable=True,
        ),
    ],
    outputs=[
        Output("output", T, "(batch, steps, heads * value size).", differentiable=True),
        Output("present_state", S, "The state after the last step.", differentiable=False),
    ],
    attributes=[
        Attribute("chunk_size", "int", "A hint: the number of steps to compute together.", default=64),
        Attribute(
            "kv_num_heads",
            "int",
            "The number of heads of keys and values.",
            required=True,
            values=at_least(1),
        ),
        Attribute(
            "q_num_heads",
            "int",
            "The number of heads of queries, a multiple of that of keys.",
            required=True,
            values=at_least(1),
        ),
        Attribute("scale", "float", "The factor of the output; 0: 1 / sqrt(key size).", default=0.0),
        Attribute(
            "update_rule",
            "string",
            "linear, gated, delta or gated_delta.",
            default="gated_delta",
            values=one_of(*linear_states.RULES),
        ),
    ],
)

v27.infer(linear_states.infer)
v27.evaluate(linear_states.evaluate)
v27.lower(linear_states.lower)
v27.body(linear_states.body)


@v27.gradient
def gradient(  # ruff: ignore[too-many-arguments]  the operator's signature
    g: Gradient, q: Value, k: Value, v: Value, past: Value | None = None, decay: Value | None = None,
    beta: Value | None = None, /, *, scale: float, q_num_heads: int, kv_num_heads: int,
) -> tuple[Value | None, ...]:  # fmt: skip
    """Computed in float, as the operator is."""
    operands = state_gradients.operands(g, (q, k, v, decay, beta), (q_num_heads, kv_num_heads))
    size, width = (g.Div(g.Shape(x, start=2), [kv_num_heads]) for x in (k, v))
    shape = g.Concat(g.Shape(q, start=0, end=1), [kv_num_heads], size, width, axis=0)
    nothing = g.Expand(g.initializer("zero", np.zeros((), np.float32)), shape)
    dy, d_last = (None if d is None else g.Cast(d, to=FLOAT.number) for d in (*g.dys, None)[:2])
    if dy is None:
        steps = g.Concat(g.Shape(q, start=0, end=2), g.Mul(width, [q_num_heads]), axis=0)
        dy = g.Expand(g.initializer("zero", np.zeros((), np.float32)), steps)
    dy = g.Mul(dy, scale) if scale else g.Div(dy, g.Sqrt(g.Cast(size, to=FLOAT.number)))
    dy = matrices(
        g,
        dy,
        ints(g, kv_num_heads),
        ints(g, q_num_heads // kv_num_heads),
        width,
    )
    first = nothing if past is None else g.Cast(past, to=FLOAT.number)
    d_first, found = state_gradients.gradients(g, operands, first, dy, nothing if d_last is None else d_last)

    def flat(name: str, x: Value | None) -> Value | None:
        if x is None:
            return None
        d = g.Reshape(g.Transpose(found[name], perm=[1, 0, 2, 3, 4]), g.sizes(x), allowzero=1)
        return g.Cast(d, to=element_of(x).number)

    d_past = None if past is None else g.Cast(d_first, to=element_of(past).number)
    return (
        flat("query", q), flat("key", k), flat("value", v), d_past, flat("decay", decay), flat("rate", beta)
    )  # fmt: skip


@linear_attention.examples
def by_hand() -> Iterator[Example]:  # ruff: ignore[too-many-locals]  four rules on one set of inputs
    """Keys select one of two elements, queries sum them; g halves, and beta corrects by a half."""
    f = np.float32
    q, k, v = np.ones((1, 3, 2), f), np.array([[[1, 0], [0, 1], [1, 0]]], f), np.array([[[4], [8], [2]]], f)
    g, beta = np.full((1, 3, 1), math.log(0.5), f), np.full((1, 3, 1), 0.5, f)
    found = (
        ("linear", None, None, [4, 12, 14], [6, 8]),
        ("gated", g, None, [4, 10, 7], [3, 4]),
        ("delta", None, beta, [2, 6, 6], [2, 4]),
        ("gated_delta", g, beta, [2, 5, 3.25], [1.25, 2]),
    )
    for rule, decay, rate, read, state in found:
        y, last = np.array(read, f).reshape(1, 3, 1), np.array(state, f).reshape(1, 1, 2, 1)
        inputs = [q, k, v, None, decay, rate]
        yield _example(rule, 1, 1, *inputs, expect=[y, last])
        yield _example(rule, 1, 1, *inputs, scale=0.0, expect=[y / np.sqrt(f(2)), last])
        # the state after the first step is the past state of the other two
        between = np.array([[[[read[0]], [0]]]], f)
        first, later = ([None if x is None else x[:, s] for x in inputs] for s in (slice(1), slice(1, 3)))
        yield _example(rule, 1, 1, *first, expect=[y[:, :1], between])
        yield _example(rule, 1, 1, *later[:3], between, *later[4:], expect=[y[:, 1:], last])
        # two heads, one with values ten times as large; they share beta
        ten, twice = np.array([1, 10], f), [None if x is None else np.tile(x, 2) for x in (q, k, v, decay)]
        twice[2] = v * ten
        both = [y * ten, last * ten[:, None, None]]
        yield _example(rule, 2, 2, *twice[:3], None, twice[3], rate, expect=both)
        for kind in (np.float16, ml_dtypes.bfloat16):
            halves = [None if x is None else x.astype(kind) for x in inputs]
            yield _example(rule, 1, 1, *halves, expect=[y.astype(kind), last.astype(kind)], tolerance=1e-2)
            halves[3] = np.zeros((1, 1, 2, 1), f)
            yield _example(rule, 1, 1, *halves, expect=[y.astype(kind), last], tolerance=1e-2)


@linear_attention.examples
def shapes() -> Iterator[Example]:
    f = np.float32
    k, v = np.array([[[1, 0], [0, 1], [1, 0]]], f), np.array([[[4], [8], [2]]], f)
    state = np.array([[[[6], [8]]]], f)
    # two heads of queries: one sums the state, the other reads its first element
    q = np.tile(np.array([1, 1, 1, 0], f), (1, 3, 1))
    yield _example("linear", 2, 1, q, k, v, expect=[[[[4, 4], [12, 4], [14, 6]]], state])
    # a decay for each element of a key: only the second is halved
    g = np.tile(np.array([0, math.log(0.5)], f), (1, 3, 1))
    ones, halved = np.ones((1, 3, 2), f), np.array([[[[6], [4]]]], f)
    yield _example("gated", 1, 1, ones, k, v, None, g, expect=[[[[4], [12], [10]]], halved])
    yield _example("linear", 1, 1, ones[:, :0], k[:, :0], v[:, :0], state, expect=[v[:, :0], state])
    wide = [[[4, 1, 0]]]
    outer = np.array([[[[0, 0, 0], [4, 1, 0]]]], f)
    yield _example("linear", 1, 1, ones[:, :1], k[:, 1:2], wide, expect=[wide, outer])


def _example(rule: str, queries: int, keys: int, /, *inputs: Any, scale: float = 1.0, **more: Any) -> Example:
    heads: dict[str, Any] = {"q_num_heads": queries, "kv_num_heads": keys}
    return Example(27, *inputs, outputs=2, update_rule=rule, scale=scale, **heads, **more)
