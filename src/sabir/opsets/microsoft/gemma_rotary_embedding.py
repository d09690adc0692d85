"""GemmaRotaryEmbedding: queries and keys of Gemma, rotated by angles whose sines are computed here."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import FLOAT16
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.shapes.ranks import check_alike, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

gemma_rotary_embedding = Operator(
    "GemmaRotaryEmbedding",
    domain="com.microsoft",
    summary="`q cos(emb) + q_rot sin(emb)`, and the same of `k` and `k_rot`.",
    body_opset=18,
)

T = Constraint("T", tensors("float16"))
U = Constraint("U", tensors("float"))

v1 = gemma_rotary_embedding.first(
    1,
    inputs=[
        Input("emb", U, "(batch, sequence, size): the angle of each element."),
        Input("q", T, "(batch, heads, sequence, size): queries."),
        Input("q_rot", T, "The queries with the halves of each head exchanged, one of them negative."),
        Input("k", T, "(batch, heads, sequence, size): keys."),
        Input("k_rot", T, "The keys with the halves of each head exchanged, one of them negative."),
    ],
    outputs=[
        Output("output1", T, "The shape of `q`."),
        Output("output2", T, "The shape of `k`."),
    ],
)


@v1.infer
def infer(
    emb: TensorType, q: TensorType, q_rot: TensorType, k: TensorType, k_rot: TensorType, /
) -> tuple[TensorType, TensorType]:
    check_rank("emb", emb, 3)
    batch, steps, size = emb.shape or (None,) * 3
    for name, x in (("q", q), ("q_rot", q_rot), ("k", k), ("k_rot", k_rot)):
        check_shape(name, x, batch, None, steps, size)
    check_alike(["q", "q_rot"], [q, q_rot])
    check_alike(["k", "k_rot"], [k, k_rot])
    return TensorType(q.element, q.shape), TensorType(k.element, k.shape)


@v1.evaluate
def evaluate(emb: Array, q: Array, q_rot: Array, k: Array, k_rot: Array, /) -> tuple[Array, Array]:
    """The cosines and sines are rounded to float16, as the operator's text has it."""
    hold(infer, emb, q, q_rot, k, k_rot)
    cos, sin = (f(emb)[:, None].astype(np.float16).astype(np.float32) for f in (np.cos, np.sin))
    first, second = (
        (x.astype(np.float32) * cos + turned.astype(np.float32) * sin).astype(np.float16)
        for x, turned in ((q, q_rot), (k, k_rot))
    )
    return first, second


@v1.lower
def lower(
    emb: Expression, q: Expression, q_rot: Expression, k: Expression, k_rot: Expression, /
) -> tuple[Expression, Expression]:
    angles = loops.reshape(emb, (emb.shape[0], 1, *emb.shape[1:]))
    cos, sin = (loops.cast(loops.cast(loops.apply(f, angles), "float16"), "float") for f in ("cos", "sin"))

    def rotated(x: Expression, turned: Expression) -> Expression:
        first = loops.apply("mul", loops.cast(x, "float"), cos)
        return loops.cast(
            loops.apply("add", first, loops.apply("mul", loops.cast(turned, "float"), sin)), "float16"
        )

    return rotated(q, q_rot), rotated(k, k_rot)


@v1.body
def body(b: Builder, emb: Value, q: Value, q_rot: Value, k: Value, k_rot: Value, /) -> tuple[Value, Value]:
    single, half = 1, FLOAT16.number
    angles = b.Unsqueeze(emb, ints(b, 1))
    cos, sin = (b.Cast(b.Cast(b.op(f, angles), to=half), to=single) for f in ("Cos", "Sin"))
    first, second = (
        b.Cast(b.Add(b.Mul(b.Cast(x, to=single), cos), b.Mul(b.Cast(turned, to=single), sin)), to=half)
        for x, turned in ((q, q_rot), (k, k_rot))
    )
    return first, second


@gemma_rotary_embedding.examples
def examples() -> Iterator[Example]:
    """Angles of 0 and a quarter of a turn, by hand; of others, by the function in the operator's text."""
    half = np.float16
    emb = np.array([[[0, np.pi / 2], [np.pi / 2, 0]]], np.float32)
    q, turned = np.array([[[[1, 2], [3, 4]]]], half), np.array([[[[5, 6], [7, 8]]]], half)
    k = np.concatenate([q, -q], axis=1)
    k_turned = np.concatenate([turned, turned], axis=1)
    keys = np.array([[[[1, 6], [7, 4]], [[-1, 6], [7, -4]]]], half)
    yield Example(1, emb, q, turned, k, k_turned, outputs=2, tolerance=1e-3, expect=[keys[:, :1], keys])
    empty = np.zeros((1, 2, 0, 2), half)
    yield Example(1, emb[:, :0], *[empty] * 4, outputs=2, expect=[empty, empty])
