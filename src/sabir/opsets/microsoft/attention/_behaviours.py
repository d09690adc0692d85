"""Inference, evaluation, body and kernels of onnxruntime's Attention."""

from typing import Any

import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError, UnsupportedError
from sabir.elements import INT64
from sabir.ir import Builder, Dim, TensorType, Value, add, exact_quotient, may_be_equal
from sabir.loops import Expression, Lowering, NotLowered, Size
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions, padded_attention, padding_masks, projections
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.attention.padded_attention import ScoreOptions
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import as_dim
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast, check_one, check_rank, check_shape, hold
from sabir.opsets.microsoft.attention._history import Operands, Options, v1
from sabir.opsets.typing import Array
from sabir.schema import Call

# ------------------------------------------------------------ types


@v1.infer
def infer(*inputs: TensorType, call: Call, **attributes: Any) -> tuple[TensorType, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    heads = options.num_heads
    _check_options(x, options)
    check_rank("input", x.x, 3)
    check_rank("weights", x.weights, 2)
    batch, queries, width = x.x.shape or (None,) * 3
    check_shape("weights", x.weights, width, None)
    columns = x.weights.shape[1] if x.weights.shape is not None else None
    q, _, v = projections.widths(columns, options.qkv_hidden_sizes, heads)
    check_shape("bias", x.bias, columns)
    size, of_values = exact_quotient(q, heads), exact_quotient(v, heads)
    if (x.past is not None or call.wants(1)) and not may_be_equal(size, of_values):
        raise InferenceError("`past` and `present` need values of the size of the keys")
    check_shape("past", x.past, 2, batch, heads, None, size)
    past = 0 if x.past is None else x.past.shape[3] if x.past.shape is not None else None
    total = add(_filled(x) if options.past_present_share_buffer else past, queries)
    rows = past if options.past_present_share_buffer else total
    if isinstance(rows, int) and isinstance(total, int) and total > rows:
        raise InferenceError(f"the buffer of {rows} rows has no room for {total} keys")
    padding_masks.check("mask_index", x.mask, batch, queries, total)
    check_broadcast("attention_bias", x.attention_bias, (batch, heads, queries, total))
    check_shape("attention_bias", x.attention_bias, None, None, queries, total)
    return x.x.with_shape(batch, queries, v), x.x.with_shape(2, batch, heads, rows, size)


def _check_options(x: Operands[TensorType], options: Options) -> None:
    if options.do_rotary:
        raise UnsupportedError("`do_rotary` is not supported; RotaryEmbedding and MultiHeadAttention do it")
    if options.past_present_share_buffer and (x.past is None or x.filled is None):
        raise InferenceError("`past_present_share_buffer` needs `past` and `past_sequence_length`")
    if x.filled is not None:
        check_one("past_sequence_length", x.filled)


def _filled(x: Operands[TensorType]) -> Dim:
    return as_dim(x.filled.known[0]) if x.filled is not None and x.filled.known else None


# ------------------------------------------------------------ values


@v1.evaluate
def evaluate(*inputs: Array, call: Call, **attributes: Any) -> tuple[Array, ...]:
    hold(infer, *inputs, call=call, **attributes)
    x, options = Operands(*inputs), Options(**attributes)
    dtype = x.x.dtype
    products = projections.projected(x.x, x.weights, x.bias)
    q, k, v = projections.parts(products, options.qkv_hidden_sizes, options.num_heads)
    filled = _room(x, q.shape[2]) if options.past_present_share_buffer else None
    k, v, presents = padded_attention.appended_both(x.past, (k, v), filled, dtype)
    kept = None if x.mask is None else padding_masks.allowed(x.mask, len(q), q.shape[2], k.shape[2])
    before = k.shape[2] - q.shape[2]
    y, _ = padded_attention.attend(q, k, v, kept, x.attention_bias, _scores(options), before=before)
    y = attentions.joined(y).astype(dtype, copy=False)
    return (y, np.stack(presents)) if call.wants(1) else (y,)


def _scores(options: Options) -> ScoreOptions:
    return ScoreOptions.of(options.scale, options.mask_filter_value, options.unidirectional)


def _room(x: Operands[Array], new: int) -> int:
    """Return how many rows of the buffer are in use; raises EvaluationError where the new ones do not fit."""
    if x.filled is None or x.past is None:
        raise InferenceError("`past_present_share_buffer` needs `past` and `past_sequence_length`")
    filled, rows = int(x.filled.item()), x.past.shape[3]
    if not 0 <= filled <= rows - new:
        raise EvaluationError(f"`past_sequence_length` must be from 0 to {rows - new}, and is {filled}")
    return filled


# ------------------------------------------------------------ graphs


@v1.body
def body(b: Builder, *inputs: Value, call: Call, **attributes: Any) -> tuple[Value, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    kind = element_of(x.x)
    products = projections.emitted(b, x.x, x.weights, x.bias)
    q, k, v = projections.emitted_parts(b, products, options.qkv_hidden_sizes, options.num_heads)
    filled, before = None, None if x.past is None else graphs.size(b, x.past, 3)
    if options.past_present_share_buffer and x.filled is not None:
        before = filled = b.Cast(b.Reshape(x.filled, ints(b, 1)), to=INT64.number)
    k, v, presents = padded_attention.emitted_both(b, x.past, (k, v), filled, kind)
    kept = None if x.mask is None else padding_masks.emitted(b, x.mask, q, graphs.size(b, k, 2))
    y, _ = padded_attention.emitted(b, q, k, v, kept, x.attention_bias, _scores(options), before=before)
    y = calls.typed(b, graphs.joined(b, y, x.x, options.num_heads), kind)
    return (y, padded_attention.stacked(b, presents)) if call.wants(1) else (y,)


# ------------------------------------------------------------ kernels


@v1.lower
def lower(*inputs: Expression, call: Lowering, **attributes: Any) -> tuple[Expression, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    if options.past_present_share_buffer:
        raise NotLowered("the number of keys in the buffer is known at run time only")
    products = projections.lowered(x.x, x.weights, x.bias)
    q, k, v = projections.lowered_parts(products, options.qkv_hidden_sizes, options.num_heads)
    before: Size = 0
    if x.past is not None:
        before = x.past.shape[3]
        past_key, past_value = (loops.squeeze(loops.narrow(x.past, 0, i, 1), [0]) for i in range(2))
        k, v = loops.join([past_key, k], 2), loops.join([past_value, v], 2)
    kept = None
    if x.mask is not None:
        kept = padding_masks.lowered(x.mask, q.shape[0], q.shape[2], k.shape[2])
    y, _ = padded_attention.lowered(q, k, v, kept, x.attention_bias, _scores(options), before=before)
    if not call.wants(1):
        return (y,)
    return y, loops.join([loops.reshape(t, (1, *t.shape)) for t in (k, v)], 0)
