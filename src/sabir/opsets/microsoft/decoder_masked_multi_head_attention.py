"""DecoderMaskedMultiHeadAttention: attention of one query of each item, in the steps of a search by beams."""

import math
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import FLOAT, INT64
from sabir.ir import Builder, Dim, Shape, TensorType, Value, add, exact_quotient, may_be_equal, mul
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import (
    attentions,
    beam_caches,
    padded_attention,
    padding_masks,
    ports,
    projections,
)
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.attention.padded_attention import ScoreOptions
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import as_dim, widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast, check_one, check_rank, check_shape, hold
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Call, Constraint, Example, Input, Operator, Output, Unconvertible, tensors

decoder_masked_multi_head_attention = Operator(
    "DecoderMaskedMultiHeadAttention",
    domain="com.microsoft",
    summary="In each head `softmax(q K^T scale + mask + bias) V` of a query, with a cache that beams share.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"))
QK = Constraint("QK", tensors("float", "float16"))
M = Constraint("M", tensors("int32"))

v1 = decoder_masked_multi_head_attention.first(
    1,
    inputs=[
        Input("query", T, "(batch, 1, heads * size), or with key and value (batch, 1, 3 * heads * size)."),
        Input("key", T, "(batch, 1, heads * size), or all keys (batch, heads, keys, size).", optional=True),
        Input("value", T, "The shape of `key`.", optional=True),
        Input("mask_index", M, "(batch, total): positive for keys that are no padding.", optional=True),
        ports.attention_bias(T),
        Input("past_key", T, "(batch, heads, past keys, size): before the key.", optional=True),
        Input("past_value", T, "The shape of `past_key`.", optional=True),
        ports.past_sequence_length(M),
        Input(
            "beam_width", M, "The number of beams, 1 if absent; each has its items in turn.", optional=True
        ),
        Input(
            "cache_indirection",
            M,
            "(batch / beams, beams, longest): the beam whose past has the key of each position.",
            optional=True,
        ),
        Input("bias", T, "(3 * heads * size): added to query, key and value.", optional=True),
    ],
    outputs=[
        Output("output", T, "(batch, 1, heads * size)."),
        Output("present_key", T, "(batch, heads, total, size), or the buffer.", optional=True),
        Output("present_value", T, "The shape of `present_key`.", optional=True),
        Output("qk", QK, "(batch, heads, 1, total): the scores before the softmax.", optional=True),
    ],
    attributes=[
        ports.num_heads(),
        ports.mask_filter_value(),
        ports.scale(),
        Attribute("past_present_share_buffer", "int", "1: the past is a buffer with the present in it."),
        Attribute("output_qk", "int", "1: the output `qk` is computed."),
    ],
)

