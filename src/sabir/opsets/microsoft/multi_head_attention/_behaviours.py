"""Inference, evaluation, body and kernels of MultiHeadAttention."""

import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.elements import FLOAT, INT64
from sabir.ir import Builder, Dim, Shape, TensorType, Value, add, exact_quotient, may_be_equal, mul
from sabir.loops import Expression, Lowering, NotLowered, Size
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import (
    attention_kernels,
    attentions,
    beam_caches,
    padded_attention,
    padding_masks,
)
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.attention.padded_attention import ScoreOptions
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import as_dim, widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast, check_one, check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.microsoft.multi_head_attention._history import APART, PACKED, WITH_KEYS, Operands, v1
from sabir.opsets.typing import Array
from sabir.schema import Call, Unconvertible

# ------------------------------------------------------------ types


@v1.infer
def infer(*inputs: TensorType, num_heads: int) -> tuple[TensorType, ...]:
    x = Operands(*inputs)
    _check_presence(x)
    ranks = [t.rank for t in (x.query, x.key, x.value) if t is not None]
    scores = TensorType(x.query.element)
    if None in ranks:
        return scores, scores, scores, scores
    q, k, v = _shapes(x, num_heads)
    batch, queries = same_dim([q[0], k[0], v[0]], "the batch of queries, keys and values"), q[2]
    new = same_dim([k[2], v[2]], "the numbers of keys and values")
    size = same_dim([q[3], k[3]], "the sizes of queries and keys")
    wide = mul(num_heads, add(mul(size, 2), v[3]))
    check_shape("bias", x.bias, wide)
    if x.beams is not None and not may_be_equal(queries, 1):
        raise InferenceError(f"`cache_indirection` needs one query in each item, and there are {queries}")
    check_rank("cache_indirection", x.beams, 3)
    past = _past(x, (batch, num_heads, None, size), (batch, num_heads, None, v[3]))
    filled = _filled(x)
    total = add(past if x.filled is None else filled, new)
    rows = total if x.filled is None else past
    if isinstance(rows, int) and isinstance(total, int) and total > rows:
        raise InferenceError(f"the buffer of {rows} rows has no room for {total} keys")
    check_rank("key_padding_mask", x.mask, 1, 2, 3)
    padding_masks.check("key_padding_mask", x.mask, batch, queries, total)
    check_broadcast("attention_bias", x.attention_bias, (batch, num_heads, queries, total))
    check_shape("attention_bias", x.attention_bias, None, None, queries, total)
    return (
        x.query.with_shape(batch, queries, mul(num_heads, v[3])),
        x.query.with_shape(batch, num_heads, rows, size),
        x.query.with_shape(batch, num_heads, rows, v[3]),
        x.query.with_shape(batch, num_heads, queries, total),
    )


def _check_presence(x: Operands[TensorType]) -> None:
    if (x.past_key is None) != (x.past_value is None):
        raise InferenceError("`past_key` and `past_value` must be present or absent together")
    if x.filled is not None and x.past_key is None:
        raise InferenceError("`past_sequence_length` needs `past_key` and `past_value`")
    if x.filled is not None:
        check_one("past_sequence_length", x.filled)
    if x.beams is not None and x.filled is None:
        raise InferenceError("`cache_indirection` needs `past_sequence_length`: a buffer that has the past")


def _shapes(x: Operands[TensorType], heads: int) -> tuple[Shape, Shape, Shape]:
    """Return (batch, heads, length, size) of queries, keys and values; the ranks are known."""
    check_rank("query", x.query, PACKED, WITH_KEYS)
    if x.query.rank == WITH_KEYS:
        if x.key is not None or x.value is not None:
            raise InferenceError(
                "`query` of rank 5 has the keys and values, so `key` and `value` must be absent"
            )
        check_shape("query", x.query, None, None, heads, 3, None)
        q = _moved(x.query)
        return q, q, q
    q = _apart("query", x.query, heads)
    if x.key is None:
        raise InferenceError("`key` must be present unless `query` has rank 5")
    check_rank("key", x.key, PACKED, APART, WITH_KEYS)
    if x.key.rank == WITH_KEYS:
        if x.value is not None:
            raise InferenceError("`key` of rank 5 has the values, so `value` must be absent")
        check_shape("key", x.key, None, None, heads, 2, None)
        return q, _moved(x.key), _moved(x.key)
    if x.value is None or x.value.rank != x.key.rank:
        raise InferenceError("`key` and `value` must both have rank 3, or both rank 4")
    return q, _apart("key", x.key, heads), _apart("value", x.value, heads)


def _moved(x: TensorType) -> Shape:
    batch, length, heads, _, size = x.shape or (None,) * WITH_KEYS
    return batch, heads, length, size


