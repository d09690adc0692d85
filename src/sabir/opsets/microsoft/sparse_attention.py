"""SparseAttention: attention to a cache of keys, of which each head reads the blocks of its layout."""

import math
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import ml_dtypes
import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import FLOAT, INT64
from sabir.ir import Builder, Dim, TensorType, Value, exact_quotient, mul
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions, key_cache_graphs, key_caches, ports, rotations
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import as_dim, widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.ranks import check_alike, check_one, check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    at_least,
    one_of,
    tensors,
)

sparse_attention = Operator(
    "SparseAttention",
    domain="com.microsoft",
    summary="Causal attention to a buffer of keys and values; each head reads the blocks of its layout.",
    body_opset=18,
)

T = Constraint("T", tensors("float", "float16"), BFLOAT16)
M = Constraint("M", tensors("int32"))

v1 = sparse_attention.first(
    1,
    inputs=[
        Input("query", T, "(batch, queries, heads * size), or with keys and values after it in each row."),
        Input("key", T, "(batch, queries, kv heads * size).", optional=True),
        Input("value", T, "The shape of `key`.", optional=True),
        Input("past_key", T, "(batch, kv heads, capacity, size): a buffer with the past keys."),
        Input("past_value", T, "The shape of `past_key`."),
        Input("block_row_indices", M, "(layouts, rows + 1): where the blocks of each row start."),
        Input("block_col_indices", M, "(layouts, blocks): the column of each block; -1 after the last."),
        Input("total_sequence_length", M, "The largest number of keys of an item, a scalar."),
        Input("key_total_sequence_lengths", M, "(batch): the number of keys of each item."),
        Input("cos_cache", T, "(positions, pairs): cosines of the rotation.", optional=True),
        Input("sin_cache", T, "The shape of `cos_cache`: sines.", optional=True),
    ],
    outputs=[
        Output("output", T, "(batch, queries, heads * size)."),
        Output("present_key", T, "The buffer with the new keys."),
        Output("present_value", T, "The buffer with the new values."),
    ],
    attributes=[
        Attribute(
            "rotary_interleaved", "int", "1: neighbours are pairs; else elements of the two halves are."
        ),
        Attribute(
            "sparse_block_size",
            "int",
            "The number of positions of a block.",
            required=True,
            values=one_of(16, 32, 64, 128),
        ),
        ports.scale(),
        Attribute("do_rotary", "int", "1: queries and new keys are rotated by their positions."),
        Attribute("kv_num_heads", "int", "The number of heads of keys.", required=True, values=at_least(1)),
        ports.num_heads(),
    ],
)

X = TypeVar("X")


class Operands(NamedTuple, Generic[X]):
    """The operands of a call: types, arrays or values."""

    query: X
    key: X | None
    value: X | None
    past_key: X
    past_value: X
    rows: X
    columns: X
    total: X
    ends: X
    cos: X | None = None
    sin: X | None = None


class Options(NamedTuple):
    """The attributes of a call."""

    num_heads: int
    kv_num_heads: int
    sparse_block_size: int
    scale: float | None
    do_rotary: int | None
    rotary_interleaved: int | None


@v1.infer
def infer(*inputs: TensorType, **attributes: Any) -> tuple[TensorType, TensorType, TensorType]:
    x, options = Operands(*inputs), Options(**attributes)
    heads, kv = options.num_heads, options.kv_num_heads
    if heads % kv:
        raise InferenceError(f"{heads} heads of queries are not a multiple of {kv} heads of keys")
    if (x.key is None) != (x.value is None):
        raise InferenceError("`key` and `value` must be present or absent together")
    check_rank("query", x.query, 3)
    batch, queries, width = x.query.shape or (None,) * 3
    parts = heads + 2 * kv if x.key is None else heads
    if isinstance(width, int) and width % parts:
        raise InferenceError(f"a dimension of {width} of `query` cannot be split into {parts} heads")
    size = exact_quotient(width, parts)
    check_shape("key", x.key, batch, queries, mul(size, kv))
    check_shape("value", x.value, batch, queries, mul(size, kv))
    check_shape("past_key", x.past_key, batch, kv, None, size)
    check_alike(["past_key", "past_value"], [x.past_key, x.past_value])
    check_one("total_sequence_length", x.total)
    check_shape("key_total_sequence_lengths", x.ends, batch)
    _check_layouts(x, heads)
    _check_angles(x, options, size)
    _check_total(x, queries, options)
    y = x.query.with_shape(batch, queries, mul(size, heads))
    return y, x.past_key.with_known(None), x.past_value.with_known(None)


