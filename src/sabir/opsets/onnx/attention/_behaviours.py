"""Inference, evaluation, body and adapters of Attention."""

from itertools import starmap
from typing import Any, NamedTuple

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import BOOL as TRUTH
from sabir.ir import Builder, Dim, Shape, TensorType, Value, add, exact_quotient, mul
from sabir.loops import Expression, Lowering, Size
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attention_kernels, attentions
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.onnx.attention._history import APART, HEADS_ONCE, PACKED, PADDED_MASKS, v23, v24, v25
from sabir.opsets.typing import Array
from sabir.schema import Call, Unconvertible

# the numbers of the outputs
_PRESENT_KEY, _PRESENT_VALUE = 1, 2


class _Attributes(NamedTuple):
    """The attributes of a call; versions before 25 have no window."""

    qk_matmul_output_mode: int
    softcap: float
    softmax_precision: int | None
    kv_num_heads: int | None
    q_num_heads: int | None
    scale: float | None
    is_causal: int
    right_window_size: int = -1
    left_window_size: int = -1

    @property
    def heads(self) -> tuple[int, int, int]:
        """The numbers of heads of Q, K and V of rank 3; 0 where the attribute is absent."""
        kv = self.kv_num_heads or 0
        return self.q_num_heads or 0, kv, kv

    @property
    def window(self) -> tuple[int, int]:
        """How many keys a query attends to before and after its position; -1: all."""
        return self.left_window_size, 0 if self.is_causal else self.right_window_size


@v23.infer
def infer(  # ruff: ignore[too-many-arguments]  the operator's signature
    q: TensorType,
    k: TensorType,
    v: TensorType,
    mask: TensorType | None = None,
    past_key: TensorType | None = None,
    past_value: TensorType | None = None,
    filled: TensorType | None = None,
    /,
    *,
    q_num_heads: int | None,
    kv_num_heads: int | None,
    call: Call,
) -> tuple[TensorType, ...]:
    _check(past_key, past_value, filled, call)
    unknown = tuple(TensorType(t.element) for t in (q, k, v, q))
    ranks = {len(t.shape) for t in (q, k, v) if t.shape is not None}
    if not ranks:
        return unknown
    if len(ranks) > 1 or not ranks <= {PACKED, APART}:
        raise InferenceError(f"Q, K and V must all have rank 3 or all rank 4; they are {q}, {k}, {v}")
    packed = ranks == {PACKED}
    if packed and (not q_num_heads or not kv_num_heads or min(q_num_heads, kv_num_heads) < 1):
        raise InferenceError("inputs of rank 3 need `q_num_heads` and `kv_num_heads`, of 1 or more")
    if not packed and call.opset >= HEADS_ONCE and (q_num_heads or kv_num_heads):
        raise InferenceError(
            "inputs of rank 4 have an axis of heads; `q_num_heads` and `kv_num_heads` are for rank 3"
        )
    heads = (q_num_heads, kv_num_heads) if packed else (None, None)
    of_q, of_k, of_v = (_apart(t.shape, n) for t, n in ((q, heads[0]), (k, heads[1]), (v, heads[1])))
    batch = same_dim([of_q[0], of_k[0], of_v[0]], "the batch of Q, K and V")
    kv = same_dim([of_k[1], of_v[1]], "the heads of K and V")
    new = same_dim([of_k[2], of_v[2]], "the lengths of K and V")
    size = same_dim([of_q[3], of_k[3]], "the sizes of queries and keys")
    if isinstance(of_q[1], int) and isinstance(kv, int) and (not kv or of_q[1] % kv):
        raise InferenceError(f"{of_q[1]} heads of Q are not a multiple of {kv} heads of K")
    past = _past(past_key, past_value, (batch, kv, None, size), (batch, kv, None, of_v[3]))
    total = add(past, new)
    _check_mask(mask, (batch, of_q[1], of_q[2], total), call.opset)
    if filled is not None:
        check_shape("nonpad_kv_seqlen", filled, batch)
    y = (batch, of_q[2], mul(of_q[1], of_v[3])) if packed else (batch, of_q[1], of_q[2], of_v[3])
    return (
        q.with_shape(*y),
        k.with_shape(batch, kv, total, size),
        v.with_shape(batch, kv, total, of_v[3]),
        q.with_shape(batch, of_q[1], of_q[2], total),
    )


def _check(past_key: object, past_value: object, filled: object, call: Call | Lowering) -> None:
    """Raise InferenceError for inputs or outputs that exclude or require one another."""
    if (past_key is None) != (past_value is None):
        raise InferenceError("`past_key` and `past_value` must be present or absent together")
    if call.wants(_PRESENT_KEY) != call.wants(_PRESENT_VALUE):
        raise InferenceError("`present_key` and `present_value` must be present or absent together")
    if filled is not None and past_key is not None:
        raise InferenceError(
            "`nonpad_kv_seqlen` is for an external cache, and `past_key` for an internal one"
        )