def _apart(name: str, x: TensorType, heads: int) -> Shape:
    if x.rank == APART:
        check_shape(name, x, None, heads, None, None)
        return x.shape or (None,) * APART
    batch, length, width = x.shape or (None,) * PACKED
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"a dimension of {width} of `{name}` cannot be split into {heads} heads")
    return batch, heads, length, exact_quotient(width, heads)


def _past(x: Operands[TensorType], keys: Shape, values: Shape) -> Dim:
    if x.past_key is None or x.past_value is None:
        return 0
    check_shape("past_key", x.past_key, *keys)
    check_shape("past_value", x.past_value, *values)
    lengths = [t.shape[2] for t in (x.past_key, x.past_value) if t.shape is not None]
    return same_dim(lengths, "the lengths of `past_key` and `past_value`")


def _filled(x: Operands[TensorType]) -> Dim:
    return as_dim(x.filled.known[0]) if x.filled is not None and x.filled.known else None


# ------------------------------------------------------------ values


@v1.evaluate
def evaluate(
    *inputs: Array,
    num_heads: int,
    scale: float | None,
    mask_filter_value: float | None,
    unidirectional: int,
    call: Call,
) -> tuple[Array, ...]:
    hold(infer, *inputs, num_heads=num_heads)
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, unidirectional)
    dtype = x.query.dtype
    q, k, v = _heads(x, num_heads)
    filled = None if x.filled is None else _room(x, k.shape[2])
    k, present_key = padded_attention.appended(x.past_key, k.astype(dtype, copy=False), filled)
    v, present_value = padded_attention.appended(x.past_value, v.astype(dtype, copy=False), filled)
    if x.beams is not None and filled is not None:
        k, v = (beam_caches.of_beams(t, x.beams, filled) for t in (k, v))
    before = filled if filled is not None else 0 if x.past_key is None else x.past_key.shape[2]
    kept = x.mask
    if kept is not None:
        kept = padding_masks.allowed(kept, len(q), q.shape[2], k.shape[2])
    shown = call.wants(3)
    y, scores = padded_attention.attend(q, k, v, kept, x.attention_bias, options, before=before, shown=shown)
    y = attentions.joined(y).astype(dtype, copy=False)
    presents = (y, present_key, present_value)
    return presents if scores is None else (*presents, scores.astype(dtype, copy=False))


def _room(x: Operands[Array], new: int) -> int:
    """Return the number of rows of the cache in use; raises EvaluationError where the new ones do not fit."""
    if x.filled is None or x.past_key is None:
        raise InferenceError("`past_sequence_length` needs `past_key` and `past_value`")
    filled, rows = int(x.filled.item()), x.past_key.shape[2]
    if not 0 <= filled <= rows - new:
        raise EvaluationError(
            f"`past_sequence_length` must be from 0 to {rows - new} for {new} keys in a buffer of {rows} "
            f"rows; it is {filled}"
        )
    return filled


def _heads(x: Operands[Array], heads: int) -> tuple[Array, Array, Array]:
    """Return queries, keys and values as (batch, heads, length, size), with the bias added."""
    if x.query.ndim == WITH_KEYS:
        parts = [x.query[:, :, :, i].swapaxes(1, 2) for i in range(3)]
    elif x.key is not None and x.key.ndim == WITH_KEYS:
        parts = [x.query, *(x.key[:, :, :, i].swapaxes(1, 2) for i in range(2))]
    else:
        parts = [t for t in (x.query, x.key, x.value) if t is not None]
    apart = [attentions.split(t, heads) if t.ndim == PACKED else t for t in parts]
    if x.bias is not None:
        sizes = [heads * t.shape[3] for t in apart]
        added = np.split(widened(x.bias), np.cumsum(sizes)[:2])
        every = x.key is None or x.key.ndim != APART
        apart = [
            widened(t) + bias.reshape(heads, 1, -1) if i == 0 or every else t
            for i, (t, bias) in enumerate(zip(apart, added, strict=True))
        ]
    q, k, v = apart
    return q, k, v


# ------------------------------------------------------------ graphs


@v1.body
def body(
    b: Builder,
    *inputs: Value,
    num_heads: int,
    scale: float | None,
    mask_filter_value: float | None,
    unidirectional: int,
    call: Call,
) -> tuple[Value, ...]:
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, unidirectional)
    kind = element_of(x.query)
    q, k, v = _emitted_heads(b, x, num_heads)
    filled = None if x.filled is None else b.Cast(b.Reshape(x.filled, ints(b, 1)), to=INT64.number)
    keys, present_key = padded_attention.emitted_cache(b, x.past_key, calls.typed(b, k, kind), filled)
    values, present_value = padded_attention.emitted_cache(b, x.past_value, calls.typed(b, v, kind), filled)
    before = filled
    if filled is None and x.past_key is not None:
        before = graphs.size(b, x.past_key, 2)
    k, v = calls.typed(b, keys, FLOAT), calls.typed(b, values, FLOAT)
    if x.beams is not None and filled is not None:
        k, v = (beam_caches.emitted(b, t, x.beams, filled) for t in (k, v))
    kept = None if x.mask is None else padding_masks.emitted(b, x.mask, q, graphs.size(b, k, 2))
    y, scores = padded_attention.emitted(b, q, k, v, kept, x.attention_bias, options, before=before)
    y = calls.typed(b, graphs.joined(b, y, x.query, num_heads), kind)
    return (y, present_key, present_value, calls.typed(b, scores, kind))[: len(call.outputs)]


