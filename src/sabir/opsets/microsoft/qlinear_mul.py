"""QLinearMul: the product of quantized numbers, quantized again."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization import scaled, scaled_arithmetic
from sabir.opsets.families.quantization.quantization_kernels import only
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

qlinear_mul = Operator(
    "QLinearMul",
    domain="com.microsoft",
    summary="`(A - A_zero_point) * (B - B_zero_point) * (A_scale * B_scale / C_scale) + C_zero_point`, "
    "rounded, ties to even, and saturated.",
    body_opset=18,
)

v1 = scaled_arithmetic.declare(qlinear_mul)


def multiply(x: scaled_arithmetic.Operands) -> Array:
    """Return the product of checked operands."""
    left, right = (
        n.astype(np.float32) - scaled.centred_number(z) for n, z in ((x.a, x.a_zero), (x.b, x.b_zero))
    )
    factor = x.a_scale.reshape(()) * x.b_scale.reshape(()) / x.c_scale.reshape(())
    return scaled.saturated_sum(left * right * factor, x.c_zero, element(x.a.dtype))


scaled_arithmetic.evaluate_by(v1, multiply)


@v1.lower
def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: Expression, a_scale: Expression, a_zero: Expression | None, b: Expression, b_scale: Expression,
    b_zero: Expression | None, c_scale: Expression, c_zero: Expression | None = None, /,
) -> Expression:  # fmt: skip
    left, right = (
        loops.apply("sub", loops.cast(x, "float"), scaled.number_of(z)) for x, z in ((a, a_zero), (b, b_zero))
    )
    factor = loops.apply("div", loops.apply("mul", only(a_scale), only(b_scale)), only(c_scale))
    y = loops.apply("mul", loops.apply("mul", left, right), factor)
    return scaled.lowered_sum(y, c_zero, a.element)


@v1.body
def body(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    b: Builder, x: Value, x_scale: Value, x_zero: Value | None, other: Value, other_scale: Value,
    other_zero: Value | None, y_scale: Value, y_zero: Value | None = None, /,
) -> Value:  # fmt: skip
    product = b.Mul(scaled.centred(b, x, x_zero), scaled.centred(b, other, other_zero))
    scales = b.Mul(graphs.single(b, x_scale), graphs.single(b, other_scale))
    return scaled.write_sum(b, b.Mul(product, b.Div(scales, graphs.single(b, y_scale))), y_zero, x)


@qlinear_mul.examples
def examples() -> Iterator[Example]:
    u, f = np.uint8, np.float32
    # by hand: (9 - 1) * (5 - 2) * (0.5 * 0.5 / 4) + 11 is 12.5, a tie that goes to 12
    call = np.array([9], u), f(0.5), u(1), np.array([5], u), f(0.5), u(2), f(4), u(11)
    yield Example(1, *call, expect=[np.array([12], u)])
    yield from scaled_arithmetic.over_bytes([(0.5, 0.25, 4), (0.1, 0.3, 2), (0.01, 0.07, 0.1)])
