"""GroupQueryAttention as tensor expressions: rows scattered into the cache, and attention to its first rows.

The numbers of queries and keys are sizes of a plan, so `total_sequence_length` must follow from shapes: a
plan for a prompt has as many keys as queries, any other has more. The rows of the cache that an item of the
batch has are numbers of a run.
"""

from itertools import starmap
from typing import Any, NamedTuple

from sabir import loops
from sabir.ir import add, mul, sub
from sabir.loops import Expression, Lowering, NotLowered, Size, Stored
from sabir.opsets.families.attention import attention_kernels, attentions, rotations
from sabir.opsets.families.attention.attention_kernels import Heads, ScoreMasks, ScoreStages
from sabir.opsets.families.lowering import kernels
from sabir.opsets.microsoft.group_query_attention._behaviours import SCORES
from sabir.opsets.microsoft.group_query_attention._history import Norm, Operands, Options, v1

_SEQUENCE = 2  # the axis of the rows of a cache
_PAIRS = "uint8"  # the element type of a cache of four bits
_OFFSET = 8.0  # of numbers of four bits, which are stored without sign
_GREATEST_FLOAT8 = 448.0


class _Places(NamedTuple):
    """The position of the first query and the end of the keys of each item, int64 [batch], and the sizes.

    Queries attend to `seen` rows of the cache from the row `first` on.
    """

    starts: Expression
    ends: Expression
    queries: Size
    total: Size
    all_new: bool
    first: Size
    seen: Size


@v1.lower
def lower(*inputs: Expression, call: Lowering, **attributes: Any) -> tuple[Expression, ...]:
    x, options = Operands(*inputs), Options(**attributes)
    if options.sliding_window_cache:
        raise NotLowered("a cache that drops the keys before the window has no kernel")
    if x.lengths is not None:
        raise NotLowered("the numbers of queries are known at run time only")
    q, k, v = _heads(x, options)
    places = _places(x, q, 0 if call.wants(3) else options.local_window_size)
    q, k = (_placed(t, w, x, options, places) for t, w in zip((q, k), x.norms(options), strict=True))
    stored = [
        _Store(past, scale, kind, options)
        for past, scale, kind in (
            (x.past_key, x.k_scale, options.k_quant_type), (x.past_value, x.v_scale, options.v_quant_type)
        )
    ]  # fmt: skip
    presents = [store.written(new, places) for store, new in zip(stored, (k, v), strict=True)]
    rows = [store.read(cache, places) for store, cache in zip(stored, presents, strict=True)]
    y, shown = _attended(Heads(q, *rows), x, options, places)
    return (y, *presents, shown) if call.wants(3) else (y, *presents)


def _attended(
    heads: Heads, x: Operands[Expression], options: Options, places: _Places
) -> tuple[Expression, Expression]:
    """Return the weighted values, and the scores or probabilities: zeros where a query does not attend."""
    stages = ScoreStages(options.scale or heads.default_scale(), options.softcap or 0.0, heads.q.element)
    masks = _masks(heads, x, options, places)
    scores = [*heads.scores(masks, stages)]
    scores[attentions.PROBABILITIES] = p = _probabilities(heads, scores, x, options)
    shown = scores[attentions.BIASED] if options.qk_output == SCORES else p
    if masks.allowed is not None:
        shown = loops.where(masks.allowed, shown, 0.0)
    y = heads.packed(loops.cast(heads.weighted(p), x.query.element))
    return y, loops.cast(heads.apart(shown), x.query.element)


def _heads(x: Operands[Expression], options: Options) -> tuple[Expression, Expression, Expression]:
    """Return queries, new keys and new values as (batch, heads, length, size)."""
    heads, kv = options.num_heads, options.kv_num_heads
    if x.key is not None and x.value is not None:
        operands = ((x.query, heads), (x.key, kv), (x.value, kv))
        q, k, v = starmap(attention_kernels.unpacked, operands)
        return q, k, v
    every = attention_kernels.with_heads(x.query, heads + 2 * kv)
    spans = ((0, heads), (heads, kv), (heads + kv, kv))
    q, k, v = (loops.permute(loops.narrow(every, 2, at, n), (0, 2, 1, 3)) for at, n in spans)
    return q, k, v


