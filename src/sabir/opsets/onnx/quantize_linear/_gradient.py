"""The gradient of QuantizeLinear to small floats; integers have none."""

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
) -> tuple[Value, Value, None]:
    """Straight through the rounding; beyond the greatest number it is 0, as in PyTorch."""
    if block_size:
        raise UnsupportedError("QuantizeLinear passes no gradients to the scales of blocks")
    wide, spread, dy = (
        g.Cast(v, to=FLOAT.number) for v in (x, quantized_graphs.spread_axis(g, scale, axis, x), g.dy)
    )
    quotient = g.Div(wide, spread)
    finfo: Any = cast("Any", ml_dtypes).finfo
    most = float(finfo(element_of(g.y()).dtype).max)
    dx = g.Where(g.LessOrEqual(g.Abs(quotient), most), g.Div(dy, spread), 0)
    d_scale = g.Reshape(g.fit(g.Neg(g.Mul(dx, quotient)), spread), g.sizes(scale), allowzero=1)
    return calls.typed(g, dx, element_of(x)), calls.typed(g, d_scale, element_of(scale)), None