def _apart(shape: Shape | None, heads: int | None) -> Shape:
    """Return (batch, heads, length, size), split from rank 3 if the number of heads is specified."""
    if shape is None:
        return None, heads, None, None
    if heads is None:
        return shape
    batch, length, width = shape
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"a dimension of {width} cannot be split into {heads} heads")
    return batch, heads, length, exact_quotient(width, heads)


def _check_mask(mask: TensorType | None, scores: Shape, opset: int) -> None:
    """Raise InferenceError if a mask does not broadcast to the scores.

    From opset 24 on a mask may end before the keys do, and excludes the others.
    """
    if mask is None or mask.shape is None or not mask.shape:
        return
    keys, total = mask.shape[-1], scores[-1]
    shorter = opset >= PADDED_MASKS and isinstance(keys, int) and isinstance(total, int) and keys < total
    check_broadcast("attn_mask", mask, (*scores[:-1], keys if shorter else total))


def _past(key: TensorType | None, value: TensorType | None, keys: Shape, values: Shape) -> Dim:
    if key is None or value is None:
        return 0
    check_shape("past_key", key, *keys)
    check_shape("past_value", value, *values)
    lengths = [t.shape[2] for t in (key, value) if t.shape is not None]
    return same_dim(lengths, "the lengths of `past_key` and `past_value`")


@v23.evaluate
def evaluate(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None = None,
    past_key: Array | None = None,
    past_value: Array | None = None,
    filled: Array | None = None,
    /,
    *,
    call: Call,
    **attributes: Any,
) -> tuple[Array, ...]:
    _check(past_key, past_value, filled, call)
    options, inputs = _Attributes(**attributes), (q, k, v, mask, past_key, past_value, filled)
    hold(infer, *inputs, q_num_heads=options.q_num_heads, kv_num_heads=options.kv_num_heads, call=call)
    packed = q.ndim == PACKED
    if packed:
        q, k, v = starmap(attentions.split, zip((q, k, v), options.heads, strict=True))
    before = np.zeros((), np.int64)  # the keys before the first query
    if past_key is not None and past_value is not None:
        before += past_key.shape[2]
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    elif filled is not None:
        before = (filled - q.shape[2])[:, None, None, None]
    allowed = attentions.visible(q.shape[2], k.shape[2], before, options.window)
    if filled is not None:
        allowed = attentions.combined(allowed, attentions.before_end(k.shape[2], filled))
    if mask is not None and call.opset >= PADDED_MASKS:
        mask = attentions.extended(mask, k.shape[2])
    stages = attentions.ScoreStages(
        attentions.default_scale(q.shape[3]) if options.scale is None else options.scale,
        options.softcap,
        attentions.softmax_precision(options.softmax_precision),
        options.qk_matmul_output_mode if call.wants(3) else None,
    )
    y, scores = attentions.attend(q, k, v, attentions.ScoreMasks.of(mask, allowed), stages)
    y = attentions.joined(y) if packed else y
    return (y, k, v) if scores is None else (y, k, v, scores)


@v23.lower
def lower(
    q: Expression,
    k: Expression,
    v: Expression,
    mask: Expression | None = None,
    past_key: Expression | None = None,
    past_value: Expression | None = None,
    filled: Expression | None = None,
    /,
    *,
    call: Lowering,
    **attributes: Any,
) -> tuple[Expression, ...]:
    _check(past_key, past_value, filled, call)
    options, packed = _Attributes(**attributes), q.rank == PACKED
    if packed:
        q, k, v = starmap(attention_kernels.unpacked, zip((q, k, v), options.heads, strict=True))
    before: Expression | Size = 0  # the keys before the first query
    if past_key is not None and past_value is not None:
        before = past_key.shape[2]
        k, v = loops.join([past_key, k], 2), loops.join([past_value, v], 2)
    elif filled is not None:
        before = loops.apply("sub", filled, loops.sized("int64", q.shape[2]))
    heads = attention_kernels.Heads(q, k, v)
    masks = heads.visible(before, options.window, filled)
    if mask is not None:
        masks = heads.masked(masks, mask, padded=call.opset >= PADDED_MASKS)
    precision = attentions.softmax_precision(options.softmax_precision)
    stages = attention_kernels.ScoreStages(
        heads.default_scale() if options.scale is None else options.scale,
        options.softcap,
        heads.q.element if precision is None else precision.name,
    )
    scores = heads.scores(masks, stages)
    y = loops.cast(heads.weighted(scores[-1]), q.element)
    y = heads.packed(y) if packed else heads.apart(y)
    if not call.wants(3):
        return y, k, v
    return y, k, v, loops.cast(heads.apart(scores[options.qk_matmul_output_mode]), q.element)


