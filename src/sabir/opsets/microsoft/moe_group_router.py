"""MoEGroupRouter: the experts of each token, of the groups of experts that it prefers."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import Builder, Dim, TensorType, Value, product
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.products.products import matmul
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_least_rank, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    tensors,
)

moe_group_router = Operator(
    "MoEGroupRouter",
    domain="com.microsoft",
    summary="The logarithms of the sigmoids of the `top_k` experts with the greatest sigmoid plus bias, of "
    "the `topk_group` groups whose greatest ones have the greatest sums; a sentinel for the other experts.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
TF = Constraint("TF", tensors("float"))

v1 = moe_group_router.first(
    1,
    inputs=[
        Input("logits", T, "(..., experts); with `projection_weight` (tokens, width)."),
        Input("expert_bias", TF, "(experts): added to the sigmoids where experts are chosen."),
        Input(
            "projection_weight",
            T,
            "(experts, width): the logits are the products with it, in float.",
            optional=True,
        ),
    ],
    outputs=[
        Output("router_probs", T, "(tokens, experts).", optional=True),
        Output(
            "selection_scores",
            TF,
            "(tokens, experts): the sigmoids plus bias. It goes with `router_weights`, without "
            "`router_probs`, and for one group.",
            optional=True,
        ),
        Output("router_weights", TF, "(tokens, experts): the sigmoids.", optional=True),
    ],
    attributes=[
        Attribute("router_sentinel", "float", "Of experts that are not chosen.", default=-10000.0),
        Attribute(
            "group_topk",
            "int",
            "How many experts of a group are added up; at most all.",
            default=2,
            values=at_least(1),
        ),
        Attribute("topk_group", "int", "How many groups are chosen.", default=1, values=at_least(1)),
        Attribute("n_group", "int", "The number of groups.", default=1, values=at_least(1)),
        Attribute("top_k", "int", "How many experts are chosen.", required=True, values=at_least(1)),
    ],
)


class _Routing(NamedTuple):
    """The attributes of a call."""

    n_group: int
    topk_group: int
    group_topk: int
    top_k: int
    router_sentinel: float


_LEAST = np.float32(1e-20)  # of a sigmoid before its logarithm


@v1.infer
def infer(
    logits: TensorType,
    bias: TensorType,
    weight: TensorType | None = None,
    /,
    *,
    call: Call,
    n_group: int,
    topk_group: int,
) -> tuple[TensorType, TensorType, TensorType]:
    _check_outputs(call, n_group, projected=weight is not None)
    check_least_rank("logits", logits, 1)
    check_rank("expert_bias", bias, 1)
    if weight is not None:
        check_rank("logits", logits, 2)
        check_shape("projection_weight", weight, None, None if logits.shape is None else logits.shape[1])
    experts = _experts(logits, bias, weight)
    if topk_group > n_group or (isinstance(experts, int) and experts % n_group):
        raise InferenceError(
            f"{experts} experts cannot be {n_group} groups of one size, of which {topk_group} are chosen"
        )
    tokens = product(logits.shape[:-1]) if logits.shape is not None else None
    shape = tokens, experts
    return TensorType(logits.element, shape), TensorType(FLOAT, shape), TensorType(FLOAT, shape)


def _check_outputs(call: Call, groups: int, *, projected: bool) -> None:
    """Raise InferenceError for outputs that exclude or need one another."""
    chosen, scores, weights = (call.wants(n) for n in range(3))
    if scores != weights or scores == chosen:
        raise InferenceError(
            "the outputs must be `router_probs`, or both `selection_scores` and `router_weights`"
        )
    if scores and groups != 1:
        raise InferenceError(f"`selection_scores` are of one group of experts, and `n_group` is {groups}")
    if projected and not scores:
        raise InferenceError("`projection_weight` needs the outputs `selection_scores` and `router_weights`")


def _experts(logits: TensorType, bias: TensorType, weight: TensorType | None) -> Dim:
    """Return the number of experts; raises InferenceError where operands have different ones."""
    experts = None if bias.shape is None else bias.shape[0]
    if weight is not None:
        check_shape("projection_weight", weight, experts, None)
        return experts
    if logits.shape is not None:
        check_shape("logits", logits, *logits.shape[:-1], experts)
        experts = logits.shape[-1] if experts is None else experts
    return experts


@v1.evaluate
def evaluate(
    logits: Array,
    bias: Array,
    weight: Array | None = None,
    /,
    *,
    call: Call,
    **attributes: Any,
) -> tuple[Array | None, Array | None, Array | None]:
    routing = _Routing(**attributes)
    n_group, topk_group = routing.n_group, routing.topk_group
    hold(infer, logits, bias, weight, call=call, n_group=n_group, topk_group=topk_group)
    x = widened(logits)
    x = x.reshape(-1 if x.shape[-1] else math.prod(x.shape[:-1]), x.shape[-1])
    if weight is not None:
        x = matmul(x, widened(weight).T)
    with np.errstate(over="ignore"):
        s = sigmoid(x)
    scores = s + bias
    if call.wants(1):
        return None, scores, s
    size = s.shape[1] // n_group
    groups = scores.reshape(len(s), n_group, size)
    best = -np.sort(-groups, axis=2)[:, :, : min(routing.group_topk, size)].sum(axis=2)
    kept = np.where(_chosen(best, topk_group)[:, :, None], groups, -np.inf).reshape(s.shape)
    chosen = _chosen(kept, min(routing.top_k, topk_group * size))
    y = np.where(chosen, np.log(np.maximum(s, _LEAST)), np.float32(routing.router_sentinel))
    return y.astype(logits.dtype, copy=False), None, None


def _chosen(scores: Array, count: int) -> Array:
    """Return whether a score is one of the `count` greatest of its row; of equal ones the first are."""
    order = np.argsort(-scores, axis=1, kind="stable")
    chosen = np.zeros(scores.shape, bool)
    np.put_along_axis(chosen, order[:, :count], values=True, axis=1)
    return chosen


@v1.body
def body(
    b: Builder,
    logits: Value,
    bias: Value,
    weight: Value | None = None,
    /,
    *,
    call: Call,
    **attributes: Any,
) -> tuple[Value, ...]:
    routing = _Routing(**attributes)
    shape = bias.type.shape if isinstance(bias.type, TensorType) else None
    experts = shape[0] if shape else None
    if not isinstance(experts, int):
        raise Unconvertible("the number of experts is unknown, and groups of them are split by it")
    x = typed(b, logits, FLOAT)
    if weight is None:
        x = b.Reshape(x, b.Concat(_tokens(b, logits), _ints(b, experts), axis=0), allowzero=1)
    else:
        x = b.MatMul(x, b.Transpose(typed(b, weight, FLOAT), perm=[1, 0]))
    s = b.Sigmoid(x)
    scores = b.Add(s, bias)
    if call.wants(1):
        return scores, scores, s  # the first one is left out
    size = experts // routing.n_group
    masked = _of_groups(b, scores, size, routing)
    chosen = _chosen_value(b, masked, min(routing.top_k, routing.topk_group * size), experts)
    y = b.Log(b.Max(s, b.initializer("least", _LEAST)))
    y = b.Where(chosen, y, b.initializer("sentinel", np.float32(routing.router_sentinel)))
    return (halves.rounded(b, y, logits),)


def _of_groups(b: Builder, scores: Value, size: int, routing: _Routing) -> Value:
    """Return the scores of the groups that are chosen, and -inf for the others."""
    sizes = b.Concat(b.Shape(scores, start=0, end=1), _ints(b, routing.n_group, size), axis=0)
    groups = b.Reshape(scores, sizes, allowzero=1)
    best, _ = b.TopK(groups, _ints(b, min(routing.group_topk, size)), outputs=2)
    sums = b.ReduceSum(best, _ints(b, -1), keepdims=0)
    kept = b.Unsqueeze(_chosen_value(b, sums, routing.topk_group, routing.n_group), _ints(b, 2))
    lowest = b.initializer("lowest", np.float32(-np.inf))
    return b.Reshape(b.Where(kept, groups, lowest), b.Shape(scores), allowzero=1)


def _tokens(b: Builder, logits: Value) -> Value:
    return b.ReduceProd(b.Shape(logits, end=-1), _ints(b, 0), keepdims=1)


def _ints(b: Builder, *values: int) -> Value:
    return as_input(b, "sizes", values)


def _chosen_value(b: Builder, scores: Value, count: int, width: int) -> Value:
    _, places = b.TopK(scores, _ints(b, count), outputs=2)
    counts = b.OneHot(
        places, as_input(b, "width", [width]), b.initializer("values", np.array([0, 1], np.float32))
    )
    return b.Greater(b.ReduceSum(counts, _ints(b, 1), keepdims=0), b.initializer("zero", np.float32(0)))


@moe_group_router.examples
def examples() -> Iterator[Example]:
    """By onnxruntime 1.32."""
    f, rng = np.float32, np.random.default_rng(3)
    logits, bias = rng.standard_normal((3, 8)).astype(f), (0.3 * rng.standard_normal(8)).astype(f)
    never = f(-10000)
    first = [[np.log(0.5), np.log(0.5), never, never]]  # by hand: of equal scores the first ones
    yield Example(1, [[0.0] * 4], [0.0] * 4, top_k=2, n_group=2, expect=[np.array(first, f)])
    yield Example(1, logits, bias, top_k=2, n_group=4, topk_group=2)
    yield Example(1, logits[None], bias, top_k=3, n_group=8, topk_group=4, group_topk=5, router_sentinel=-5.0)
    yield Example(1, logits, bias, top_k=5, n_group=4, topk_group=2)
    yield Example(1, logits[:0], bias, top_k=1)
    for kind in (np.float16, ml_dtypes.bfloat16):
        yield Example(1, logits.astype(kind), bias, top_k=2, n_group=2, tolerance=1e-2)
