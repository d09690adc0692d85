"""The gradient of QuantizeLinear: straight through the rounding, in the units of its results."""

from typing import Any, cast

import ml_dtypes

from sabir.base import UnsupportedError
from sabir.elements import FLOAT
from sabir.ir import Value
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.quantization import quantized_graphs
from sabir.opsets.onnx.quantize_linear._history import v13
from sabir.opsets.typing import Gradient


@v13.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, zero: Value | None = None, /, *, axis: int, block_size: int = 0
) -> tuple[Value, Value | None, None]:
    """Straight through the rounding; where the result saturates it is 0, as in PyTorch."""
    if block_size and g.wants(1):
        raise UnsupportedError("QuantizeLinear passes no gradients to the scales of blocks")

    def wide(parameter: Value) -> Value:
        cast = g.Cast(parameter, to=FLOAT.number)
        if block_size:
            return quantized_graphs.spread_blocks(g, cast, axis, block_size, x)
        return quantized_graphs.spread_axis(g, cast, axis, x)

    spread = wide(scale)
    quotient = g.Div(g.Cast(x, to=FLOAT.number), spread)
    inside = _fits(g, quotient, None if zero is None else wide(zero))
    dx = g.Where(inside, g.Div(g.Cast(g.dy, to=FLOAT.number), spread), 0)
    if block_size:
        return calls.typed(g, dx, element_of(x)), None, None
    d_scale = g.Reshape(g.fit(g.Neg(g.Mul(dx, quotient)), spread), g.sizes(scale), allowzero=1)
    return calls.typed(g, dx, element_of(x)), calls.typed(g, d_scale, element_of(scale)), None


def _fits(g: Gradient, quotient: Value, offset: Value | None) -> Value:
    """Return where a quotient, rounded and moved by the zero point, is in the range of the result."""
    to = element_of(g.y())
    info: Any = cast("Any", ml_dtypes)
    if to.is_float:
        return g.LessOrEqual(g.Abs(quotient), float(info.finfo(to.dtype).max))
    code = g.Round(quotient)
    if offset is not None:
        code = g.Add(code, offset)
    least, most = int(info.iinfo(to.dtype).min), int(info.iinfo(to.dtype).max)
    return g.And(g.GreaterOrEqual(code, least), g.LessOrEqual(code, most))