def _emitted_heads(b: Builder, x: Operands[Value], heads: int) -> tuple[Value, Value, Value]:
    """Return queries, keys and values as (batch, heads, length, size) of float, with the bias added."""
    ranks = [t.type.rank if isinstance(t.type, TensorType) else None for t in (x.query, x.key, x.value) if t]
    if None in ranks:
        raise Unconvertible("the rank of queries, keys or values is unknown, and their layout depends on it")
    parts: list[Value] = []
    for value, rank in zip((x.query, x.key, x.value), ranks, strict=False):
        if value is None:
            continue
        wide = calls.typed(b, value, FLOAT)
        if rank == WITH_KEYS:
            count = WITH_KEYS - 2 - len(parts)
            each = b.Split(wide, num_outputs=count, axis=3, outputs=count)
            parts += [b.Transpose(b.Squeeze(t, ints(b, 3)), perm=[0, 2, 1, 3]) for t in each]
        else:
            parts.append(graphs.split(b, wide, heads) if rank == PACKED else wide)
    if x.bias is not None:
        parts = _biased(b, parts, calls.typed(b, x.bias, FLOAT), heads, every=APART not in ranks)
    q, k, v = parts
    return q, k, v


def _biased(b: Builder, parts: list[Value], bias: Value, heads: int, *, every: bool) -> list[Value]:
    """Add the parts of a bias to queries, keys and values, or only to the queries."""
    widths = [b.Mul(graphs.size(b, t, 3), ints(b, heads)) for t in parts]
    biases = b.Split(bias, b.Concat(*widths, axis=0), axis=0, outputs=3)
    return [
        b.Add(t, b.Reshape(bias, ints(b, heads, 1, -1))) if every or t is parts[0] else t
        for t, bias in zip(parts, biases, strict=True)
    ]


# ------------------------------------------------------------ kernels


@v1.lower
def lower(
    *inputs: Expression,
    num_heads: int,
    scale: float | None,
    mask_filter_value: float | None,
    unidirectional: int,
    call: Lowering,
) -> tuple[Expression, ...]:
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, unidirectional)
    if x.filled is not None:
        raise NotLowered("the number of keys in the buffer is known at run time only")
    q, k, v = _lowered_heads(x, num_heads)
    before: Size = 0
    if x.past_key is not None and x.past_value is not None:
        before = x.past_key.shape[2]
        k, v = loops.join([x.past_key, k], 2), loops.join([x.past_value, v], 2)
    kept = None
    if x.mask is not None:
        kept = padding_masks.lowered(x.mask, q.shape[0], q.shape[2], k.shape[2])
    y, scores = padded_attention.lowered(q, k, v, kept, x.attention_bias, options, before=before)
    outputs = (y, k, v, loops.cast(scores, q.element))
    return outputs if call.wants(3) else outputs[:3]


def _lowered_heads(x: Operands[Expression], heads: int) -> tuple[Expression, Expression, Expression]:
    """Return queries, keys and values as (batch, heads, length, size), with the bias added."""
    parts: list[Expression] = []
    for value in (x.query, x.key, x.value):
        if value is None:
            continue
        if value.rank == WITH_KEYS:
            for i in range(WITH_KEYS - 2 - len(parts)):
                part = loops.squeeze(loops.narrow(value, 3, i, 1), [3])
                parts.append(loops.permute(part, (0, 2, 1, 3)))
        else:
            parts.append(value)
    if x.bias is not None:
        parts = _lowered_bias(parts, x.bias, heads, every=x.key is None or x.key.rank != APART)
    q, k, v = (attention_kernels.unpacked(t, heads) if t.rank == PACKED else t for t in parts)
    return q, k, v


def _lowered_bias(parts: list[Expression], bias: Expression, heads: int, *, every: bool) -> list[Expression]:
    """Add the parts of a bias to queries, keys and values, or only to the queries."""
    added: list[Expression] = []
    start: Size = 0
    for part in parts:
        width = part.shape[2] if part.rank == PACKED else mul(heads, part.shape[3])
        end = add(start, width)
        if width is None or end is None:
            raise NotLowered("the parts of the bias are known at run time only")
        piece = loops.narrow(bias, 0, start, width)
        if part.rank != PACKED:
            piece = loops.reshape(piece, (heads, 1, part.shape[3]))
        added.append(loops.apply("add", part, piece) if every or part is parts[0] else part)
        start = end
    return added