def _check_layouts(x: Operands[TensorType], heads: int) -> None:
    for name, part in (("block_row_indices", x.rows), ("block_col_indices", x.columns)):
        check_rank(name, part, 2)
    layouts = x.rows.shape[0] if x.rows.shape is not None else None
    check_shape("block_col_indices", x.columns, layouts, None)
    if isinstance(layouts, int) and (not layouts or heads % layouts):
        raise InferenceError(f"{heads} heads are not a multiple of {layouts} layouts")
    if x.rows.shape is not None and x.rows.shape[1] == 0:
        raise InferenceError("`block_row_indices` must have the start of a row or more")


def _check_total(x: Operands[TensorType], queries: Dim, options: Options) -> None:
    total = as_dim(x.total.known[0]) if x.total.known else None
    rows = x.past_key.shape[2] if x.past_key.shape is not None else None
    blocks = x.rows.shape[1] if x.rows.shape is not None else None
    sizes = [d for d in (total, queries, rows, blocks) if isinstance(d, int)]
    if len(sizes) == 4:  # ruff: ignore[magic-value-comparison]  all of them
        check_room(sizes[0], sizes[1], min(sizes[2], (sizes[3] - 1) * options.sparse_block_size))


def check_room(total: int, queries: int, rows: int) -> None:
    """Raise InferenceError unless all keys fit the rows of the buffer that blocks cover."""
    if not queries <= total <= rows:
        raise InferenceError(
            f"`total_sequence_length` must be from {queries} to {rows}, the rows of the buffer that blocks "
            f"cover; it is {total}"
        )


def _check_angles(x: Operands[TensorType], options: Options, size: Dim) -> None:
    if x.cos is None or x.sin is None:
        if options.do_rotary or x.cos is not None or x.sin is not None:
            raise InferenceError("`do_rotary` needs `cos_cache` and `sin_cache`, which belong together")
        return
    check_rank("cos_cache", x.cos, 2)
    check_alike(["cos_cache", "sin_cache"], [x.cos, x.sin])
    pairs = x.cos.shape[1] if x.cos.shape is not None else None
    if isinstance(pairs, int) and isinstance(size, int) and 2 * pairs > size:
        raise InferenceError(f"{pairs} pairs cannot be rotated in a head of {size} elements")


# ------------------------------------------------------------ values


@v1.evaluate
def evaluate(*inputs: Array, **attributes: Any) -> tuple[Array, Array, Array]:
    hold(infer, *inputs, **attributes)
    x, options = Operands(*inputs), Options(**attributes)
    queries, dtype = x.query.shape[1], x.query.dtype
    covered = (x.rows.shape[1] - 1) * options.sparse_block_size
    check_room(int(x.total.item()), queries, min(x.past_key.shape[2], covered))
    starts, ends = key_caches.places(x.ends, queries, int(x.total.item()), "key_total_sequence_lengths")
    positions = _from(starts, queries)
    q, *new = _heads(x, positions, options)
    keys, values = (
        key_caches.written(past, t.astype(dtype, copy=False), starts, past.shape[2])
        for past, t in zip((x.past_key, x.past_value), new, strict=True)
    )
    own = np.minimum(positions, _from(ends - 1, 1))
    y = _attended(widened(q), keys, values, own, x, options)
    return attentions.joined(y).astype(dtype, copy=False), keys, values


def _from(starts: Array, count: int) -> Array:
    """Return `count` positions from each start on."""
    return starts[:, None] + np.arange(count)


