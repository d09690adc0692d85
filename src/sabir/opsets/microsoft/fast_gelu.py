"""FastGelu: the Gaussian error linear unit by a hyperbolic tangent, of a tensor and an optional bias."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.numbers import gelus
from sabir.opsets.families.numbers.pointwise import TOLERANCES, over_floats, pointwise
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import BFLOAT16, FLOATS, Constraint, Example, Input, Operator, Output

fast_gelu = Operator(
    "FastGelu",
    domain="com.microsoft",
    summary="`0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x**3)))` of `x = X + bias`.",
    body_opset=18,
)

T = Constraint("T", FLOATS, BFLOAT16)

v1 = fast_gelu.first(
    1,
    inputs=[
        Input("X", T, "A tensor of any shape; of rank 1 or more if there is a bias.", differentiable=True),
        Input(
            "bias",
            T,
            "One element for each of the last dimension of X; 0 by default.",
            optional=True,
            differentiable=True,
        ),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
)


@v1.infer
def infer(x: TensorType, bias: TensorType | None = None, /) -> TensorType:
    gelus.check_bias("bias", x, bias)
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, bias: Array | None = None, /) -> Array:
    hold(infer, x, bias)
    return _without_bias(x) if bias is None else gelus.gelu_with_bias(x, bias, "tanh")


@pointwise
def _without_bias(x: Array, /) -> Array:
    return gelus.gelu(x, "tanh")


@v1.body
def body(b: Builder, x: Value, bias: Value | None = None, /) -> Value:
    return gelus.emitted_with_bias(b, x, bias, "tanh")


@fast_gelu.examples
def examples() -> Iterator[Example]:
    # mpmath, with 30 digits
    x = [1, -1, 2.5, -0.125, 0, np.inf, np.nan]
    y = [0.8411919906082767, -0.1588080093917233, 2.484915733910001, -0.05628280137577661, 0, np.inf]
    yield from over_floats(x, [*y, np.nan], 1, bfloat16=1)
    wide, bias = np.array([[0, 0.5], [1.5, np.nan]]), np.array([1, -1.5])
    sums = np.array([[y[0], y[1]], [y[2], np.nan]])
    for kind, tolerance in TOLERANCES.items():
        inputs = wide.astype(kind), bias.astype(kind)
        yield Example(1, *inputs, expect=[sums.astype(kind)], tolerance=tolerance)