@v23.body
def body(
    b: Builder, q: Value, k: Value, v: Value, *rest: Value | None, call: Call, **attributes: Any
) -> tuple[Value, ...]:
    options = _Attributes(**attributes)
    inputs, kind = graphs.AttentionInputs.of(b, q, k, v, *rest), element_of(q)
    masks = _masks(inputs, options.window, padded=call.opset >= PADDED_MASKS)
    packed = graphs.is_packed((q, k, v), options.q_num_heads)
    if packed:
        q, k, v = (graphs.split(b, *pair) for pair in zip((q, k, v), options.heads, strict=True))
    if inputs.past_key is not None and inputs.past_value is not None:
        k, v = b.Concat(inputs.past_key, k, axis=2), b.Concat(inputs.past_value, v, axis=2)
    raw = graphs.scores(b, graphs.scaled(b, q, options.scale, kind), k)
    capped = graphs.capped(b, raw, options.softcap, kind)
    biased, p = graphs.probabilities(b, capped, masks, options.softmax_precision, kind)
    y = graphs.weighted(b, p, calls.typed(b, v, kind), q)
    y = graphs.joined(b, y, inputs.q, options.heads[0]) if packed else y
    return (y, k, v, (raw, capped, biased, p)[options.qk_matmul_output_mode])[: len(call.outputs)]


def _masks(
    inputs: graphs.AttentionInputs, window: tuple[int, int], *, padded: bool
) -> graphs.ScoreMaskValues:
    mask, kind = inputs.typed_mask(padded=padded)
    allowed = inputs.visible(window)
    if kind is TRUTH:
        return graphs.ScoreMaskValues(None, graphs.combined(inputs.b, mask, allowed))
    return graphs.ScoreMaskValues(mask, allowed)


@v24.upgrade
def expand_mask(
    b: Builder, q: Value, k: Value, v: Value, *rest: Value | None, call: Call, **attributes: Any
) -> Any:
    """From 23 to 24: a mask that broadcasts along the keys would now end after the first."""
    if rest and rest[0] is not None:
        rest = (b.Expand(rest[0], graphs.AttentionInputs.of(b, q, k, v, *rest).keys), *rest[1:])
    return b.Attention(q, k, v, *rest, outputs=len(call.outputs), **attributes)


@v24.downgrade
def complete_mask(
    b: Builder,
    q: Value,
    k: Value,
    v: Value,
    *rest: Value | None,
    call: Call,
    is_causal: int,
    **attributes: Any,
) -> Any:
    """From 24 to 23: the mask covers all keys, and excludes those after the end of the cache."""
    inputs = graphs.AttentionInputs.of(b, q, k, v, *rest)
    mask, kind = inputs.typed_mask(padded=True)
    if inputs.filled is not None:
        mask = graphs.restricted(b, mask, inputs.visible((-1, 0 if is_causal else -1)), kind)
        is_causal = 0
    past = inputs.past_key, inputs.past_value
    return b.Attention(q, k, v, mask, *past, outputs=len(call.outputs), is_causal=is_causal, **attributes)


@v25.upgrade
def drop_heads(
    b: Builder, q: Value, k: Value, v: Value, *rest: Value | None, call: Call, **attributes: Any
) -> Any:
    if not graphs.is_packed((q, k, v), attributes["q_num_heads"]):
        attributes |= {"q_num_heads": None, "kv_num_heads": None}
    if graphs.AttentionInputs.of(b, q, k, v, *rest).filled is not None and (call.wants(1) or call.wants(2)):
        raise Unconvertible("Attention:25 has no present keys together with `nonpad_kv_seqlen`")
    return b.Attention(q, k, v, *rest, outputs=len(call.outputs), **attributes)


@v25.downgrade
def window_to_mask(
    b: Builder, q: Value, k: Value, v: Value, *rest: Value | None, call: Call, left_window_size: int,
    right_window_size: int, **attributes: Any,
) -> Any:  # fmt: skip
    """From 25 to 24: a window becomes part of the mask."""
    if max(left_window_size, right_window_size) >= 0:
        inputs = graphs.AttentionInputs.of(b, q, k, v, *rest)
        mask, kind = inputs.typed_mask(padded=True)
        allowed = inputs.visible((left_window_size, right_window_size))
        rest = (graphs.restricted(b, mask, allowed, kind), *rest[1:])
    return b.Attention(q, k, v, *rest, outputs=len(call.outputs), **attributes)
