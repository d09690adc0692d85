"""The examples of GroupQueryAttention; where nothing is expected, onnxruntime is the oracle."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.opsets.microsoft.group_query_attention._history import group_query_attention
from sabir.opsets.typing import Array
from sabir.schema import Example

LOG3 = math.log(3)
HEADS, KV, SIZE = 4, 2, 16
NAMED: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV}


OPTIONS: tuple[dict[str, Any], ...] = (
    {"causal": 0},
    {"softcap": 0.5},
    {"scale": 0.7},
    {"scale": 0.0},
    {"local_window_size": 2},
    {"smooth_softmax": 1},
    {"smooth_softmax": 0},
)


class _Draws:
    """Random operands of a call."""

    def __init__(self, batch: int, queries: int) -> None:
        self.draw = np.random.default_rng(batch * 100 + queries)
        self.batch, self.queries = batch, queries

    def normal(self, *shape: int) -> Array:
        return self.draw.standard_normal(shape).astype(np.float32)

    def separate(self) -> list[Array]:
        return [self.normal(self.batch, self.queries, heads * SIZE) for heads in (HEADS, KV, KV)]

    def packed(self) -> list[Array | None]:
        return [self.normal(self.batch, self.queries, (HEADS + 2 * KV) * SIZE), None, None]

    def cache(self, filled: list[int], capacity: int) -> list[Array]:
        """Return keys and values that are zero from `filled` rows on in each batch item."""
        caches = [self.normal(self.batch, KV, capacity, SIZE) for _ in range(2)]
        for cache in caches:
            for item, end in enumerate(filled):
                cache[item, :, end:] = 0
        return caches

    def angles(self, positions: int, pairs: int = SIZE // 2) -> list[Array]:
        angles = self.draw.uniform(0, 6, (positions, pairs)).astype(np.float32)
        return [np.cos(angles), np.sin(angles)]


def lengths(*keys: int) -> list[Array]:
    """Return the operands `seqlens_k` and `total_sequence_length` for these numbers of keys."""
    return [np.array(keys, np.int32) - np.int32(1), np.array(max(keys), np.int32)]


TWO: dict[str, Any] = {"num_heads": 2, "kv_num_heads": 1}
QUERIES = np.array([[[0, 0], [LOG3, -LOG3]]], np.float32)  # of two heads
KEYS, VALUES = np.array([[[1], [0]]], np.float32), np.array([[[4], [0]]], np.float32)
ANSWERS = np.array([[[4, 4], [3, 1]]], np.float32)  # scores 0 and log 3 give the weights 1/4 and 3/4


@group_query_attention.examples
def by_hand() -> Iterator[Example]:
    every = [QUERIES, KEYS, VALUES, ANSWERS, KEYS[:, None], VALUES[:, None]]
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        q, k, v, *expected = (x.astype(kind) for x in every)
        options: dict[str, Any] = {**TWO, "outputs": 3, "tolerance": tolerance, "expect": expected}
        yield Example(1, q, k, v, None, None, *lengths(2), **options)
        yield Example(1, np.concatenate([q, k, v], axis=2), *(None,) * 4, *lengths(2), **options)
        empty = np.zeros((1, 1, 0, 1), kind)
        yield Example(1, q, k, v, empty, empty, *lengths(2), **options)
    float8, steps = np.zeros((1, 1, 0, 1), ml_dtypes.float8_e4m3fn), [np.array([0.5], np.float32)] * 2
    stored = [(2 * x[:, None]).astype(float8.dtype) for x in (KEYS, VALUES)]  # in steps of a half
    kinds: dict[str, Any] = {
        "kv_cache_bit_width": 8,
        "k_quant_type": "PER_TENSOR",
        "v_quant_type": "PER_TENSOR",
    }
    rest = [*lengths(2), *(None,) * 5, *steps]
    expected = [ANSWERS, *stored]
    yield Example(1, QUERIES, KEYS, VALUES, float8, float8, *rest, **TWO, **kinds, outputs=3, expect=expected)


@group_query_attention.examples
def normalized() -> Iterator[Example]:
    """Heads of one element become their sign: the scores of the second query are 6 and -6."""
    keys, norms = np.array([[[9], [-7]]], np.float32), np.array([[2], [3]], np.float32)
    p = 1 / (1 + math.exp(-12))
    expected = np.array([[[4, 4], [4 * p, 4 * (1 - p)]]], np.float32)
    call = [
        QUERIES + np.array([1, -1], np.float32),
        keys,
        VALUES,
        None,
        None,
        *lengths(2),
        *(None,) * 7,
        *norms,
    ]
    yield Example(1, *call, **TWO, tolerance=1e-4, expect=[expected])


@group_query_attention.examples
def steps() -> Iterator[Example]:
    """A prompt, one token after others in each item, and several in one item."""
    draws = _Draws(2, 3)
    yield Example(1, *draws.separate(), None, None, *lengths(3, 3), **NAMED, outputs=3)
    yield Example(1, *draws.packed(), None, None, *lengths(3, 2), **NAMED, outputs=3)
    yield Example(1, *draws.separate(), *draws.cache([0, 0], 5), *lengths(3, 3), **NAMED, outputs=3)
    yield Example(1, *draws.separate(), *draws.cache([0, 0], 0), *lengths(3, 3), **NAMED, outputs=3)
    draws = _Draws(2, 1)
    yield Example(1, *draws.separate(), *draws.cache([4, 4], 4), *lengths(5, 5), **NAMED, outputs=3)
    yield Example(1, *draws.packed(), *draws.cache([4, 1], 4), *lengths(5, 2), **NAMED, outputs=3)
    yield Example(1, *draws.packed(), *draws.cache([4, 1], 8), *lengths(5, 2), **NAMED, outputs=3)
    draws = _Draws(1, 3)
    yield Example(1, *draws.separate(), *draws.cache([4], 4), *lengths(7), **NAMED, outputs=3)
    yield Example(1, *draws.packed(), *draws.cache([4], 9), *lengths(7), **NAMED, outputs=3)
    none = [np.zeros((1, 0, KV * SIZE), np.float32)] * 2  # the queries read the cache, and add nothing
    query = draws.separate()[0]
    yield Example(1, query, *none, *draws.cache([5], 6), *lengths(5), **NAMED, outputs=3)
    yield Example(1, *draws.separate(), None, None, [[2]], [3], **NAMED, outputs=3)


@group_query_attention.examples
def rotations() -> Iterator[Example]:
    """Positions that follow the cache, and others; rotation of some elements, of neighbours and of halves."""
    for interleaved in (0, 1):
        options: dict[str, Any] = {**NAMED, "do_rotary": 1, "rotary_interleaved": interleaved}
        draws = _Draws(2, 3)
        angles = draws.angles(9)
        start = np.array([[2, 5, 6], [1, 7, 8]], np.int64)
        prompt = [None, None, *lengths(3, 2)]
        yield Example(1, *draws.separate(), *prompt, *angles, **options, outputs=3)
        yield Example(1, *draws.separate(), *prompt, *angles, start, **options, outputs=3)
        draws = _Draws(2, 1)
        place = np.array([[2], [7]], np.int64)
        cached = [*draws.cache([4, 1], 6), *lengths(5, 2)]
        yield Example(1, *draws.separate(), *cached, *angles, **options, outputs=3)
        yield Example(1, *draws.packed(), *cached, *angles, place, **options, outputs=3)
        draws = _Draws(1, 3)
        yield Example(1, *draws.packed(), *draws.cache([4], 4), *lengths(7), *angles, **options, outputs=3)
        wide = [draws.normal(1, 3, 32), draws.normal(1, 3, 32), draws.normal(1, 3, 32)]
        one: dict[str, Any] = {**options, "num_heads": 1, "kv_num_heads": 1}
        yield Example(1, *wide, None, None, *lengths(3), *draws.angles(4, 8), **one, outputs=3)
    halves = [x.astype(np.float16) for x in (*_Draws(1, 3).separate(), *_Draws(1, 3).angles(4))]
    options = {**NAMED, "do_rotary": 1}
    yield Example(1, *halves[:3], None, None, *lengths(3), *halves[3:], **options, outputs=3, tolerance=1e-2)


@group_query_attention.examples
def scores() -> Iterator[Example]:
    """Windows, bias, cap, scale and sinks, and the scores as an output."""
    draws = _Draws(2, 4)
    prompt = [*draws.packed(), None, None, *lengths(4, 4)]
    rotation = (None,) * 3
    for mode in (1, 2):
        for options in OPTIONS:
            yield Example(1, *prompt, **NAMED, **options, qk_output=mode, outputs=4)
        sink = draws.normal(HEADS)
        for batch, heads in ((1, 1), (2, HEADS)):
            biased = [*prompt, *rotation, draws.normal(batch, heads, 4, 4)]
            yield Example(1, *biased, **NAMED, qk_output=mode, outputs=4)
            yield Example(1, *biased, sink, **NAMED, softcap=2.0, qk_output=mode, outputs=4)
        yield Example(1, *prompt, *rotation, None, sink, **NAMED, qk_output=mode, outputs=4)
    draws = _Draws(2, 1)
    step = [*draws.separate(), *draws.cache([5, 5], 7), *lengths(6, 6)]
    yield Example(1, *step, **NAMED, local_window_size=3, outputs=3)
    yield Example(1, *step, **NAMED, causal=0, qk_output=2, outputs=4)


@group_query_attention.examples
def quantised() -> Iterator[Example]:
    """Caches of 8 and 4 bits, with one step and with one for each head and element."""
    draws = _Draws(2, 1)
    for bits, step, stored in ((8, 0.03, np.int8), (4, 0.4, np.uint8)):
        for kind in ("PER_TENSOR", "PER_CHANNEL"):
            shape = (1,) if kind == "PER_TENSOR" else (1, KV, 1, SIZE)
            steps = [draws.draw.uniform(step, 2 * step, shape).astype(np.float32) for _ in range(2)]
            pasts = [
                draws.draw.integers(0, 127, (2, KV, 4, SIZE * bits // 8)).astype(stored) for _ in range(2)
            ]
            options: dict[str, Any] = {
                **NAMED, "kv_cache_bit_width": bits, "k_quant_type": kind, "v_quant_type": kind
            }  # fmt: skip
            rest = [*lengths(5, 5), *(None,) * 5, *steps]
            yield Example(1, *draws.separate(), *pasts, *rest, **options, outputs=3, tolerance=1e-3)


@group_query_attention.examples
def sliding() -> Iterator[Example]:
    """Caches of six rows and a window of four: before the first key is dropped, and after."""
    options: dict[str, Any] = {**NAMED, "sliding_window_cache": 1, "local_window_size": 4, "outputs": 3}
    for batch, queries, past, filled in ((2, 1, (3, 6), (3, 6)), (2, 1, (7, 9), (4, 6)), (1, 3, (7,), (4,))):
        draws = _Draws(batch, queries)
        keys = lengths(*(before + queries for before in past))
        cache = draws.cache([*filled], 6)
        yield Example(1, *draws.packed(), *cache, *keys, **options)
        rotated = [*draws.separate(), *cache, *keys, *draws.angles(12)]
        bias = draws.normal(1, HEADS, queries, int(keys[1]))
        yield Example(1, *rotated, None, bias, draws.normal(HEADS), **options, do_rotary=1)
        steps = [draws.draw.uniform(0.03, 0.06, (1, KV, 1, SIZE)).astype(np.float32) for _ in range(2)]
        kinds: dict[str, Any] = {
            "kv_cache_bit_width": 8,
            "k_quant_type": "PER_CHANNEL",
            "v_quant_type": "PER_CHANNEL",
        }
        stored = [np.rint(x * 30).astype(np.int8) for x in cache]
        yield Example(
            1, *draws.packed(), *stored, *keys, *(None,) * 5, *steps, **options, **kinds, tolerance=1e-3
        )
    draws = _Draws(1, 9)
    yield Example(1, *draws.packed(), *draws.cache([0], 6), *lengths(9), **options)


@group_query_attention.examples
def padded_queries() -> Iterator[Example]:
    """Items with fewer queries than the others, and one with none; rotated, with a window, and sliding."""
    draws = _Draws(3, 3)
    own = np.array([2, 3, 0], np.int32)
    keys = [np.array([4, 6, 3], np.int32), np.array(7, np.int32)]
    cached = [*draws.separate(), *draws.cache([3, 4, 4], 9), *keys]
    padded = [*(None,) * 7, own]
    yield Example(1, *cached, None, None, *padded, **NAMED, qk_output=1, outputs=4)
    yield Example(1, *cached, *draws.angles(7), *padded, **NAMED, do_rotary=1, local_window_size=3, outputs=3)
    sliding: dict[str, Any] = {**NAMED, "sliding_window_cache": 1, "local_window_size": 4, "outputs": 3}
    yield Example(1, *draws.packed(), *draws.cache([3, 4, 4], 6), *keys, None, None, *padded, **sliding)