APART = 4  # the rank of keys and values of another sequence
X = TypeVar("X")


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays or values."""

    query: X
    key: X | None = None
    value: X | None = None
    mask: X | None = None
    attention_bias: X | None = None
    past_key: X | None = None
    past_value: X | None = None
    filled: X | None = None
    width: X | None = None
    beams: X | None = None
    bias: X | None = None


@v1.infer
def infer(
    *inputs: TensorType,
    num_heads: int,
    past_present_share_buffer: int | None,
    output_qk: int | None,
    call: Call,
) -> tuple[TensorType, ...]:
    x = Operands(*inputs)
    _check_presence(x, past_present_share_buffer)
    if call.wants(3) and not output_qk:
        raise InferenceError("the output `qk` needs the attribute `output_qk`")
    check_rank("query", x.query, 3)
    batch, queries, width = x.query.shape or (None,) * 3
    if not may_be_equal(queries, 1):
        raise InferenceError(f"`query` must have one row in each item, and has {queries}")
    q, _, _ = projections.widths(mul(width, 3) if x.key is not None else width, None, num_heads)
    size = exact_quotient(q, num_heads)
    new = _new_keys(x, (batch, num_heads, None, size), q)
    check_shape("bias", x.bias, mul(q, 3))
    check_shape("past_key", x.past_key, batch, num_heads, None, size)
    check_shape("past_value", x.past_value, batch, num_heads, None, size)
    lengths = [
        t.shape[2] if t.shape is not None else None for t in (x.past_key, x.past_value) if t is not None
    ]
    past = same_dim(lengths, "the lengths of `past_key` and `past_value`") if lengths else 0
    filled = as_dim(x.filled.known[0]) if x.filled is not None and x.filled.known else None
    total = add(filled if past_present_share_buffer else past, new)
    rows = past if past_present_share_buffer else total
    if isinstance(rows, int) and isinstance(total, int) and total > rows:
        raise InferenceError(f"the buffer of {rows} rows has no room for {total} keys")
    check_rank("mask_index", x.mask, 2)
    padding_masks.check("mask_index", x.mask, batch, 1, total)
    check_broadcast("attention_bias", x.attention_bias, (batch, num_heads, 1, total))
    check_shape("attention_bias", x.attention_bias, None, None, 1, total)
    check_rank("cache_indirection", x.beams, 3)
    present = x.query.with_shape(batch, num_heads, rows, size)
    return x.query.with_shape(batch, 1, q), present, present, x.query.with_shape(batch, num_heads, 1, total)


def _check_presence(x: Operands[TensorType], shared: int | None) -> None:
    if (x.key is None) != (x.value is None) or (x.past_key is None) != (x.past_value is None):
        raise InferenceError("keys and values, also the past ones, must be present or absent together")
    if shared and (x.past_key is None or x.filled is None):
        raise InferenceError("`past_present_share_buffer` needs the past and `past_sequence_length`")
    if x.beams is not None and not shared:
        raise InferenceError("`cache_indirection` needs `past_present_share_buffer`")
    for name, one in (("past_sequence_length", x.filled), ("beam_width", x.width)):
        check_one(name, one)


def _new_keys(x: Operands[TensorType], apart: Shape, width: Dim) -> Dim:
    """Return how many keys the call brings."""
    if x.key is None or x.value is None:
        return 1
    check_rank("key", x.key, 3, APART)
    for name, t in (("key", x.key), ("value", x.value)):
        check_shape(name, t, *(apart if x.key.rank == APART else (apart[0], 1, width)))
    if x.key.rank != APART or x.key.shape is None or x.value.shape is None:
        return 1 if x.key.rank == APART - 1 else None
    if x.past_key is not None:
        raise InferenceError("keys of another sequence, of rank 4, have no past")
    return same_dim([x.key.shape[2], x.value.shape[2]], "the numbers of keys and values")


# ------------------------------------------------------------ values


@v1.evaluate
def evaluate(
    *inputs: Array, num_heads: int, scale: float | None, mask_filter_value: float | None,
    past_present_share_buffer: int | None, output_qk: int | None, call: Call,
) -> tuple[Array, ...]:  # fmt: skip
    shared = past_present_share_buffer
    named = {"num_heads": num_heads, "past_present_share_buffer": shared, "output_qk": output_qk}
    hold(infer, *inputs, **named, call=call)
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, 0)
    q, k, v = _heads(x, num_heads)
    filled = _filled(x) if shared else None
    dtype = x.query.dtype
    (k, present_key), (v, present_value) = (
        padded_attention.appended(past, new.astype(dtype, copy=False), filled)
        for past, new in ((x.past_key, k), (x.past_value, v))
    )
    if x.beams is not None and filled is not None:
        k, v = (beam_caches.of_beams(t, x.beams, filled) for t in (k, v))
    kept = None if x.mask is None else padding_masks.allowed(x.mask, len(q), 1, k.shape[2])
    y, scores = padded_attention.attend(q, k, v, kept, x.attention_bias, options, shown=call.wants(3))
    y = attentions.joined(y).astype(dtype, copy=False)
    outputs = (y, present_key, present_value)
    return outputs if scores is None else (*outputs, scores.astype(dtype, copy=False))


def _heads(x: Operands[Array], heads: int) -> tuple[Array, Array, Array]:
    """Return query, keys and values as (batch, heads, length, size), with the bias added."""
    if x.key is not None and x.value is not None and x.key.ndim == APART:
        q = attentions.split(x.query, heads)
        if x.bias is not None:
            q = widened(q) + widened(x.bias)[: x.query.shape[2]].reshape(heads, 1, -1)
        return q, x.key, x.value
    every: Array = x.query
    if x.key is not None and x.value is not None:
        every = np.concatenate([x.query, x.key, x.value], axis=2)
    return projections.parts(every if x.bias is None else widened(every) + widened(x.bias), None, heads)


def _filled(x: Operands[Array]) -> int:
    """Return the number of past keys in the buffer; raises EvaluationError where it is full."""
    if x.filled is None or x.past_key is None:
        raise InferenceError("`past_present_share_buffer` needs the past and `past_sequence_length`")
    filled, rows = int(x.filled.item()), x.past_key.shape[2]
    if not 0 <= filled < rows:
        raise EvaluationError(f"`past_sequence_length` must be below the {rows} rows, and is {filled}")
    return filled


# ------------------------------------------------------------ graphs


@v1.body
def body(
    b: Builder, *inputs: Value, num_heads: int, scale: float | None, mask_filter_value: float | None,
    past_present_share_buffer: int | None, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    x, options = Operands(*inputs), ScoreOptions.of(scale, mask_filter_value, 0)
    kind = element_of(x.query)
    q, k, v = _emitted_heads(b, x, num_heads)
    filled = None
    if past_present_share_buffer and x.filled is not None:
        filled = b.Cast(b.Reshape(x.filled, ints(b, 1)), to=INT64.number)
    kept = [
        padded_attention.emitted_cache(b, past, calls.typed(b, new, kind), filled)
        for past, new in ((x.past_key, k), (x.past_value, v))
    ]
    k, v = (calls.typed(b, rows, FLOAT) for rows, _ in kept)
    if x.beams is not None and filled is not None:
        k, v = (beam_caches.emitted(b, t, x.beams, filled) for t in (k, v))
    mask = None if x.mask is None else padding_masks.emitted(b, x.mask, q, graphs.size(b, k, 2))
    y, scores = padded_attention.emitted(b, q, k, v, mask, x.attention_bias, options)
    y = calls.typed(b, graphs.joined(b, y, x.query, num_heads), kind)
    return (y, kept[0][1], kept[1][1], calls.typed(b, scores, kind))[: len(call.outputs)]


def _emitted_heads(b: Builder, x: Operands[Value], heads: int) -> tuple[Value, Value, Value]:
    query, bias = calls.typed(b, x.query, FLOAT), None if x.bias is None else calls.typed(b, x.bias, FLOAT)
    if x.key is None or x.value is None:
        every = query
    elif not isinstance(x.key.type, TensorType) or x.key.type.rank is None:
        raise Unconvertible("the rank of the keys is unknown, and their layout depends on it")
    elif x.key.type.rank == APART:
        if bias is not None:
            query = b.Add(query, b.Slice(bias, ints(b, 0), graphs.size(b, query, 2)))
        return graphs.split(b, query, heads), calls.typed(b, x.key, FLOAT), calls.typed(b, x.value, FLOAT)
    else:
        every = b.Concat(query, *(calls.typed(b, t, FLOAT) for t in (x.key, x.value)), axis=2)
    return projections.emitted_parts(b, every if bias is None else b.Add(every, bias), None, heads)


# ------------------------------------------------------------ examples


@decoder_masked_multi_head_attention.examples
def examples() -> Iterator[Example]:
    """A step with a buffer, with beams, and with the keys of another sequence; onnxruntime is the oracle."""
    draw = np.random.default_rng(0)

    def normal(*shape: int) -> Array:
        return draw.standard_normal(shape).astype(np.float32)

    named: dict[str, Any] = {"num_heads": 2, "past_present_share_buffer": 1, "output_qk": 1, "outputs": 4}
    row = [normal(2, 1, 16) for _ in range(3)]
    buffers = [normal(2, 2, 8, 8) for _ in range(2)]
    filled = np.array([3], np.int32)
    mask = np.array([[1, 1, 0, 1], [0, 1, 1, 1]], np.int32)
    yield Example(1, *row, None, None, *buffers, filled, **named)
    yield Example(1, *row, mask, None, *buffers, filled, **named, mask_filter_value=-2.0)
    yield Example(1, *row, mask, normal(1, 2, 1, 4), *buffers, filled, **named, scale=0.3, tolerance=5e-4)
    yield Example(1, *row, None, None, *buffers, filled, None, None, normal(48), **named)
    beams = np.array([[[0, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0, 0]]], np.int32)
    yield Example(1, *row, None, None, *buffers, filled, np.array([2], np.int32), beams, **named)
    apart = [normal(2, 2, 5, 8) for _ in range(2)]
    there = np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], np.int32)
    for given in (None, there):
        yield Example(1, row[0], *apart, given, num_heads=2)


@decoder_masked_multi_head_attention.examples
def by_hand() -> Iterator[Example]:
    """Scores log 3 and 0 give the weights 3/4 and 1/4; the past key and value are zero."""
    three = math.log(3)
    step = [np.array([[[i]]], np.float32) for i in (three, 1, 4)]
    past = [np.zeros((1, 1, 1, 1), np.float32)] * 2
    presents = [np.array([[[[0], [i]]]], np.float32) for i in (1, 4)]
    expected = [np.array([[[3]]], np.float32), *presents, np.array([[[[0, three]]]], np.float32)]
    options: dict[str, Any] = {"num_heads": 1, "output_qk": 1, "outputs": 4}
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 2e-3)):
        q, k, v, *pasts = (x.astype(kind) for x in (*step, *past))
        answers = [x.astype(kind) for x in expected]
        options |= {"tolerance": tolerance, "expect": answers}
        yield Example(1, q, k, v, None, None, *pasts, **options)
        yield Example(1, np.concatenate([q, k, v], axis=2), *(None,) * 4, *pasts, **options)