def _attended(
    q: Array, keys: Array, values: Array, own: Array, x: Operands[Array], options: Options
) -> Array:
    """Return the weighted values of each query; `own` is its position."""
    total = int(x.total.item())
    masks = attentions.ScoreMasks(None, _allowed(x, own, total, options))
    stages = attentions.ScoreStages(options.scale or attentions.default_scale(q.shape[3]))
    return attentions.attend(q, keys[:, :, :total], values[:, :, :total], masks, stages)[0]


def _heads(x: Operands[Array], positions: Array, options: Options) -> tuple[Array, Array, Array]:
    """Return queries, new keys and new values as (batch, heads, length, size), rotated."""
    heads, kv = options.num_heads, options.kv_num_heads
    every = x.query
    if x.key is not None and x.value is not None:
        every = np.concatenate([x.query, x.key, x.value], axis=2)
    apart = attentions.split(every, heads + 2 * kv)
    q, k, v = apart[:, :heads], apart[:, heads : heads + kv], apart[:, heads + kv :]
    if not options.do_rotary:
        return q, k, v
    return _rotated(q, x, positions, options), _rotated(k, x, positions, options), v


def _rotated(x: Array, call: Operands[Array], positions: Array, options: Options) -> Array:
    if call.cos is None or call.sin is None or np.any(positions >= len(call.cos)):
        raise EvaluationError("positions must be rows of `cos_cache`")
    cos, sin = (t[positions][:, None] for t in (call.cos, call.sin))
    return rotations.rotated(x, cos, sin, interleaved=options.rotary_interleaved or 0)


