"""The examples of Attention."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.opsets.onnx.attention._history import attention
from sabir.opsets.typing import Array
from sabir.schema import Example

LOG3 = math.log(3)


@attention.examples
def heads_and_scale() -> Iterator[Example]:
    """By hand: scores 0 and log 3 give the weights 1/4 and 3/4."""
    f = np.float32
    q, k = np.array([[[[LOG3]], [[-LOG3]]]], f), np.array([[[[0], [1]]]], f)  # two heads of Q, one of K
    v = np.array([[[[4, 8], [0, -4]]]], f)
    y = np.array([[[[1, -1]], [[3, 5]]]], f)
    probabilities = [[[[0.25, 0.75]], [[0.75, 0.25]]]]
    raw = np.array([[[[0, LOG3]], [[0, -LOG3]]]], f)
    for opset in (23, 24, 25):
        yield Example(opset, q, k, v, outputs=4, expect=[y, k, v, raw])
        yield Example(opset, q, k, v, outputs=4, qk_matmul_output_mode=3, expect=[y, k, v, probabilities])
        yield Example(opset, q / 2, k, v, scale=2.0, expect=[y])
        packed = [x.swapaxes(1, 2).reshape(1, x.shape[2], -1) for x in (q, k, v)]
        joined = y.reshape(1, 1, 4)
        yield Example(opset, *packed, q_num_heads=2, kv_num_heads=1, outputs=3, expect=[joined, k, v])
        # the first key and value come from the cache
        past = [q, k[:, :, 1:], v[:, :, 1:], None, k[:, :, :1], v[:, :, :1]]
        yield Example(opset, *past, outputs=3, expect=[y, k, v])
        yield Example(opset, *past, is_causal=1, expect=[y])
    for kind in (np.float16, np.float64, ml_dtypes.bfloat16):
        yield Example(25, *(x.astype(kind) for x in (q, k, v)), tolerance=2e-2, expect=[y.astype(kind)])
    halves = [x.astype(np.float16) for x in (q, k, y)]
    yield Example(
        24, *halves[:2], v, softmax_precision=11, tolerance=1e-3, outputs=3, expect=[halves[2], halves[1], v]
    )
    for precision in (1, 10, 16):
        yield Example(23, q, k, v, softmax_precision=precision, tolerance=1e-2, expect=[y])
    # a score of 60 becomes 30 tanh(2), and its probability 1
    y, capped = [[[[0, -4]], [[4, 8]]]], raw * f(30 * math.tanh(2) / LOG3)
    for mode, scores in enumerate((raw * f(60 / LOG3), capped, capped)):
        options: dict[str, Any] = {"scale": 60 / LOG3, "softcap": 30.0, "qk_matmul_output_mode": mode}
        yield Example(24, q, k, v, **options, outputs=4, expect=[y, k, v, scores])
    nothing = np.zeros((1, 1, 0, 1), f)
    yield Example(25, q, nothing, nothing, expect=[np.zeros((1, 2, 1, 1), f)])
    yield Example(25, nothing, k, v, expect=[np.zeros((1, 1, 0, 2), f)])


@attention.examples
def masks() -> Iterator[Example]:
    """Two queries with equal scores for three keys have the average of the values of the allowed keys."""
    q, k = np.zeros((1, 1, 2, 1), np.float32), np.zeros((1, 1, 3, 1), np.float32)
    v = np.array([[[[6], [12], [24]]]], np.float32)
    low, past = -np.inf, (k[:, :, :1], v[:, :, :1])
    some = [[True, False, False], [False, False, False]]
    added = np.array([[0, low, 0], [0, 0, math.log(2)]], np.float32)
    for opset in (23, 24, 25):
        yield Example(opset, q, k, v, some, expect=[_column(6, 0)])
        yield Example(opset, q, k, v, added, expect=[_column(15, 16.5)])
        yield Example(opset, q, k, v, np.zeros((1, 1, 1, 3), np.int32), expect=[_column(14, 14)])
        yield Example(opset, q, k, v, is_causal=1, expect=[_column(6, 9)])
        yield Example(opset, q, k[:, :, 1:], v[:, :, 1:], None, *past, is_causal=1, expect=[_column(9, 14)])
        yield Example(
            opset, q, k[:, :, 1:], v[:, :, 1:], added, *past, is_causal=1, expect=[_column(6, 16.5)]
        )
    stages = [[0, 0, 0]] * 2, [[0, low, low], [low] * 3], [[1, 0, 0], [0] * 3]
    for mode, scores in zip((1, 2, 3), stages, strict=True):
        requested = [[scores]]
        yield Example(
            23, q, k, v, some, outputs=4, qk_matmul_output_mode=mode, expect=[_column(6, 0), k, v, requested]
        )
    column = [[True], [False]]
    yield Example(23, q, k, v, column, expect=[_column(14, 0)])  # broadcast, where later versions fill up
    for opset in (24, 25):
        yield Example(opset, q, k, v, column, expect=[_column(6, 0)])
        yield Example(opset, q, k, v, added[1:, 1:], expect=[_column(10, 10)])


@attention.examples
def caches_outside_and_windows() -> Iterator[Example]:
    q, k = np.zeros((1, 1, 2, 1), np.float32), np.zeros((1, 1, 3, 1), np.float32)
    v = np.array([[[[6], [12], [24]]]], np.float32)
    inputs, two = [q, k, v, None, None, None], np.array([2])
    for opset in (24, 25):
        yield Example(opset, *inputs, two, expect=[_column(9, 9)])
        yield Example(opset, *inputs, two, is_causal=1, expect=[_column(6, 9)])
        yield Example(opset, *inputs, two - 1, is_causal=1, expect=[_column(0, 6)])
        batch = [np.concatenate([x, x]) for x in (q, k, v)]
        both = np.concatenate([_column(9, 14), _column(6, 9)])
        yield Example(opset, *batch, None, None, None, [3, 2], is_causal=1, expect=[both])
        mask = np.array([[0, math.log(2)]], np.float32)
        yield Example(opset, q, k, v, mask, None, None, two, is_causal=1, expect=[_column(6, 10)])
    windows = (0, -1, (14, 18)), (0, 0, (6, 12)), (1, 1, (9, 14)), (-1, 0, (6, 9)), (2, 5, (14, 14))
    for left, right, y in windows:
        yield Example(25, q, k, v, left_window_size=left, right_window_size=right, expect=[_column(*y)])
    yield Example(25, q, k, v, left_window_size=0, right_window_size=1, is_causal=1, expect=[_column(6, 12)])
    yield Example(25, *inputs, two + 1, left_window_size=1, right_window_size=0, expect=[_column(9, 18)])
    past = [q, k[:, :, 1:], v[:, :, 1:], [True, True, False], k[:, :, :1], v[:, :, :1]]
    yield Example(25, *past, left_window_size=0, expect=[_column(12, 0)])


def _column(*values: float) -> Array:
    return np.array(values, np.float32).reshape(1, 1, -1, 1)
