"""DynamicQuantizeMatMul: the product of floats, quantized by their range, with a quantized matrix."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import quantized_products as products
from sabir.opsets.families.quantization.dynamic import quantized_by_range
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

dynamic_quantize_matmul = Operator(
    "DynamicQuantizeMatMul",
    domain="com.microsoft",
    summary="`A`, quantized as by DynamicQuantizeLinear, times `(B - b_zero_point) * b_scale`, plus `bias`.",
    body_opset=18,
)

T1 = Constraint("T1", tensors("float"))
T2 = Constraint("T2", tensors("int8", "uint8"))

v1 = dynamic_quantize_matmul.first(
    1,
    inputs=[
        Input("A", T1, "Shape (..., M, K), or (K)."),
        Input("B", T2, "Shape (..., K, N), or (K)."),
        Input("b_scale", T1, "The scale of `B`: a scalar, (N), or (..., 1, N)."),
        Input(
            "b_zero_point",
            T2,
            "The number in `B` that represents 0: a scalar, (N), or (..., 1, N); 0 by default.",
            optional=True,
        ),
        products.bias_of_columns(T1),
    ],
    outputs=[Output("Y", T1, "Shape (..., M, N), without M or N for a 1-D operand.")],
)


@v1.infer
def infer(
    a: TensorType, b: TensorType, b_scale: TensorType, b_zero: TensorType | None = None,
    bias: TensorType | None = None, /,
) -> TensorType:  # fmt: skip
    return products.product_type(a, b, b_scale, b_zero, bias)


@v1.evaluate
def evaluate(
    a: Array, b: Array, b_scale: Array, b_zero: Array | None = None, bias: Array | None = None, /
) -> Array:
    hold(infer, a, b, b_scale, b_zero, bias)
    q, scale, zero = quantized_by_range(a)
    return products.as_floats(products.integer_product(q, b, zero, b_zero), scale, b_scale, b, bias)


@v1.body
def body(
    b: Builder, a: Value, other: Value, b_scale: Value, b_zero: Value | None = None,
    bias: Value | None = None, /,
) -> Value:  # fmt: skip
    q, scale, zero = b.DynamicQuantizeLinear(a)
    return products.write_floats(b, b.MatMulInteger(q, other, zero, b_zero), scale, b_scale, bias)


v1.absent("gradient", "`A` is rounded to integers, which have no gradients")


@dynamic_quantize_matmul.examples
def examples() -> Iterator[Example]:
    f, u, s = np.float32, np.uint8, np.int8
    # by hand: a step of 2 from -100 to 410, so that A is quantized exactly
    a, b = np.array([[-100, 410], [10, 6]], f), np.array([[1, 2, 0], [3, 5, 1]])
    for dtype in (u, s):
        weights = b.astype(dtype)
        yield Example(1, a, weights, f(0.5), expect=[(a @ b / 2).astype(f)])
        columns = np.array([1, 0.5, 2], f), np.array([1, 2, 0], dtype), np.array([1, 0, -1], f)
        y = a @ (b - [1, 2, 0]) * [1, 0.5, 2] + [1, 0, -1]
        yield Example(1, a, weights, *columns, expect=[y.astype(f)])
        yield Example(1, a, weights, columns[0], None, columns[2])
        yield Example(1, np.stack([a, a / 3]), weights, f(0.5), dtype(2))
        yield Example(1, np.stack([a, a / 3]), np.stack([weights] * 2), f(0.5), dtype(2))
        yield Example(1, a[0], weights, f(1))
        yield Example(1, np.zeros((2, 2), f), weights, f(1), expect=[np.zeros((2, 3), f)])
    rng = np.random.default_rng(0)
    yield Example(
        1, rng.standard_normal((3, 70)).astype(f), rng.integers(-128, 128, (70, 5)).astype(s), f(0.01)
    )
    yield Example(1, np.zeros((0, 2), f), b.astype(u), f(1), expect=[np.zeros((0, 3), f)])
