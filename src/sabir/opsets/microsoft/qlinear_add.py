"""QLinearAdd: the sum of quantized numbers, quantized again.

onnxruntime collects the zero points in one float32 summand and adds with fused multiplications. The same
roundings are made here, so that ties fall alike.
"""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, FLOAT, element
from sabir.ir import Builder, Value
from sabir.loops import Expression
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization import scaled, scaled_arithmetic
from sabir.opsets.families.quantization.quantization_kernels import only, saturated
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

qlinear_add = Operator(
    "QLinearAdd",
    domain="com.microsoft",
    summary="`(A_scale * (A - A_zero_point) + B_scale * (B - B_zero_point)) / C_scale + C_zero_point`, "
    "rounded, ties to even, and saturated.",
    body_opset=18,
)

v1 = scaled_arithmetic.declare(qlinear_add)


def add(x: scaled_arithmetic.Operands) -> Array:
    """Return the sum of checked operands."""
    a_factor, b_factor = (np.float32(s.reshape(()) / x.c_scale.reshape(())) for s in (x.a_scale, x.b_scale))
    a_centre, b_centre, c_centre = (scaled.centred_number(z) for z in (x.a_zero, x.b_zero, x.c_zero))
    offset = c_centre - _fused(a_centre, a_factor, b_centre * b_factor)
    y = _fused(x.b.astype(np.float32), b_factor, offset)
    y = _fused(x.a.astype(np.float32), a_factor, y)
    return scaled.saturated_sum(np.asarray(y), None, element(x.a.dtype))


scaled_arithmetic.evaluate_by(v1, add)


def _fused(x: Array | np.float32, factor: np.float32, summand: Array | np.float32) -> Array | np.float32:
    """Return `x * factor + summand`, rounded once: products of float32 are exact in float64."""
    return (np.float64(x) * np.float64(factor) + summand).astype(np.float32)


@v1.lower
def lower(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    a: Expression, a_scale: Expression, a_zero: Expression | None, b: Expression, b_scale: Expression,
    b_zero: Expression | None, c_scale: Expression, c_zero: Expression | None = None, /,
) -> Expression:  # fmt: skip
    a_factor, b_factor = (loops.apply("div", only(s), only(c_scale)) for s in (a_scale, b_scale))
    a_centre, b_centre, c_centre = (scaled.number_of(z) for z in (a_zero, b_zero, c_zero))
    shift = loops.apply("fma", a_centre, a_factor, loops.apply("mul", b_centre, b_factor))
    offset = loops.apply("sub", c_centre, shift)
    y = loops.apply("fma", loops.cast(b, "float"), b_factor, offset)
    return saturated(loops.apply("fma", loops.cast(a, "float"), a_factor, y), None, a.element)


@v1.body
def body(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    b: Builder, x: Value, x_scale: Value, x_zero: Value | None, other: Value, other_scale: Value,
    other_zero: Value | None, y_scale: Value, y_zero: Value | None = None, /,
) -> Value:  # fmt: skip
    step = graphs.single(b, y_scale)
    factor, other_factor = (b.Div(graphs.single(b, s), step) for s in (x_scale, other_scale))
    centres = [scaled.as_number(b, z) for z in (x_zero, other_zero, y_zero)]
    shift = _write_fused(b, centres[0], factor, b.Mul(centres[1], other_factor))
    offset = b.Sub(centres[2], shift)
    y = _write_fused(b, b.Cast(other, to=FLOAT.number), other_factor, offset)
    return scaled.write_sum(b, _write_fused(b, b.Cast(x, to=FLOAT.number), factor, y), None, x)


def _write_fused(b: Builder, x: Value, factor: Value, summand: Value) -> Value:
    """Emit `x * factor + summand` with one rounding to float, by way of double."""
    x, factor, summand = (b.Cast(v, to=DOUBLE.number) for v in (x, factor, summand))
    return b.Cast(b.Add(b.Mul(x, factor), summand), to=FLOAT.number)


@qlinear_add.examples
def examples() -> Iterator[Example]:
    u, f = np.uint8, np.float32
    # by hand: (0.5 * (9 - 1) + 2 * (3 - 2)) / 4 + 10 is 11.5, a tie that goes to 12
    yield Example(1, np.array([9], u), f(0.5), u(1), np.array([3], u), f(2), u(2), f(4), u(10), expect=[[12]])
    yield from scaled_arithmetic.over_bytes([(0.5, 0.25, 1), (0.1, 0.3, 0.2), (0.01, 0.07, 0.05)])