def _allowed(x: Operands[Array], positions: Array, total: int, options: Options) -> Array:
    """Return which keys each query attends to, (batch, heads, queries, total)."""
    blocks = _blocks(x.rows, x.columns)
    size, keys = options.sparse_block_size, np.arange(total)
    layout = np.arange(options.num_heads)[:, None, None] % len(blocks)
    chosen = blocks[layout, (positions // size)[:, None, :, None], keys // size]
    return chosen & (keys <= positions[:, None, :, None])


def _blocks(rows: Array, columns: Array) -> Array:
    """Return the blocks of each layout as a mask of the shape (layouts, rows, columns)."""
    count = rows.shape[1] - 1
    mask = np.zeros((len(rows), count, count), np.bool_)
    for layout, (starts, used) in enumerate(zip(rows, columns, strict=True)):
        for row in range(count):
            listed = used[starts[row] : starts[row + 1]]
            mask[layout, row, listed[(listed >= 0) & (listed < count)]] = True
    return mask


# ------------------------------------------------------------ graphs


v1.absent("lower", "which blocks a row attends to, and how long its keys are, is known at run time only")


@v1.body
def body(b: Builder, *inputs: Value, **attributes: Any) -> tuple[Value, Value, Value]:
    x, options = Operands(*inputs), Options(**attributes)
    kind, queries = element_of(x.query), graphs.size(b, x.query, 1)
    total = b.Cast(b.Reshape(x.total, ints(b, 1)), to=INT64.number)
    ends = b.Cast(x.ends, to=INT64.number)
    starts = b.Where(b.Equal(queries, total), ints(b, 0), b.Sub(ends, queries))
    positions = b.Add(b.Unsqueeze(starts, ints(b, 1)), graphs.indices(b, queries))
    q, k, v = _emitted_heads(b, x, positions, options)
    present = [
        key_cache_graphs.written(b, past, calls.typed(b, new, kind), starts, graphs.size(b, past, 2))
        for past, new in ((x.past_key, k), (x.past_value, v))
    ]
    k, v = (calls.typed(b, b.Slice(t, ints(b, 0), total, ints(b, 2)), FLOAT) for t in present)
    own = b.Min(positions, b.Unsqueeze(b.Sub(ends, ints(b, 1)), ints(b, 1)))
    allowed = _emitted_allowed(b, x, own, graphs.indices(b, total), options)
    y = _emitted_sums(b, graphs.scaled(b, q, options.scale or None, FLOAT), k, v, allowed)
    return calls.typed(b, graphs.joined(b, y, x.query, options.num_heads), kind), present[0], present[1]


def _emitted_heads(
    b: Builder, x: Operands[Value], positions: Value, options: Options
) -> tuple[Value, Value, Value]:
    """Emit queries, new keys and new values as (batch, heads, length, size) of float, rotated."""
    heads, kv, every = options.num_heads, options.kv_num_heads, x.query
    if x.key is not None and x.value is not None:
        every = b.Concat(x.query, x.key, x.value, axis=2)
    apart = graphs.split(b, calls.typed(b, every, FLOAT), heads + 2 * kv)
    q, k, v = b.Split(apart, ints(b, heads, kv, kv), axis=1, outputs=3)
    if options.do_rotary:
        q, k = (_emitted_rotation(b, t, x, positions, options) for t in (q, k))
    return q, k, v


def _emitted_sums(b: Builder, q: Value, k: Value, v: Value, allowed: Value) -> Value:
    """Emit the values of the allowed keys, weighted; a query without keys has zeros."""
    numbers = Numbers(b, FLOAT)
    lowest = numbers(float(np.finfo(np.float32).min))
    p = b.Softmax(b.Where(allowed, graphs.scores(b, q, k), lowest), axis=-1)
    return graphs.weighted(b, b.Where(allowed, p, numbers(0)), v, q)


def _emitted_rotation(
    b: Builder, x: Value, call: Operands[Value], positions: Value, options: Options
) -> Value:
    kind = call.cos.type if call.cos is not None else None
    pairs = kind.shape[1] if isinstance(kind, TensorType) and kind.shape is not None else None
    if call.cos is None or call.sin is None or not isinstance(pairs, int):
        raise Unconvertible("the number of pairs in `cos_cache` is unknown, and heads are split by it")
    cos, sin = (
        b.Unsqueeze(b.Gather(calls.typed(b, t, FLOAT), positions), ints(b, 1)) for t in (call.cos, call.sin)
    )
    return rotations.emitted(b, x, cos, sin, 2 * pairs, interleaved=options.rotary_interleaved or 0)


def _emitted_allowed(b: Builder, x: Operands[Value], own: Value, keys: Value, options: Options) -> Value:
    """Emit `_allowed`: the blocks by head, then by key, then by query."""
    size = ints(b, options.sparse_block_size)
    layouts = b.Mod(graphs.indices(b, ints(b, options.num_heads)), graphs.size(b, x.rows, 0))
    by_key = b.Gather(b.Gather(_emitted_blocks(b, x), layouts), b.Div(keys, size), axis=2)
    chosen = b.Transpose(b.Gather(by_key, b.Div(own, size), axis=1), perm=[1, 0, 2, 3])
    return b.And(b.Greater(chosen, ints(b, 0)), b.LessOrEqual(keys, b.Unsqueeze(own, ints(b, 1, 3))))


def _emitted_blocks(b: Builder, x: Operands[Value]) -> Value:
    """Emit `_blocks` as integers: a one is scattered to each block, those of padding to one place more."""
    rows, columns = (b.Cast(t, to=INT64.number) for t in (x.rows, x.columns))
    layouts, count = graphs.size(b, rows, 0), b.Sub(graphs.size(b, rows, 1), ints(b, 1))
    ends = b.Slice(rows, ints(b, 1), b.Add(count, ints(b, 1)), ints(b, 1))
    after = b.GreaterOrEqual(graphs.indices(b, graphs.size(b, columns, 1)), b.Unsqueeze(ends, ints(b, 2)))
    row = b.ReduceSum(b.Cast(after, to=INT64.number), ints(b, 1), keepdims=0)
    used = b.And(b.Less(row, count), b.And(b.GreaterOrEqual(columns, ints(b, 0)), b.Less(columns, count)))
    square = b.Mul(count, count)
    places = b.Where(used, b.Add(b.Mul(row, count), columns), square)
    empty = b.Expand(ints(b, 0), b.Concat(layouts, b.Add(square, ints(b, 1)), axis=0))
    ones = b.Expand(ints(b, 1), b.Shape(places))
    full = b.ScatterElements(empty, places, ones, axis=1)
    return graphs.reshaped(b, b.Slice(full, ints(b, 0), square, ints(b, 1)), layouts, count, count)


# ------------------------------------------------------------ examples


ONE_BLOCK = np.array([[0, 1]], np.int32), np.array([[0]], np.int32)  # of one layout


def lengths(*keys: int) -> list[Array]:
    """Return the operands `total_sequence_length` and `key_total_sequence_lengths`."""
    return [np.array(max(keys), np.int32), np.array(keys, np.int32)]


def buffer(*rows: Any, count: int) -> Array:
    """Return (1, 1, count, size) that starts with these rows; the others are zeros."""
    filled = np.zeros((1, 1, count, len(rows[0])), np.float32)
    filled[0, 0, : len(rows)] = rows
    return filled


@sparse_attention.examples
def layouts() -> Iterator[Example]:
    """Equal scores average the values of the allowed keys, which are their positions; by hand.

    onnxruntime's kernel runs only where past and present share memory.
    """
    rows, columns = np.array([[0, 1, 2], [0, 1, 3]], np.int32), np.array([[0, 1, -1], [0, 0, 1]], np.int32)
    named: dict[str, Any] = {"num_heads": 2, "kv_num_heads": 1, "sparse_block_size": 16, "outputs": 3}
    before, after = (buffer(*([i] for i in range(count)), count=32) for count in (17, 18))
    y = np.array([[[(16 + 17) / 2, 17 / 2]]], np.float32)  # of 18 keys, two are in the second block
    query, key, value = np.zeros((1, 1, 2)), np.zeros((1, 1, 1)), np.full((1, 1, 1), 17)
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        new: list[Array] = [x.astype(kind) for x in (query, key, value)]
        call = [np.zeros_like(before, kind), before.astype(kind), rows, columns, *lengths(18)]
        expected = [y.astype(kind), call[0], after.astype(kind)]
        options: dict[str, Any] = {**named, "tolerance": tolerance, "expect": expected}
        yield Example(1, *new, *call, **options)
        yield Example(1, np.concatenate(new, axis=2), None, None, *call, **options)


@sparse_attention.examples
def padded_prompt() -> Iterator[Example]:
    """A prompt of two in items of two and of one: the second query of the second item is padding."""
    value = np.array([[[4], [2]], [[6], [8]]], np.float32)
    empty = np.zeros((2, 1, 16, 1), np.float32)
    filled = empty.copy()
    filled[:, 0, :2] = value
    averages = np.array([[[4, 4], [3, 3]], [[6, 6], [6, 6]]], np.float32)
    call = [np.zeros((2, 2, 2), np.float32), 0 * value, value, empty, empty, *ONE_BLOCK, *lengths(2, 1)]
    named: dict[str, Any] = {"num_heads": 2, "kv_num_heads": 1, "sparse_block_size": 16, "outputs": 3}
    yield Example(1, *call, **named, expect=[averages, empty, filled])


@sparse_attention.examples
def rotated() -> Iterator[Example]:
    """A quarter of a turn at position 1: the query (0, 3) becomes (-3, 0), the key (1, 0) becomes (0, 1)."""
    angles = np.array([[1], [0]], np.float32), np.array([[0], [1]], np.float32)
    q, k, v = (np.array([rows], np.float32) for rows in ([[3, 0], [0, 3]], [[2, 0], [1, 0]], np.eye(2)))
    first = 1 / (1 + math.exp(6))  # scores -6 and 0
    y = np.array([[[1, 0], [first, 1 - first]]], np.float32)
    expected = [y, buffer([2, 0], [0, 1], count=16), buffer([1, 0], [0, 1], count=16)]
    blank = np.zeros((1, 1, 16, 2), np.float32)
    call = [q, k, v, blank, blank, *ONE_BLOCK, *lengths(2), *angles]
    named: dict[str, Any] = {"num_heads": 1, "kv_num_heads": 1, "sparse_block_size": 16, "scale": 1.0}
    for interleaved in (0, 1):
        options: dict[str, Any] = {**named, "do_rotary": 1, "rotary_interleaved": interleaved, "outputs": 3}
        yield Example(1, *call, **options, expect=expected)