def _places(x: Operands[Expression], q: Expression, window: int) -> _Places:
    """Return the places; with a window above 0, only the rows that it can have are seen."""
    sizes = loops.known_sizes(x.total)
    if sizes is None:
        raise NotLowered("the number of keys is known at run time only")
    batch, queries, total = q.shape[0], q.shape[_SEQUENCE], sizes[0]
    all_new = loops.equal(queries, total)
    if not all_new and not loops.at_least(total, add(queries, 1) or 0):
        raise NotLowered("whether there are more keys than queries is known at run time only")

    seen = total if all_new or batch != 1 else _seen(total, queries, window)
    narrowed = seen is not total
    least = total if narrowed else 1 if all_new else queries  # a lone item has all keys

    def counted(lengths: Expression) -> Expression:
        ends = loops.apply("add", loops.cast(loops.reshape(lengths, (batch,)), "int64"), 1)
        return _checked(ends, least, total)

    def first(ends: Expression) -> Expression:
        if all_new:
            return loops.apply("mul", ends, 0)
        return loops.apply("sub", ends, loops.sized("int64", queries))

    ends = loops.shared(f"ends of {queries} of {total} keys from {least}", x.seqlens_k, counted)
    starts = loops.shared(f"starts of {queries} of {total} keys", ends, first)
    unseen = sub(total, seen) if narrowed else 0
    if unseen is None:
        raise NotLowered("the number of keys is unknown")
    return _Places(starts, ends, queries, total, all_new, unseen, seen)


def _seen(total: Size, queries: Size, window: int) -> Size:
    """Return how many of the last rows the windows of all queries have, by a plan for long caches alone."""
    reach = add(queries, window - 1) if window > 0 else None
    found = None if reach is None else loops.smaller(total, reach)
    return total if found is None else found


def _checked(x: Expression, low: Size, high: Size) -> Expression:
    """Return int64 numbers; outside of `low` to `high` they are an error of the run."""
    after = add(high, 1)
    numbers = loops.count((1 if after is None else after,), 0)
    few = loops.apply("lt", x, loops.sized("int64", low))
    return loops.take(numbers, loops.where(few, loops.sized("int64", after), x), 0)


# ------------------------------------------------------------ queries and keys


def _placed(
    x: Expression, norm: Norm[Expression], call: Operands[Expression], options: Options, places: _Places
) -> Expression:
    """Return queries or keys normalized and rotated, where the call says so."""
    if norm.weight is not None:
        squares = loops.mean(loops.apply("mul", x, x), [-1])
        root = loops.apply("sqrt", loops.apply("add", squares, norm.epsilon))
        x = loops.apply("mul", loops.apply("div", x, root), norm.weight)
    if not options.do_rotary or call.cos is None or call.sin is None:
        return x
    pairs = loops.fixed(call.cos.shape[1])
    if pairs is None or not loops.equal(x.shape[_SEQUENCE], places.queries):
        raise NotLowered("the number of pairs that are rotated is known at run time only")
    positions = _positions(call, places)
    cos, sin = (_angles(cache, positions) for cache in (call.cos, call.sin))
    return rotations.lowered(x, cos, sin, 2 * pairs, interleaved=options.rotary_interleaved or 0)


def _positions(x: Operands[Expression], places: _Places) -> Expression:
    """Return the positions of the queries, (batch, queries)."""

    def counted(starts: Expression) -> Expression:
        numbers = loops.count((1, places.queries), 1)
        return loops.apply("add", loops.reshape(starts, (*starts.shape, 1)), numbers)

    follow = loops.shared(f"positions of {places.queries}", places.starts, counted)
    if x.positions is None:
        return follow
    if not places.all_new:
        return x.positions
    first = loops.cut(x.positions, (0, 0), (1, 1), (1, 1))
    return loops.apply("add", follow, first)


def _angles(cache: Expression, positions: Expression) -> Expression:
    """Return the rows of a cache of the rotation, (batch, 1, queries, pairs)."""

    def taken(at: Expression) -> Expression:
        return rotations.rows_at(cache, at)

    if isinstance(cache, Stored) and cache.array is None:
        rows = loops.shared(f"rows of slot {cache.slot}", positions, taken)
    else:
        rows = taken(positions)
    batch, queries, pairs = rows.shape
    return loops.reshape(rows, (batch, 1, queries, pairs))


# ------------------------------------------------------------ the cache


