"""FlexAttention: attention whose scores and probabilities subgraphs modify."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import DOUBLE, FLOAT, ElementType
from sabir.ir import UNDEFINED, Builder, Graph, TensorType, Type, Value, may_be_equal
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions
from sabir.opsets.families.building.inlining import inlined
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array, Subgraph
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

flex_attention = Operator(
    "FlexAttention",
    domain="ai.onnx.preview",
    summary="Sums of values, weighted by the similarity of their keys to each query: in each head "
    "`prob_mod(softmax(score_mod(Q K^T scale))) V`.",
)

T1 = Constraint("T1", FLOATS, BFLOAT16)

v1 = flex_attention.first(
    1,
    inputs=[
        Input("Q", T1, "(batch, heads, queries, size)."),
        Input("K", T1, "(batch, kv heads, keys, size); consecutive heads of Q share one."),
        Input("V", T1, "(batch, kv heads, keys, value size)."),
    ],
    outputs=[Output("Y", T1, "(batch, heads, queries, value size).")],
    attributes=[
        Attribute("prob_mod", "graph", "Modifies the probabilities; the result has the same type and shape."),
        Attribute("score_mod", "graph", "Modifies the scores; the result has the same type and shape."),
        Attribute(
            "softmax_precision",
            "int",
            "The element type of both graphs: by default float, or double for double.",
            values=attentions.PRECISIONS,
        ),
        Attribute("scale", "float", "The factor of the products; 1 / sqrt(size) by default."),
    ],
    status="experimental",
)

RANK = 4


@v1.infer
def infer(
    q: TensorType,
    k: TensorType,
    v: TensorType,
    /,
    *,
    prob_mod: Subgraph[Type | None] | None,
    score_mod: Subgraph[Type | None] | None,
    softmax_precision: int | None,
) -> TensorType:
    wrong = next((t for t in (q, k, v) if t.shape is not None and len(t.shape) != RANK), None)
    if wrong is not None:
        raise InferenceError(f"Q, K and V must have rank {RANK}, and one is {wrong}")
    of_q, of_k, of_v = (t.shape or (None,) * RANK for t in (q, k, v))
    batch = same_dim([of_q[0], of_k[0], of_v[0]], "the batch of Q, K and V")
    heads = same_dim([of_k[1], of_v[1]], "the heads of K and V")
    keys = same_dim([of_k[2], of_v[2]], "the lengths of K and V")
    same_dim([of_q[3], of_k[3]], "the sizes of queries and keys")
    if isinstance(of_q[1], int) and isinstance(heads, int) and (not heads or of_q[1] % heads):
        raise InferenceError(f"{of_q[1]} heads of Q are not a multiple of {heads} heads of K")
    element = next((t.element for t in (q, k, v) if t.element.number), UNDEFINED)
    scores = TensorType(_precision(softmax_precision, element), (batch, of_q[1], of_q[2], keys))
    for name, body in (("score_mod", score_mod), ("prob_mod", prob_mod)):
        if body is not None:
            _check(name, body(scores), scores)
    return TensorType(element, (batch, of_q[1], of_q[2], of_v[3]))


def _precision(number: int | None, element: ElementType) -> ElementType:
    """Return the type of the scores; unknown if that of the inputs is."""
    selected = attentions.softmax_precision(number)
    if selected is not None or not element.number:
        return selected or UNDEFINED
    return DOUBLE if element is DOUBLE else FLOAT


def _check(name: str, results: tuple[Type | None, ...], scores: TensorType) -> None:
    """Raise InferenceError for a graph whose result is known to have another type than its input."""
    (kind,) = results if len(results) == 1 else (None,)
    if len(results) != 1 or (kind is not None and not isinstance(kind, TensorType)):
        raise InferenceError(f"`{name}` must return one tensor of the type {scores}")
    if kind is None:
        return
    differs = kind.element.number and scores.element.number and kind.element is not scores.element
    dims = (
        [] if kind.shape is None or scores.shape is None else [*zip(kind.shape, scores.shape, strict=False)]
    )
    if differs or (dims and len(kind.shape or ()) != RANK) or any(not may_be_equal(a, c) for a, c in dims):
        raise InferenceError(f"`{name}` returns {kind}, and its input is {scores}")


@v1.evaluate
def evaluate(
    q: Array,
    k: Array,
    v: Array,
    /,
    *,
    prob_mod: Subgraph[Array] | None,
    score_mod: Subgraph[Array] | None,
    softmax_precision: int | None,
    scale: float | None,
) -> Array:
    attentions.check(q.shape, k.shape, v.shape)
    wide = np.result_type(widened(q).dtype, np.float32)
    kind = attentions.softmax_precision(softmax_precision)
    precision = np.dtype(wide if kind is None else kind.dtype)
    factor = wide.type(attentions.default_scale(q.shape[3]) if scale is None else scale)
    x = attentions.scores(np.multiply(q, factor, dtype=wide), k.astype(wide, copy=False))
    x = _changed("score_mod", score_mod, x.astype(precision, copy=False))
    x = attentions.softmax(np.array(widened(x))).astype(
        precision, copy=False
    )  # a copy: a graph may keep its result
    x = widened(_changed("prob_mod", prob_mod, x))
    return attentions.weighted(x, v.astype(x.dtype)).astype(q.dtype)


def _changed(name: str, body: Subgraph[Array] | None, x: Array) -> Array:
    if body is None:
        return x
    (y,) = body(x)
    if y.shape != x.shape or y.dtype != x.dtype:
        raise EvaluationError(
            f"`{name}` returns {y.dtype}{list(y.shape)}, and its input is {x.dtype}{list(x.shape)}"
        )
    return y


@v1.body
def body(
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    /,
    *,
    prob_mod: Graph | None,
    score_mod: Graph | None,
    softmax_precision: int | None,
    scale: float | None,
) -> Value:
    kind = element_of(q)
    precision = _precision(softmax_precision, kind)
    x = graphs.scores(b, graphs.scaled(b, q, scale, kind), k)
    x = b.Cast(x, to=precision.number)
    if score_mod is not None:
        (x,) = inlined(b, score_mod, [x])
    x = b.Softmax(x, axis=-1)
    if prob_mod is not None:
        (x,) = inlined(b, prob_mod, [x])
    y = graphs.weighted(b, x, b.Cast(v, to=precision.number), q)
    return b.Cast(y, to=kind.number)


TURNS = "mod ({kind}[b,h,q,k] s) => ({kind}[b,h,q,k] t) {{ t = Neg (s) }}"
SWAPS = """mod ({kind}[b,h,q,k] p) => ({kind}[b,h,q,k] t) {{
    number = Constant <value = float {{1}}> ()  one = CastLike (number, p)  t = Sub (one, p)
}}"""
v1.absent("gradient", "its body has one; `inline(model, operators=True)` writes it")


@flex_attention.examples
def examples() -> Iterator[Example]:
    """By hand: scores 0 and log 3 give the weights 1/4 and 3/4; both graphs exchange the two."""
    f, three = np.float32, np.log(3)
    q, k = np.array([[[[three]], [[-three]]]], f), np.array([[[[0], [1]]]], f)  # two heads of Q, one of K
    v = np.array([[[[4, 8], [0, -4]]]], f)
    y = np.array([[[[1, -1]], [[3, 5]]]], f)
    turns, swaps = (text.format(kind="float") for text in (TURNS, SWAPS))
    yield Example(1, q, k, v, expect=[y])
    yield Example(1, q, k, v, score_mod=turns, expect=[y[:, ::-1]])
    yield Example(1, q, k, v, prob_mod=swaps, expect=[y[:, ::-1]])
    yield Example(1, q, k, v, score_mod=turns, prob_mod=swaps, expect=[y])
    yield Example(1, q / 2, k, v, scale=2.0, expect=[y])
    doubles = [x.astype(np.float64) for x in (q, k, v, y)]
    yield Example(1, *doubles[:3], score_mod=TURNS.format(kind="double"), expect=[doubles[3][:, ::-1]])
    precise = TURNS.format(kind="double")
    yield Example(1, q, k, v, score_mod=precise, softmax_precision=11, expect=[y[:, ::-1]])
    for kind, number, name in ((np.float16, 10, "float16"), (ml_dtypes.bfloat16, 16, "bfloat16")):
        halves, expected = [x.astype(kind) for x in (q, k, v)], [y[:, ::-1].astype(kind)]
        yield Example(1, *halves, score_mod=turns, tolerance=2e-2, expect=expected)
        coarse = SWAPS.format(kind=name)
        yield Example(1, *halves, prob_mod=coarse, softmax_precision=number, tolerance=2e-2, expect=expected)
    yield Example(1, q[:0], k[:0], v[:0], expect=[y[:0]])
