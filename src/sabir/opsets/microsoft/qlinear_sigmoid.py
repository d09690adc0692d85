"""QLinearSigmoid: the logistic function of quantized numbers, quantized again."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.quantization import scaled_maps
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

qlinear_sigmoid = Operator(
    "QLinearSigmoid",
    domain="com.microsoft",
    summary="`quantize(1 / (1 + exp(-dequantize(X))))`.",
    body_opset=18,
)


def _logistic(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return sigmoid(x)


def _write(b: Builder, x: Value) -> Value:
    return b.Sigmoid(x)


v1 = scaled_maps.declare(qlinear_sigmoid, _logistic, _write)


@qlinear_sigmoid.examples
def examples() -> Iterator[Example]:
    u, s, f = np.uint8, np.int8, np.float32
    # by hand: sigmoid(-1), sigmoid(0), sigmoid(1) are 0.2689, 0.5, 0.7311
    call, y = (np.array([[1], [2], [3]], u), f(1), u(2), f(1 / 256), u(0)), [[69], [128], [187]]
    yield Example(1, *call, expect=[np.array(y, u)])
    for dtype in (u, s):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype)
        yield Example(1, x, f(0.05), dtype(11), f(0.0039), dtype(limits.min))
        yield Example(1, x, f(0.11), dtype(100), f(0.01), dtype(3))
    yield Example(1, x.reshape(16, 1, 16), f(0.1), None, f(0.005), s(0))
    yield Example(1, np.array(-128, s), f(100), s(0), f(0.01), s(-128), expect=[np.array(-128, s)])
    yield Example(1, np.zeros((0, 2), u), f(1), u(0), f(1), u(0), expect=[np.zeros((0, 2), u)])
    yield Example(1, np.array([0, 2], s), f(1), s(0), f(0.5), expect=[np.array([1, 2], s)])
