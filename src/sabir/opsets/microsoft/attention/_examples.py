"""The examples of onnxruntime's Attention; where nothing is expected, onnxruntime is the oracle."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.opsets.microsoft.attention._history import attention
from sabir.opsets.typing import Array
from sabir.schema import Example

LOG3 = math.log(3)
HEADS, SIZE, WIDTH = 2, 4, 6


def normal(*shape: int) -> Array:
    """Return normal numbers, the same ones for a shape."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@attention.examples
def by_hand() -> Iterator[Example]:
    """The columns of the weights copy an element each; queries LOG3 and 0, keys 1 and 0, values 4 and 0."""
    x = np.array([[[LOG3, 1, 4], [0, 0, 0]]], np.float32)
    y, present = np.array([[[3], [2]]], np.float32), np.array([[[[[1], [0]]]], [[[[4], [0]]]]], np.float32)
    for kind, tolerance in ((np.float32, 1e-5), (np.float16, 4e-3), (ml_dtypes.bfloat16, 4e-2)):
        copied: list[Array] = [
            t.astype(kind) for t in (x, np.eye(3, dtype=np.float32), np.zeros(3, np.float32))
        ]
        expected = [y.astype(kind), present.astype(kind)]
        named: dict[str, Any] = {"num_heads": 1, "tolerance": tolerance, "outputs": 2, "expect": expected}
        yield Example(1, *copied, **named)
        yield Example(1, *copied[:2], **named)
        bias: Array = np.array([1, 2, 3], kind)
        yield Example(1, copied[0] - bias, copied[1], bias, **named)
    # positions 1 and 2 of three; by a mask of the whole sequence only the first key is no padding
    mask = np.array([[[[0, 0, 0], [1, 0, 0], [1, 0, 0]]]], np.int32)
    past = np.array([[[[[7]]]], [[[[8]]]]], np.float32)
    first = np.array([[[8], [8]]], np.float32)
    call = [x, np.eye(3, dtype=np.float32), np.zeros(3, np.float32), mask, past]
    yield Example(1, *call, num_heads=1, expect=[first])
    # the buffer of four has one key; two more are written after it
    buffer = np.array([[[[[7], [6], [5], [4]]]], [[[[8], [6], [5], [4]]]]], np.float32)
    after = np.array([[[[[7], [1], [0], [4]]]], [[[[8], [4], [0], [4]]]]], np.float32)
    filled = np.array([1], np.int32)
    call = [*call[:3], mask[..., :3], buffer, None, filled]
    shared: dict[str, Any] = {"num_heads": 1, "past_present_share_buffer": 1}
    yield Example(1, *call, **shared, outputs=2, expect=[first, after])


@attention.examples
def masks() -> Iterator[Example]:
    x, weights, bias = normal(2, 3, WIDTH), normal(WIDTH, 3 * HEADS * SIZE), normal(3 * HEADS * SIZE)
    named: dict[str, Any] = {"num_heads": HEADS}
    by_query = [[[1, 0, 1], [1, 1, 1], [0, 1, 0]], [[0, 0, 1], [1, 0, 0], [0, 0, 0]]]
    sums = [2, 3, 0, 3, 6, 0, 3, 6]
    for mask in ([2, 3], [2, 3, 1, 0], sums, [[1, 1, 0], [0, 1, 1]], [[1], [0]], by_query):
        given = np.array(mask, np.int32)
        for causal in (0, 1):
            yield Example(1, x, weights, bias, given, **named, unidirectional=causal, tolerance=2e-4)
        yield Example(1, x, weights, bias, given, **named, mask_filter_value=-3.0)
    for batch, heads in ((1, 1), (2, 1), (1, HEADS), (2, HEADS)):
        yield Example(1, x, weights, bias, None, None, normal(batch, heads, 3, 3), **named)
    yield Example(1, x, weights, bias, **named, scale=0.3)
    yield Example(1, x, weights, bias, **named, scale=0.0, outputs=2)
    wide = [8, 8, 12]
    yield Example(1, x, normal(WIDTH, 28), normal(28), **named, qkv_hidden_sizes=wide)
    yield Example(1, x, normal(WIDTH, 24), normal(24), **named, qkv_hidden_sizes=[8, 8, 8], outputs=2)
    yield Example(1, x[:, :1], weights, bias, **named, outputs=2)
    yield Example(1, x[:0], weights, bias, **named, expect=[np.zeros((0, 3, 8), np.float32)])


@attention.examples
def caches() -> Iterator[Example]:
    x, weights, bias = normal(2, 3, WIDTH), normal(WIDTH, 3 * HEADS * SIZE), normal(3 * HEADS * SIZE)
    past = normal(2, 2, HEADS, 2, SIZE)
    named: dict[str, Any] = {"num_heads": HEADS, "outputs": 2}
    for causal in (0, 1):
        options: dict[str, Any] = {**named, "unidirectional": causal}
        yield Example(1, x, weights, bias, None, past, **options)
        yield Example(1, x, weights, bias, [[1, 1, 1, 1, 0], [0, 1, 1, 1, 1]], past, **options)
        yield Example(1, x, weights, bias, [5, 4, 1, 0], past, **options)
        yield Example(1, x[:, :1], weights, bias, None, past, **options)
