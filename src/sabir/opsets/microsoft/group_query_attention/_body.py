"""GroupQueryAttention in operators of opset 18."""

from typing import Any, NamedTuple

import numpy as np

from sabir.elements import FLOAT, INT8, INT64, UINT8
from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import key_cache_graphs as key_caches
from sabir.opsets.families.attention import rotations, sliding_cache_graphs
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.microsoft.group_query_attention._behaviours import SCORES
from sabir.opsets.microsoft.group_query_attention._history import Norm, Operands, Options, v1
from sabir.schema import Call, Unconvertible


class _Places(NamedTuple):
    """The position of the first query and the end of the keys of each batch item, and the sizes of a call."""

    starts: Value  # (batch)
    ends: Value  # (batch)
    queries: Value  # (1)
    total: Value  # (1)
    real: Value | None  # (batch, 1, queries, 1): which queries are no padding
    all_new: Value  # whether the cache is empty before the call


@v1.body
def body(b: Builder, *inputs: Value, call: Call, **attributes: Any) -> tuple[Value, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    kind, places = element_of(x.query), _places(b, x)
    q, k, v = _heads(b, x, options)
    q, k = (_placed(b, t, w, x, options, places) for t, w in zip((q, k), x.norms(options), strict=True))
    if places.real is not None:
        k, v = (b.Where(places.real, t, Numbers(b, FLOAT)(0)) for t in (k, v))
    new = (calls.typed(b, k, kind), calls.typed(b, v, kind))
    cached = (_slid if options.sliding_window_cache else _cached)(b, x, options, new, places)
    if places.real is not None:
        cached = cached._replace(allowed=b.And(cached.allowed, places.real))
    y, scores = _attended(b, q, cached, x, options)
    y = graphs.joined(b, y, x.query, options.num_heads)
    outputs = (y, scores) if call.wants(3) else (y,)
    y, *scores = (calls.typed(b, t, kind) for t in outputs)
    return (y, *cached.caches, *scores)[: len(call.outputs)]


class _Cached(NamedTuple):
    """What queries attend to, and the caches after the call."""

    keys: Value
    values: Value
    bias: Value | None
    allowed: Value  # which keys each query attends to
    caches: tuple[Value, Value]


def _cached(
    b: Builder, x: Operands[Value], options: Options, new: tuple[Value, Value], places: _Places
) -> _Cached:
    """Write new keys and values into a cache with a row for each position."""
    kept = [
        _kept(b, past, rows, store, places)
        for past, rows, store in zip((x.past_key, x.past_value), new, _stores(b, x, options), strict=True)
    ]
    allowed = _allowed(b, places, options)
    return _Cached(kept[0][0], kept[1][0], x.bias, allowed, (kept[0][1], kept[1][1]))


def _slid(
    b: Builder, x: Operands[Value], options: Options, new: tuple[Value, Value], places: _Places
) -> _Cached:
    """Append new keys and values to a cache that drops those before the window."""
    if x.past_key is None or x.past_value is None:
        raise Unconvertible("`sliding_window_cache` needs a cache")
    sizes = graphs.size(b, x.past_key, 2), options.local_window_size
    slide = sliding_cache_graphs.SlidingCache.of(b, places.starts, places.ends, sizes, places.queries)
    rows: list[Value] = []
    caches: list[Value] = []
    for past, added, store in zip((x.past_key, x.past_value), new, _stores(b, x, options), strict=True):
        every = b.Concat(past, added if store is None else store.stored(added), axis=2)
        rows.append(calls.typed(b, every, FLOAT) if store is None else store.restored(every))
        caches.append(slide.next(every))
    follow = b.Add(b.Unsqueeze(places.starts, ints(b, 1)), graphs.indices(b, places.queries))
    allowed = slide.allowed(b.Unsqueeze(follow, ints(b, 1, 3)), options.local_window_size)
    bias = None if x.bias is None else slide.of_rows(x.bias)
    return _Cached(rows[0], rows[1], bias, allowed, (caches[0], caches[1]))


def _places(b: Builder, x: Operands[Value]) -> _Places:
    total = b.Cast(b.Reshape(x.total, ints(b, 1)), to=INT64.number)
    ends = b.Add(b.Cast(b.Reshape(x.seqlens_k, ints(b, -1)), to=INT64.number), ints(b, 1))
    queries = graphs.size(b, x.query, 1)
    if x.lengths is not None:
        lengths = b.Cast(x.lengths, to=INT64.number)
        real = b.Less(
            b.Unsqueeze(graphs.indices(b, queries), ints(b, 1)), b.Unsqueeze(lengths, ints(b, 1, 2, 3))
        )
        return _Places(b.Sub(ends, lengths), ends, queries, total, real, b.Constant(value=np.array([False])))
    all_new = b.Equal(queries, total)
    return _Places(b.Where(all_new, ints(b, 0), b.Sub(ends, queries)), ends, queries, total, None, all_new)


def _heads(b: Builder, x: Operands[Value], options: Options) -> tuple[Value, Value, Value]:
    """Return queries, new keys and new values as (batch, heads, length, size), in float."""
    heads, kv = options.num_heads, options.kv_num_heads
    if x.key is None or x.value is None:
        every = graphs.split(b, calls.typed(b, x.query, FLOAT), heads + 2 * kv)
        return b.Split(every, ints(b, heads, kv, kv), axis=1, outputs=3)
    q, k, v = (calls.typed(b, t, FLOAT) for t in (x.query, x.key, x.value))
    return graphs.split(b, q, heads), graphs.split(b, k, kv), graphs.split(b, v, kv)


def _placed(
    b: Builder, x: Value, norm: Norm[Value], call: Operands[Value], options: Options, places: _Places
) -> Value:
    """Return queries or keys normalized and rotated, where the call says so."""
    if norm.weight is not None:
        numbers = Numbers(b, FLOAT)
        square = b.ReduceMean(b.Mul(x, x), ints(b, -1), keepdims=1)
        root = b.Sqrt(numbers.op("Add", square, norm.epsilon))
        x = b.Mul(b.Div(x, root), calls.typed(b, norm.weight, FLOAT))
    if not options.do_rotary or call.cos is None or call.sin is None:
        return x
    shape = call.cos.type.shape if isinstance(call.cos.type, TensorType) else None
    pairs = shape[1] if shape is not None else None
    if not isinstance(pairs, int):
        raise Unconvertible("the number of pairs in `cos_cache` is unknown, and heads are split by it")
    positions = _positions(b, call, places)
    rows = b.Slice(positions, ints(b, 0), graphs.size(b, x, 2), ints(b, 1))  # there may be no new keys
    cos, sin = (
        b.Unsqueeze(b.Gather(calls.typed(b, t, FLOAT), rows), ints(b, 1)) for t in (call.cos, call.sin)
    )
    return rotations.emitted(b, x, cos, sin, 2 * pairs, interleaved=options.rotary_interleaved or 0)


def _positions(b: Builder, x: Operands[Value], places: _Places) -> Value:
    """Return the positions of the queries, (batch, queries)."""
    follow = b.Add(b.Unsqueeze(places.starts, ints(b, 1)), graphs.indices(b, places.queries))
    if places.real is not None:  # padding has no row in the caches of the rotation
        follow = b.Where(b.Squeeze(places.real, ints(b, 1, 3)), follow, ints(b, 0))
    if x.positions is None:
        return follow
    first = b.Slice(b.Reshape(x.positions, ints(b, -1)), ints(b, 0), ints(b, 1))
    return b.Where(places.all_new, b.Add(follow, first), x.positions)


def _stores(b: Builder, x: Operands[Value], options: Options) -> list[key_caches.Quantisation | None]:
    """Return how keys and values are stored; None as they are."""
    stores: list[key_caches.Quantisation | None] = []
    kinds = (options.k_quant_type, options.v_quant_type)
    for past, scale, kind in zip((x.past_key, x.past_value), (x.k_scale, x.v_scale), kinds, strict=True):
        if kind == "NONE" or past is None or scale is None:
            stores.append(None)
            continue
        stored = element_of(past)
        if stored not in {INT8, UINT8}:
            raise Unconvertible(f"no operator joins tensors of {stored.name}, as the rows of a cache are")
        stores.append(key_caches.Quantisation.of(b, scale, kind, stored, options.kv_num_heads))
    return stores


def _kept(
    b: Builder, past: Value | None, new: Value, store: key_caches.Quantisation | None, places: _Places
) -> tuple[Value, Value]:
    """Return the rows to attend to, in float, and the cache after the new ones are written."""
    new = new if store is None else store.stored(new)
    if past is None:
        return calls.typed(b, new, FLOAT), new
    length = b.Max(graphs.size(b, past, 2), places.total)
    cache = key_caches.written(b, past, new, places.starts, length)
    rows = b.Slice(cache, ints(b, 0), places.total, ints(b, 2))
    return (calls.typed(b, rows, FLOAT) if store is None else store.restored(rows)), cache


def _allowed(b: Builder, places: _Places, options: Options) -> Value:
    """Return which keys each query attends to; it broadcasts to (batch, heads, queries, total)."""
    keys, ends = graphs.indices(b, places.total), b.Unsqueeze(places.ends, ints(b, 1, 2, 3))
    if not options.causal:
        return b.Less(keys, ends)
    steps = b.Unsqueeze(graphs.indices(b, places.queries), ints(b, 1))
    own = b.Min(b.Add(b.Unsqueeze(places.starts, ints(b, 1, 2, 3)), steps), b.Sub(ends, ints(b, 1)))
    allowed = b.LessOrEqual(keys, own)
    if options.local_window_size < 0:
        return allowed
    return b.And(allowed, b.Greater(keys, b.Sub(own, ints(b, options.local_window_size))))


def _attended(
    b: Builder, q: Value, cached: _Cached, x: Operands[Value], options: Options
) -> tuple[Value, Value]:
    """Return the weighted values of each query, and the scores that the call selects."""
    numbers, (k, v, bias, allowed, _) = Numbers(b, FLOAT), cached
    scaled = graphs.scaled(b, q, options.scale or None, FLOAT)
    scores = graphs.capped(b, graphs.scores(b, scaled, k), options.softcap or 0.0, FLOAT)
    if bias is not None:
        scores = b.Add(scores, calls.typed(b, bias, FLOAT))
    masked = b.Where(allowed, scores, numbers(float(np.finfo(np.float32).min)))
    sink = None if x.sink is None else calls.typed(b, x.sink, FLOAT)
    if sink is None and options.smooth_softmax == 1:
        sink = b.initializer("sink", np.zeros(options.num_heads, np.float32))
    p = b.Softmax(masked, axis=-1) if sink is None else _sunk(b, masked, sink)
    p = b.Where(allowed, p, numbers(0))
    shown = b.Where(allowed, scores, numbers(0)) if options.qk_output == SCORES else p
    return graphs.weighted(b, p, v, q), shown


def _sunk(b: Builder, masked: Value, sink: Value) -> Value:
    """Return the softmax of scores and a further one for each head, without the probability of that."""
    column = b.Expand(
        b.Reshape(sink, ints(b, 1, -1, 1, 1)), b.Concat(b.Shape(masked, end=3), ints(b, 1), axis=0)
    )
    p = b.Softmax(b.Concat(masked, column, axis=-1), axis=-1)
    return b.Slice(p, ints(b, 0), ints(b, -1), ints(b, -1))
