"""DynamicQuantizeLinear: quantization to uint8 by the range of the data."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import FLOAT, UINT8
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization.dynamic import MOST, quantized_by_range
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

dynamic_quantize_linear = Operator(
    "DynamicQuantizeLinear",
    summary="`x` as uint8, where 0 to 255 represent its range, extended to 0; its scale and zero point.",
)

T1 = Constraint("T1", tensors("float"))
T2 = Constraint("T2", tensors("uint8"))

v11 = dynamic_quantize_linear.first(
    11,
    inputs=[Input("x", T1, "A tensor of any shape.")],
    outputs=[
        Output("y", T2, "The input's shape: `saturate(round(x / y_scale) + y_zero_point)`."),
        Output("y_scale", "tensor(float)", "A scalar: `(max(0, x) - min(0, x)) / 255`."),
        Output("y_zero_point", T2, "A scalar: `round(saturate(-min(0, x) / y_scale))`."),
    ],
)


@v11.infer
def infer(x: TensorType, /) -> tuple[TensorType, TensorType, TensorType]:
    return TensorType(UINT8, x.shape), TensorType(FLOAT, ()), TensorType(UINT8, ())


@v11.evaluate
def evaluate(x: Array, /) -> tuple[Array, Array, Array]:
    return quantized_by_range(x)


@v11.lower
def lower(x: Expression, /) -> tuple[Expression, Expression, Expression]:
    low, high = (loops.apply(op, _extreme(op, x), 0) for op in ("min", "max"))
    scale = loops.apply("div", loops.apply("sub", high, low), MOST)
    place = loops.apply("div", loops.apply("neg", low), scale)
    zero = kernels.saturated(place, None, "uint8")
    return kernels.quantized(x, scale, zero, "uint8"), scale, zero


def _extreme(op: str, x: Expression) -> Expression:
    """Return the least or greatest element, first of each row: threads share the rows."""
    rows = loops.reduce(op, x, [-1]) if x.rank else x
    return loops.reshape(loops.reduce(op, rows, range(x.rank)), ())


@v11.body
def body(b: Builder, x: Value, /) -> tuple[Value, Value, Value]:
    none, most = b.initializer("none", np.float32(0)), b.initializer("most", np.float32(MOST))
    low = b.Min(b.ReduceMin(x, keepdims=0), none)
    high = b.Max(b.ReduceMax(x, keepdims=0), none)
    scale = b.Div(b.Sub(high, low), most)
    rounded = b.Round(b.Clip(b.Div(b.Neg(low), scale), none, most))
    zero = b.Cast(rounded, to=UINT8.number)
    return b.QuantizeLinear(x, scale, zero), scale, zero


v11.absent("gradient", "the results are rounded to integers, which have no gradients")


@dynamic_quantize_linear.examples
def examples() -> Iterator[Example]:
    f, u = np.float32, np.uint8
    # by hand: a step of 2 from -100 to 410; 1 and 3 steps are ties, and go to even
    x = [[-100, 410, 0], [1, 3, 5]]
    yield Example(11, x, outputs=3, expect=[[[0, 255, 50], [50, 52, 52]], 2, 50])
    yield Example(11, [255, 2, 0.5], outputs=3, expect=[[255, 2, 0], 1, 0])
    yield Example(11, -51, outputs=3, expect=[0, 0.2, 255])
    yield Example(11, np.zeros(2, f), outputs=3, expect=[np.zeros(2, u), 0, 0])
    yield Example(11, np.zeros((0, 3), f), outputs=3, expect=[np.zeros((0, 3), u), 0, 0])
    yield Example(11, [1, np.nan], outputs=3, expect=[np.zeros(2, u), f(np.nan), 0])
