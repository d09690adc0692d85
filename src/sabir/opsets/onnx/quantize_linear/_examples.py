"""The examples of QuantizeLinear."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.elements import element
from sabir.opsets.onnx.quantize_linear._history import quantize_linear
from sabir.schema import Example

_ALL = (10, 13, 19, 21, 23, 24, 25, 28)


@quantize_linear.examples
def whole_tensors() -> Iterator[Example]:
    f = np.float32
    x = [[0, 1, 3, 5, 7], [-1, 1e30, -np.inf, np.nan, 255.4]]
    halved = np.array([[0, 0, 2, 2, 4], [0, 255, 0, 0, 128]], np.uint8)  # by hand: ties go to even
    shifted = [[-3, -3, -1, -1, 1], [-3, 127, -128, -128, 125]]
    for opset in _ALL:
        yield Example(opset, x, f(2), expect=[halved])
        yield Example(opset, x, f(2), np.int8(-3), expect=[shifted])
        yield Example(opset, np.zeros((0, 2), f), f(2), expect=[np.zeros((0, 2), np.uint8)])
        yield Example(opset, -9.5, f(1), np.uint8(10), expect=[0])
    for opset in (10, 13):
        yield Example(opset, np.array([7, 2**31 - 1], np.int32), 2, expect=[np.array([4, 255], np.uint8)])
    counts = np.array([5, -(2**31), 7], np.int32)
    for opset in (19, 23):  # 5/2 and 7/2 are ties
        yield Example(opset, counts, np.int32(2), np.int8(1), expect=[[3, -128, 5]])
    yield Example(13, x, [2], np.array([-3], np.int8), axis=7, expect=[shifted])


@quantize_linear.examples
def axes_and_blocks() -> Iterator[Example]:
    f = np.float32
    x = np.array([[10, 20, 30], [40, 50, -60]], f)
    rows, columns = np.array([1, 10], f), np.array([1, 10, 100], f)
    by_row, by_column = [[13, 23, 33], [8, 9, 0]], np.array([[10, 2, 0], [40, 5, 0]], np.uint8)
    for opset in _ALL[1:]:
        yield Example(opset, x, rows, np.array([3, 4], np.uint8), axis=0, expect=[by_row])
        yield Example(opset, x, columns, axis=-1, expect=[by_column])
    blocks = np.array([[1, 10], [4, 20]], f), np.array([[0, 1], [2, 3]], np.int8)
    to_int16: dict[str, Any] = {"block_size": 2, "output_dtype": 5}
    for opset in _ALL[3:]:  # the second block of a row has one element
        yield Example(opset, x, *blocks, axis=1, block_size=2, expect=[[[10, 20, 4], [12, 14, 0]]])
        yield Example(opset, x[0], rows[::-1], axis=0, **to_int16, expect=[np.array([1, 2, 30], np.int16)])
        y = np.array([[10, 20, 30], [4, 5, 0]], np.uint8)
        yield Example(opset, x, rows, axis=0, output_dtype=2, expect=[y])
        yield Example(opset, x, 1e-4, np.uint16(5), block_size=3, expect=[[[65535] * 3, [65535, 65535, 0]]])


@quantize_linear.examples
def small_types() -> Iterator[Example]:
    f = np.float32
    x = [0.5, 1e6, -1e6, 17, -3.4]
    float8 = {
        "float8_e4m3fn": (448, np.nan, 18),
        "float8_e4m3fnuz": (240, np.nan, 18),
        "float8_e5m2": (57344, np.inf, 16),
        "float8_e5m2fnuz": (57344, np.nan, 16),
    }
    for name, (most, over, near) in float8.items():
        kind = np.dtype(getattr(ml_dtypes, name))
        saturated, unlimited = ([0.5, end, -end, 16, -3.5] for end in (most, over))
        for opset in (19, 21, 23):
            yield Example(opset, x, f(1), np.zeros((), kind), expect=[saturated])
            yield Example(opset, x, f(1), np.zeros((), kind), saturate=0, expect=[unlimited])
        # the zero point 1 is added before the rounding
        yield Example(21, x, 1, np.array(1, kind), expect=[[1.5, most, -most, near, -2.5]])
    integers = {"int4": [0, 7, -8, 7, -3], "uint4": [0, 15, 0, 15, 0]}
    twos = {"int2": [0, 1, -2, 1, -2], "uint2": [0, 3, 0, 3, 0]}
    for opset, wanted in ((21, integers), (25, integers | twos)):
        for name, expected in wanted.items():
            dtype = np.dtype(getattr(ml_dtypes, name))
            y = np.array(expected).astype(dtype)
            yield Example(opset, x, f(1), np.zeros((), dtype), expect=[y])
            yield Example(opset, x, f(1), output_dtype=element(dtype).number, expect=[y])
    four = np.dtype(ml_dtypes.float4_e2m1fn)
    yield Example(23, x, f(1), output_dtype=23, expect=[np.array([0.5, 6, -6, 6, -3], four)])
    yield Example(23, x, f(2), np.array(1, four), expect=[[1, 6, -6, 6, -0.5]])
    more, less = [0.5, 7.5, -7.5, 7.5, -3.5], [0.5, 28, -28, 16, -3.5]
    for dtype, expected in ((ml_dtypes.float6_e2m3fn, more), (ml_dtypes.float6_e3m2fn, less)):
        yield Example(28, x, f(1), np.zeros((), dtype), expect=[expected])


@quantize_linear.examples
def precisions() -> Iterator[Example]:
    f, half, brain = np.float32, np.float16, ml_dtypes.bfloat16
    # 2049 is no float16, its quotient by 1 is 2048 there, and 2049 otherwise
    x = [2049, -101.49]
    exact, coarse = [2049, -101], [2048, -102]
    for opset in (23, 24, 25, 28):
        yield Example(opset, x, f(1), np.int16(0), expect=[exact])
        yield Example(opset, x, half(1), np.int16(0), expect=[coarse])
        yield Example(opset, x, f(1), np.int16(0), precision=10, expect=[coarse])
        yield Example(opset, x, half(1), np.int16(0), precision=1, expect=[exact])
        yield Example(opset, x, brain(1), np.int16(0), expect=[coarse])
        yield Example(opset, np.array([7, -3], np.int32), f(2), expect=[np.array([4, 0], np.uint8)])
    for opset in (19, 21):
        yield Example(opset, np.array([3, 1], half), 2, np.int8(0), expect=[[2, 0]])
        yield Example(opset, np.array([3, 1], brain), 2, expect=[np.array([2, 0], np.uint8)])
    two = np.array(2, ml_dtypes.float8_e8m0fnu)
    for opset in (24, 28):
        yield Example(opset, np.array([4098, 3], f), two, np.int16(0), expect=[[2049, 2]])
        yield Example(opset, np.array([4098, 3], np.int32), two, np.int16(0), expect=[[2049, 2]])
