"""The examples of MultiHeadAttention; where nothing is expected, onnxruntime is the oracle."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.opsets.microsoft.multi_head_attention._history import multi_head_attention
from sabir.opsets.typing import Array
from sabir.schema import Example

LOG3 = math.log(3)
HEADS, SIZE = 2, 4
QUERIES = np.array([[[LOG3, -LOG3], [0, 0]]], np.float32)  # of two heads
KEYS, VALUES = np.array([[[1, 1], [0, 0]]], np.float32), np.array([[[4, 4], [0, 0]]], np.float32)
ANSWERS = np.array([[[3, 1], [2, 2]]], np.float32)  # scores log 3 and 0 give the weights 3/4 and 1/4


def normal(*shape: int) -> Array:
    """Return normal numbers, the same ones for a shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@multi_head_attention.examples
def by_hand() -> Iterator[Example]:
    """In every layout and type; a bias that makes the queries, the keys and the values what they are."""
    k, v = [x.reshape(1, 2, 2, 1).swapaxes(1, 2) for x in (KEYS, VALUES)]
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 4e-3), (ml_dtypes.bfloat16, 4e-2)):
        every = (QUERIES, KEYS, VALUES, ANSWERS, k, v)
        typed: list[Array] = [x.astype(kind) for x in every]
        q, keys, values, y, *presents = typed
        named: dict[str, Any] = {"num_heads": 2, "tolerance": tolerance}
        yield Example(1, q, keys, values, **named, outputs=3, expect=[y, *presents])
        yield Example(1, q, *presents, **named, expect=[y])
        apart = [x.reshape(1, 2, 2, 1, 1) for x in (q, keys, values)]
        yield Example(1, q, np.concatenate(apart[1:], axis=3), **named, expect=[y])
        yield Example(1, np.concatenate(apart, axis=3), **named, expect=[y])
        bias: Array = np.array([1, 2, 3, 4, 5, 6], kind)
        moved = [x - bias[2 * i : 2 * i + 2] for i, x in enumerate((q, keys, values))]
        yield Example(1, *moved, bias, **named, expect=[y])
        yield Example(1, moved[0], *presents, bias, **named, expect=[y])
        both = np.concatenate([x.reshape(1, 2, 2, 1, 1) for x in moved], axis=3)
        yield Example(1, both, None, None, bias, **named, expect=[y])


@multi_head_attention.examples
def masks() -> Iterator[Example]:
    q, k, v = normal(2, 3, 8), normal(2, 5, 8), normal(2, 5, 12)
    named: dict[str, Any] = {"num_heads": HEADS}
    sums = [3, 5, 0, 3, 6, 0, 5, 10]
    by_key = [[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]]
    by_query = [[[1, 0, 1, 1, 0]] * 3, [[0, 1, 1, 0, 1], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]]]
    for mask in ([3, 5], sums, by_key, by_query):
        given = np.array(mask, np.int32)
        yield Example(1, q, k, v, None, given, **named)
        yield Example(1, q, k, v, None, given, **named, mask_filter_value=-2.5)
    for batch, heads in ((1, 1), (2, 1), (1, HEADS), (2, HEADS)):
        bias = normal(batch, heads, 3, 5)
        yield Example(1, q, k, v, None, None, bias, **named)
        yield Example(1, q, k, v, normal(28), np.array(by_key, np.int32), bias, **named, outputs=4)
    yield Example(1, q, k, v, **named, scale=0.3)
    yield Example(1, q, k, v, **named, scale=0.0)
    same = [normal(2, 3, 8), normal(3, 2, 8).reshape(2, 3, 8), normal(2, 3, 12)]
    yield Example(1, *same, **named, unidirectional=1)
    yield Example(1, *same, None, np.array([2, 3], np.int32), **named, unidirectional=1, outputs=4)


@multi_head_attention.examples
def caches() -> Iterator[Example]:
    q, k, v = (normal(2, 3, 8 + i)[..., :8] for i in range(3))
    past = [normal(2, HEADS, 2, SIZE + i)[..., :SIZE] for i in range(2)]
    named: dict[str, Any] = {"num_heads": HEADS, "outputs": 4}
    mask = np.array([[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], np.int32)
    yield Example(1, q, k, v, None, None, None, *past, **named)
    yield Example(1, q, k, v, normal(24), None, None, *past, **named, unidirectional=1)
    yield Example(1, q, k, v, None, mask, normal(2, HEADS, 3, 5), *past, **named)
    apart = [normal(2, HEADS, 5, SIZE + i)[..., :SIZE] for i in range(2)]
    yield Example(1, q, *apart, normal(24), **named)
    yield Example(1, q, *apart, None, None, None, *past, **named)
    buffers = [normal(2, HEADS, 7, SIZE + i)[..., :SIZE] for i in range(2)]
    filled = np.array([2], np.int32)
    yield Example(1, q, k, v, None, None, None, *buffers, filled, **named)
    yield Example(1, q, k, v, None, mask, None, *buffers, filled, **named, unidirectional=1)
    one = [t[:, :1] for t in (q, k, v)]
    beams = np.array([[[1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0]]], np.int32)
    yield Example(1, *one, None, None, None, *buffers, filled, beams, **named)
    yield Example(1, *one, normal(24), None, None, *buffers, filled, beams[:, ::-1], **named)
    nothing = np.zeros((1, 0, 8), np.float32)
    yield Example(1, nothing, k[:1], v[:1], num_heads=HEADS)
    yield Example(1, q[:1], nothing, nothing, num_heads=HEADS)
