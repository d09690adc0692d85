"""Inference and evaluation of GroupQueryAttention."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from sabir.base import EvaluationError, InferenceError, UnsupportedError
from sabir.ir import Dim, TensorType, dim_max, exact_quotient, may_be_equal, mul
from sabir.opsets.families.attention import attentions, key_caches, rotations, sliding_caches
from sabir.opsets.families.numbers.arithmetic import as_dim, widened
from sabir.opsets.families.shapes.ranks import (
    check_alike,
    check_broadcast,
    check_one,
    check_rank,
    check_shape,
    hold,
)
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.opsets.microsoft.group_query_attention._history import Norm, Operands, Options, v1
from sabir.opsets.typing import Array
from sabir.schema import Call

FOUR_BITS = 4
RANK = 4  # of a cache: (batch, kv heads, capacity, size)
BITS = {"uint8": FOUR_BITS, "int8": 8, "float8e4m3fn": 8}  # of a number in a quantised cache
SCORES = 1  # what `qk_output` selects, or the probabilities
PAIRS = (
    ("key", "value", "key", "value"),
    ("past_key", "past_value", "past_key", "past_value"),
    ("cos_cache", "sin_cache", "cos", "sin"),
    ("q_norm_weight", "k_norm_weight", "q_norm", "k_norm"),
)  # operands that are present together: their names, and the fields of Operands


# ------------------------------------------------------------ types


@v1.infer
def infer(*inputs: TensorType, call: Call, **attributes: Any) -> tuple[TensorType, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    _check_options(x, options, call)
    batch, queries, new, size = _sizes(x, options)
    _check_rotation(x, batch, queries, size)
    heads, kv, total = options.num_heads, options.kv_num_heads, _total(x.total)
    if x.past_key is None:
        total = same_dim([total, new], "`total_sequence_length` without a cache and the new keys")
    check_broadcast("attention_bias", x.bias, (batch, heads, queries, total))
    if x.bias is not None:
        check_shape("attention_bias", x.bias, None, None, queries, total)
    check_shape("head_sink", x.sink, heads)
    for name, weight in (("q_norm_weight", x.q_norm), ("k_norm_weight", x.k_norm)):
        check_shape(name, weight, size)
    check_rank("query_seqlens", x.lengths, 1)
    check_shape("query_seqlens", x.lengths, batch)
    check_rank("seqlens_k", x.seqlens_k, 1, 2)
    check_shape("seqlens_k", x.seqlens_k, *(batch, 1)[: x.seqlens_k.rank])
    stored = (
        exact_quotient(size, 2) if options.kv_cache_bit_width == FOUR_BITS and _quantised(options) else size
    )
    sliding = bool(options.sliding_window_cache)
    capacity = _capacity(x, (batch, kv, None, stored), total, new, sliding=sliding)
    element = x.query.element if x.past_key is None else x.past_key.element
    present = TensorType(element, (batch, kv, capacity, stored))
    y = x.query.with_shape(batch, queries, mul(size, heads))
    return y, present, present, x.query.with_shape(batch, heads, queries, total)


def _check_options(x: Operands[TensorType], options: Options, call: Call) -> None:
    """Raise InferenceError for operands and attributes that exclude or require one another."""
    for first, second, *fields in PAIRS:
        a, b = (getattr(x, field) for field in fields)
        if (a is None) != (b is None):
            raise InferenceError(f"`{first}` and `{second}` must be present or absent together")
    if x.lengths is not None and x.past_key is None:
        raise InferenceError("`query_seqlens` needs a cache: `past_key` and `past_value`")
    heads, kv = options.num_heads, options.kv_num_heads
    if heads % kv:
        raise InferenceError(f"{heads} heads of queries are not a multiple of {kv} heads of keys")
    if options.do_rotary and x.cos is None:
        raise InferenceError("`do_rotary` needs `cos_cache` and `sin_cache`")
    if not options.causal and options.local_window_size >= 0:
        raise InferenceError("`local_window_size` needs causal attention")
    if call.wants(3) and not options.qk_output:
        raise InferenceError("`output_qk` needs the attribute `qk_output`, 1 or 2")
    if options.sliding_window_cache:
        _check_window(x, options, call)
    _check_storage(x, options)


def _check_window(x: Operands[TensorType], options: Options, call: Call) -> None:
    """Raise InferenceError for a cache that drops keys, but has no window or no room for it."""
    if x.past_key is None or options.local_window_size < 1:
        raise InferenceError("`sliding_window_cache` needs a cache and `local_window_size`, of 1 or more")
    rows = x.past_key.shape[2] if x.past_key.shape is not None and x.past_key.rank == RANK else None
    if isinstance(rows, int) and rows < options.local_window_size:
        raise InferenceError(f"a cache of {rows} rows has no room for {options.local_window_size} keys")
    if call.wants(3):
        raise UnsupportedError(
            "scores are no output with `sliding_window_cache`; onnxruntime's CPU provider refuses them too"
        )


def _check_storage(x: Operands[TensorType], options: Options) -> None:
    """Raise InferenceError unless the cache has the element type of its storage."""
    if (options.k_quant_type == "NONE") != (options.v_quant_type == "NONE"):
        raise InferenceError("keys and values must both be quantised, or none of them")
    stored = None if x.past_key is None else x.past_key.element
    if not _quantised(options):
        if stored is not None and stored is not x.query.element:
            raise InferenceError(f"a cache of {stored} needs `k_quant_type` and `v_quant_type`")
        return
    if stored is None or x.k_scale is None or x.v_scale is None:
        raise InferenceError("a quantised cache needs `past_key`, `past_value`, `k_scale` and `v_scale`")
    if options.kv_cache_bit_width != BITS.get(stored.name):
        raise InferenceError(
            f"a quantised cache is int8 or float8e4m3fn with `kv_cache_bit_width` 8, or uint8 with 4; it is "
            f"{stored} with {options.kv_cache_bit_width}"
        )


def _quantised(options: Options) -> bool:
    return options.k_quant_type != "NONE"


def _sizes(x: Operands[TensorType], options: Options) -> tuple[Dim, Dim, Dim, Dim]:
    """Return the batch, the number of queries and of new keys, and the size of a head."""
    heads, kv = options.num_heads, options.kv_num_heads
    check_rank("query", x.query, 3)
    batch, queries, width = x.query.shape or (None,) * 3
    size = _per_head("query", width, heads + 2 * kv if x.key is None else heads)
    new = queries
    if x.key is not None and x.value is not None:
        check_shape("key", x.key, batch, None, mul(size, kv))
        check_shape("value", x.value, batch, None, mul(size, kv))
        shapes = [t.shape for t in (x.key, x.value) if t.shape is not None]
        batch = same_dim([batch, *(s[0] for s in shapes)], "the batch of queries, keys and values")
        new = same_dim([s[1] for s in shapes], "the lengths of `key` and `value`")
        sizes = [size, *(_per_head("key", s[2], kv) for s in shapes)]
        size = same_dim(sizes, "the sizes of queries, keys and values")
        readable = x.past_key is not None and x.lengths is None and not options.sliding_window_cache
        readable = readable and may_be_equal(new, 0)
        if not may_be_equal(new, queries) and not readable:
            raise InferenceError(f"`key` must have {queries} rows as `query`, or none; it has {new}")
        new = queries if new is None and x.past_key is None else new
    if _quantised(options) and options.kv_cache_bit_width == FOUR_BITS and isinstance(size, int) and size % 2:
        raise InferenceError(f"a head of {size} elements cannot be stored in pairs of four bits")
    for name, scale, kind in (
        ("k_scale", x.k_scale, options.k_quant_type),
        ("v_scale", x.v_scale, options.v_quant_type),
    ):
        _check_scale(name, scale, kind, mul(size, kv))
    return batch, queries, new, size


def _per_head(name: str, width: Dim, heads: int) -> Dim:
    if isinstance(width, int) and width % heads:
        raise InferenceError(f"a dimension of {width} of `{name}` cannot be split into {heads} heads")
    return exact_quotient(width, heads)


def _check_scale(name: str, scale: TensorType | None, kind: str, channels: Dim) -> None:
    if scale is None or kind == "NONE":
        return
    needed = 1 if kind == "PER_TENSOR" else channels
    if not may_be_equal(scale.size, needed):
        raise InferenceError(f"`{name}` must have {needed} elements for {kind}, and is {scale}")


def _check_rotation(x: Operands[TensorType], batch: Dim, queries: Dim, size: Dim) -> None:
    if x.positions is not None:
        check_shape("position_ids", x.positions, batch, queries)
    if x.cos is None or x.sin is None:
        return
    for name, cache in (("cos_cache", x.cos), ("sin_cache", x.sin)):
        check_rank(name, cache, 2)
    check_alike(["cos_cache", "sin_cache"], [x.cos, x.sin])
    pairs = x.cos.shape[1] if x.cos.shape is not None else None
    if isinstance(pairs, int) and isinstance(size, int) and 2 * pairs > size:
        raise InferenceError(f"{pairs} pairs cannot be rotated in a head of {size} elements")


def _total(total: TensorType) -> Dim:
    check_one("total_sequence_length", total)
    return as_dim(total.known[0]) if total.known else None


def _capacity(x: Operands[TensorType], shape: tuple[Dim, ...], total: Dim, new: Dim, *, sliding: bool) -> Dim:
    """Return the number of rows of the new cache; checks the old one."""
    if x.past_key is None or x.past_value is None:
        return total
    check_shape("past_key", x.past_key, *shape)
    check_shape("past_value", x.past_value, *shape)
    lengths = [t.shape[2] for t in (x.past_key, x.past_value) if t.shape is not None]
    rows = same_dim(lengths, "the lengths of `past_key` and `past_value`")
    if sliding:
        return rows
    if isinstance(total, int) and isinstance(rows, int) and isinstance(new, int):
        check_total(total, rows, new)
    return None if total is None or rows is None else dim_max(rows, total)


def check_total(total: int, rows: int, new: int) -> None:
    """Raise InferenceError unless the cache has room for all keys, or the new ones follow its last row."""
    if total < new or (total > rows and total != rows + new):
        raise InferenceError(
            f"`total_sequence_length` must be {rows + new}, or from {new} to {rows}, for a cache of {rows} "
            f"rows and {new} new keys; it is {total}"
        )


# ------------------------------------------------------------ values


@v1.evaluate
def evaluate(*inputs: Array, call: Call, **attributes: Any) -> tuple[Array, ...]:
    hold(infer, *inputs, call=call, **attributes)
    x, options = Operands(*inputs), Options(**attributes)
    q, k, v = _heads(x, options)
    total = int(x.total.item())
    if not options.sliding_window_cache:
        check_total(total, 0 if x.past_key is None else x.past_key.shape[2], k.shape[2])
    starts, ends = _places(x, q.shape[2], total, sliding=bool(options.sliding_window_cache))
    q, k = (_placed(t, w, x, options, starts) for t, w in zip((q, k), x.norms(options), strict=True))
    k, v = (t.astype(x.query.dtype, copy=False) for t in (k, v))
    real = None if x.lengths is None else _is_real(x.lengths, q.shape[2])
    if real is not None:
        k, v = (np.where(real, t, np.zeros((), t.dtype)) for t in (k, v))
    cached = (_slid if options.sliding_window_cache else _cached)(x, options, (k, v), starts, ends)
    y, scores = _attended(widened(q), cached, x, options, wanted=call.wants(3))
    if real is not None:
        y, scores = np.where(real, y, 0), None if scores is None else np.where(real, scores, 0)
    outputs = (attentions.joined(y).astype(x.query.dtype, copy=False), *cached.caches)
    return outputs if scores is None else (*outputs, scores.astype(x.query.dtype, copy=False))


def _places(x: Operands[Array], queries: int, total: int, *, sliding: bool) -> tuple[Array, Array]:
    """Return the position of the first query of each batch item, and the end of its keys, as int64."""
    ends = x.seqlens_k.astype(np.int64) + 1
    if x.lengths is None or x.past_key is None:
        return key_caches.places(ends, queries, total, "seqlens_k")
    ends, lengths = ends.reshape(-1), x.lengths.astype(np.int64)
    if np.any((ends < 1) | (ends > total)):
        raise EvaluationError(f"`seqlens_k` must count from 1 to {total} keys; it counts {ends.tolist()}")
    if np.any((lengths < 0) | (lengths > np.minimum(queries, ends))):
        raise EvaluationError(
            f"`query_seqlens` must be from 0 to {np.minimum(queries, ends).tolist()}, and is "
            f"{lengths.tolist()}"
        )
    starts, rows = ends - lengths, x.past_key.shape[2]
    if np.any(starts > rows):
        raise EvaluationError(f"`query_seqlens` leaves {starts.tolist()} keys to a cache of {rows} rows")
    if not sliding and np.any(starts + queries > max(rows, total)):
        raise EvaluationError(
            f"a cache of {max(rows, total)} rows has no room for {queries} rows after {starts.max()} keys; "
            "those of padding need rows too"
        )
    return starts, ends


def _is_real(lengths: Array, queries: int) -> Array:
    """Return which queries are no padding, (batch, 1, queries, 1)."""
    return np.expand_dims(np.arange(queries) < lengths[:, None], (1, 3))


class _Cached(NamedTuple):
    """What queries attend to, and the caches after the call."""

    keys: Array
    values: Array
    bias: Array | None
    allowed: Array  # which keys each query attends to
    caches: tuple[Array, Array]


def _cached(
    x: Operands[Array], options: Options, new: tuple[Array, Array], starts: Array, ends: Array
) -> _Cached:
    """Write new keys and values into a cache with a row for each position."""
    total, queries = int(x.total.item()), x.query.shape[1]
    kept = [
        _kept(past, rows, store, starts, total)
        for past, rows, store in zip((x.past_key, x.past_value), new, _stores(x, options), strict=True)
    ]
    allowed = _allowed(starts, ends, (queries, total), options)
    return _Cached(kept[0][0], kept[1][0], x.bias, allowed, (kept[0][1], kept[1][1]))


def _slid(
    x: Operands[Array], options: Options, new: tuple[Array, Array], starts: Array, ends: Array
) -> _Cached:
    """Append new keys and values to a cache that drops those before the window."""
    if x.past_key is None or x.past_value is None:
        raise InferenceError("`sliding_window_cache` needs a cache")
    queries, window = x.query.shape[1], options.local_window_size
    if x.lengths is None and np.any(ends < queries):
        raise EvaluationError(f"`seqlens_k` must be {queries - 1} or more: a sliding cache has no padding")
    slide = sliding_caches.SlidingCache.of(starts, ends, (x.past_key.shape[2], window), queries)
    rows: list[Array] = []
    caches: list[Array] = []
    for past, added, store in zip((x.past_key, x.past_value), new, _stores(x, options), strict=True):
        every = np.concatenate([past, added if store is None else store.stored(added)], axis=2)
        rows.append(every if store is None else store.restored(every))
        caches.append(slide.next(every))
    own: Array = np.expand_dims(_from(starts, queries), (1, 3))
    bias = None if x.bias is None else slide.of_rows(x.bias)
    return _Cached(rows[0], rows[1], bias, slide.allowed(own, window), (caches[0], caches[1]))


def _heads(x: Operands[Array], options: Options) -> tuple[Array, Array, Array]:
    """Return queries, new keys and new values as (batch, heads, length, size)."""
    heads, kv = options.num_heads, options.kv_num_heads
    if x.key is None or x.value is None:
        every = attentions.split(x.query, heads + 2 * kv)
        return every[:, :heads], every[:, heads : heads + kv], every[:, heads + kv :]
    return attentions.split(x.query, heads), attentions.split(x.key, kv), attentions.split(x.value, kv)


def _placed(x: Array, norm: Norm[Array], call: Operands[Array], options: Options, starts: Array) -> Array:
    """Return queries or keys normalized and rotated, where the call says so."""
    if norm.weight is not None:
        x = key_caches.normalized(x, norm.weight, norm.epsilon)
    if not options.do_rotary or not x.shape[2]:
        return x
    cos, sin = _angles(call, starts, x.shape[2])
    return rotations.rotated(x, cos, sin, interleaved=options.rotary_interleaved or 0)


def _angles(x: Operands[Array], starts: Array, queries: int) -> tuple[Array, Array]:
    """Return the cosines and sines of each query, (batch, 1, queries, pairs)."""
    positions = _from(starts, queries)
    if x.lengths is not None:
        positions = np.minimum(positions, (starts + x.lengths - 1).clip(0)[:, None])  # of padding: any
    if x.positions is not None and x.positions.size:
        is_continued = queries != x.total.item() or x.lengths is not None
        positions = x.positions if is_continued else positions + x.positions.flat[0]
    if x.cos is None or x.sin is None:
        raise InferenceError("`do_rotary` needs `cos_cache` and `sin_cache`")
    if positions.size and not 0 <= positions.min() <= positions.max() < len(x.cos):
        raise EvaluationError(
            f"positions {positions.min()} to {positions.max()} are not rows of `cos_cache`, which has "
            f"{len(x.cos)}"
        )
    return x.cos[positions][:, None], x.sin[positions][:, None]


def _stores(x: Operands[Array], options: Options) -> Iterator[key_caches.Quantisation | None]:
    """Yield how keys and values are stored; None as they are."""
    kinds = (options.k_quant_type, options.v_quant_type)
    for past, scale, kind in zip((x.past_key, x.past_value), (x.k_scale, x.v_scale), kinds, strict=True):
        if kind == "NONE" or past is None or scale is None:
            yield None
        else:
            yield key_caches.Quantisation.of(scale, kind, past.dtype, options.kv_num_heads)


def _kept(
    past: Array | None, new: Array, store: key_caches.Quantisation | None, starts: Array, total: int
) -> tuple[Array, Array]:
    """Return the rows to attend to, and the cache after the new ones are written."""
    length = max(total, 0 if past is None else past.shape[2])
    cache = key_caches.written(past, new if store is None else store.stored(new), starts, length)
    rows = cache[:, :, :total]
    return (rows if store is None else store.restored(rows)), cache


def _allowed(starts: Array, ends: Array, scores: tuple[int, int], options: Options) -> Array:
    """Return which keys each query attends to, (batch, 1, queries, total).

    Queries after the end of their item, which are padding, attend as its last one.
    """
    queries, total = scores
    keys, end = np.arange(total), ends[:, None, None, None]
    if not options.causal:
        return np.broadcast_to(keys < end, (len(ends), 1, queries, total))
    places = np.minimum(_from(starts, queries)[:, None, :, None], end - 1)
    allowed = keys <= places
    return (
        allowed & (keys > places - options.local_window_size) if options.local_window_size >= 0 else allowed
    )


def _from(starts: Array, count: int) -> Array:
    """Return `count` positions from each start on."""
    return starts[:, None] + np.arange(count)


def _attended(
    q: Array, cached: _Cached, x: Operands[Array], options: Options, *, wanted: bool
) -> tuple[Array, Array | None]:
    """Return the weighted values of each query, and the scores or probabilities if they are wanted."""
    k, v, bias, allowed, _ = cached
    masks = attentions.ScoreMasks(None if bias is None else widened(bias), allowed)
    sink = np.zeros(options.num_heads, np.float32) if options.smooth_softmax == 1 else None
    sink = sink if x.sink is None else x.sink
    if sink is not None:
        k, v, masks = key_caches.with_sink(k, v, masks, sink)
    stage = attentions.BIASED if options.qk_output == SCORES else attentions.PROBABILITIES
    stages = attentions.ScoreStages(
        options.scale or attentions.default_scale(q.shape[3]),
        options.softcap or 0.0,
        requested=stage if wanted else None,
    )
    y, scores = attentions.attend(q, k, v, masks, stages)
    return y, None if scores is None else np.where(allowed, scores[..., : allowed.shape[3]], 0)
