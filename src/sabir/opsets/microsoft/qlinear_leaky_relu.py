"""QLinearLeakyRelu: quantized numbers whose negative values are multiplied by a factor, quantized again."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, Value
from sabir.opsets.families.quantization import scaled_maps
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Example, Operator

qlinear_leaky_relu = Operator(
    "QLinearLeakyRelu",
    domain="com.microsoft",
    summary="`quantize(x)` where `x`, which is `dequantize(X)`, is not negative; `quantize(alpha * x)` "
    "elsewhere.",
    body_opset=18,
)


def _leaky(x: Array, *, alpha: float) -> Array:
    return np.where(x >= 0, x, x * np.float32(alpha))


def _write(b: Builder, x: Value, *, alpha: float) -> Value:
    return b.LeakyRelu(x, alpha=alpha)


v1 = scaled_maps.declare(
    qlinear_leaky_relu,
    _leaky,
    _write,
    Attribute("alpha", "float", "The factor of negative numbers.", default=0.01),
)


@qlinear_leaky_relu.examples
def examples() -> Iterator[Example]:
    u, s, f = np.uint8, np.int8, np.float32
    # by hand: -5, -1, 0, 3 times 0.5 where negative, in steps of 0.5 from 10
    call, y = (np.array([[0, 4], [5, 8]], u), f(1), u(5), f(0.5), u(10)), [[5, 9], [10, 16]]
    yield Example(1, *call, alpha=0.5, expect=[np.array(y, u)])
    for dtype in (u, s):
        limits = np.iinfo(dtype)
        x = np.arange(limits.min, limits.max + 1).astype(dtype)
        yield Example(1, x, f(0.1), dtype(11), f(0.05), dtype(40), alpha=0.3)
        yield Example(1, x, f(0.02), dtype(100), f(0.006), dtype(3))
    yield Example(1, x.reshape(16, 1, 16), f(0.1), None, f(0.1), s(7), alpha=-1.0)
    yield Example(1, np.array(-128, s), f(1), s(0), f(1), s(-1), alpha=2.0, expect=[np.array(-128, s)])
    yield Example(1, np.zeros((0, 2), u), f(1), u(0), f(1), u(0), expect=[np.zeros((0, 2), u)])
    yield Example(1, np.array([-9, 2], s), f(1), s(-1), f(1), expect=[np.array([0, 3], s)])