class _Store:
    """The cache of keys or of values: as it is, or in steps of a scale; pairs of four bits are bytes."""

    def __init__(
        self, past: Expression | None, scale: Expression | None, kind: str, options: Options
    ) -> None:
        self._past = past
        self._scale: Expression | None = None
        if kind == "NONE":
            return
        if past is None or scale is None:
            raise NotLowered("a quantised cache needs past rows and their scale")
        self._element = past.element
        size = _elements(past)
        self._scale = loops.reshape(
            scale, (1, 1, 1, 1) if kind == "PER_TENSOR" else (1, options.kv_num_heads, 1, size)
        )

    def written(self, new: Expression, places: _Places) -> Expression:
        """Return the cache with the new rows."""
        if self._scale is not None:
            new = self._stored(loops.apply("div", new, self._scale))
        past, count = self._past, new.shape[_SEQUENCE]
        if past is None:
            return new
        shape = (*new.shape[:_SEQUENCE], past.shape[_SEQUENCE], new.shape[3])
        past = loops.reshape(past, shape)
        if not loops.at_least(shape[_SEQUENCE], places.total):
            if not loops.equal(add(shape[_SEQUENCE], count) or 0, places.total):
                raise NotLowered("whether the cache has room for all keys is known at run time only")
            past = loops.pad(past, (0,) * 4, (0, 0, count, 0), 0)
        elif not loops.equal(count, places.queries):
            raise NotLowered("whether there are new keys is known at run time only")

        def counted(starts: Expression) -> Expression:
            starts = loops.reshape(starts, (new.shape[0], 1, 1, 1))
            return loops.apply("add", starts, loops.count((1, 1, count, 1), _SEQUENCE))

        rows = loops.shared(f"{count} rows", places.starts, counted)
        return loops.scatter(past, loops.expand(rows, new.shape), new, _SEQUENCE)

    def read(self, cache: Expression, places: _Places) -> Expression:
        """Return the rows of the cache that queries attend to."""
        rows = loops.narrow(cache, _SEQUENCE, places.first, places.seen)
        if self._scale is None:
            return rows
        numbers = _apart(rows) if rows.element == _PAIRS else rows
        return loops.apply("mul", loops.cast(numbers, "float"), self._scale)

    def _stored(self, steps: Expression) -> Expression:
        """Return floats in steps of the scale as the elements of the cache."""
        if self._element == "float8e4m3fn":
            return loops.cast(kernels.limited(steps, -_GREATEST_FLOAT8, _GREATEST_FLOAT8), self._element)
        whole = loops.apply("round", steps)
        if self._element == "int8":
            return loops.cast(kernels.limited(whole, -128.0, 127.0), self._element)
        size = loops.divided(steps.shape[3], 2)
        if size is None:
            raise NotLowered("whether the elements of a head are pairs is known at run time only")
        offset = loops.apply("add", kernels.limited(whole, -8.0, 7.0), _OFFSET)
        half = (*steps.shape[:3], size)
        low, high = (loops.cut(offset, (0, 0, 0, first), half, (1, 1, 1, 2)) for first in range(2))
        return loops.cast(loops.apply("add", low, loops.apply("mul", high, 16.0)), _PAIRS)


def _elements(cache: Expression) -> Size:
    """Return how many numbers a row of a head has; a byte of a cache of four bits has two."""
    size = mul(cache.shape[3], 2) if cache.element == _PAIRS else cache.shape[3]
    if size is None:
        raise NotLowered("the size of a head is known at run time only")
    return size


def _apart(rows: Expression) -> Expression:
    """Return the numbers of pairs of four bits, from -8 to 7, as int8."""
    size = _elements(rows)
    shifts = loops.cast(loops.apply("mul", loops.count((2,), 0), 4), _PAIRS)
    bytes_ = loops.reshape(rows, (*rows.shape, 1))
    numbers = loops.apply("bitwise_and", loops.apply("shr", bytes_, shifts), 15)
    whole = loops.reshape(loops.cast(numbers, "int8"), (*rows.shape[:3], size))
    return loops.apply("sub", whole, 8)


# ------------------------------------------------------------ scores


def _masks(heads: Heads, x: Operands[Expression], options: Options, places: _Places) -> ScoreMasks:
    """Return which keys each query attends to, and the bias.

    Queries after the end of their item, which are padding, attend as its last one.
    """
    window, keys = options.local_window_size, loops.count((1, places.seen), 1)

    def visible(ends: Expression) -> Expression:
        last = loops.apply("sub", heads.column(ends), 1)
        if options.causal:
            own = loops.apply("add", loops.count((places.queries, 1), 0), heads.column(places.starts))
            last = loops.apply("min", own, last)
        if places.first != 0:
            last = loops.apply("sub", last, loops.sized("int64", places.first))
        allowed = loops.apply("le", keys, last)
        if not options.causal or window < 0:
            return allowed
        return loops.apply("and", allowed, loops.apply("gt", keys, loops.apply("sub", last, window)))

    name = f"keys of {places.queries} queries {options.causal} {window} {heads.rank} {places.first}"
    allowed = loops.shared(name, places.ends, visible)
    masks = ScoreMasks(None, allowed, total=window != 0)
    if x.bias is None:
        return masks
    bias = x.bias if places.first == 0 else loops.narrow(x.bias, -1, places.first, places.seen)
    return heads.masked(masks, bias, padded=False)


def _probabilities(
    heads: Heads, scores: list[Expression], x: Operands[Expression], options: Options
) -> Expression:
    """Return the probabilities; the sum of a row has one more term for the sink, if there is one."""
    p, biased = scores[attentions.PROBABILITIES], scores[attentions.BIASED]
    if x.sink is None and options.smooth_softmax != 1:
        return p
    sink = loops.number(biased.element, 0)
    if x.sink is not None:
        arranged = loops.reshape(loops.cast(x.sink, biased.element), (1, options.num_heads, 1, 1))
        sink = heads.of_queries(arranged)
    return kernels.softmax_with(biased, sink)
