"""MatMulIntegerToFloat: the matrix product of quantized numbers, as floats."""

from collections.abc import Iterator

import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.quantization import quantized_graphs as graphs
from sabir.opsets.families.quantization import quantized_products as products
from sabir.opsets.families.quantization.quantization import check_columns
from sabir.opsets.families.shapes.ranks import check_one, hold
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

matmul_integer_to_float = Operator(
    "MatMulIntegerToFloat",
    domain="com.microsoft",
    summary="`(A - a_zero_point) @ (B - b_zero_point) * a_scale * b_scale + bias`.",
    body_opset=18,
    lacks=("Zero points of `A` by column are refused, as by onnxruntime's CPU kernel.",),
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("float", "float16"))

v1 = matmul_integer_to_float.first(
    1,
    inputs=[
        Input("A", T1, "Shape (..., M, K), or (K)."),
        Input("B", T2, "Shape (..., K, N), or (K)."),
        Input("a_scale", T3, "The scale of `A`: a scalar, or (N), a factor of each column of the product."),
        Input("b_scale", T3, "The scale of `B`: a scalar, (N), or (..., 1, N)."),
        Input(
            "a_zero_point", T1, "The number in `A` that represents 0, a scalar; 0 by default.", optional=True
        ),
        Input(
            "b_zero_point",
            T2,
            "The number in `B` that represents 0: a scalar, (N), or (..., 1, N); 0 by default.",
            optional=True,
        ),
        products.bias_of_columns(T3),
    ],
    outputs=[Output("Y", T3, "Shape (..., M, N), without M or N for a 1-D operand.")],
)


@v1.infer
def infer(
    a: TensorType, b: TensorType, a_scale: TensorType, b_scale: TensorType, a_zero: TensorType | None = None,
    b_zero: TensorType | None = None, bias: TensorType | None = None, /,
) -> TensorType:  # fmt: skip
    check_columns("a_scale", a_scale, b)
    check_one("a_zero_point", a_zero)
    return products.product_type(a, b, b_scale, b_zero, bias)


@v1.evaluate
def evaluate(
    a: Array, b: Array, a_scale: Array, b_scale: Array, a_zero: Array | None = None,
    b_zero: Array | None = None, bias: Array | None = None, /,
) -> Array:  # fmt: skip
    hold(infer, a, b, a_scale, b_scale, a_zero, b_zero, bias)
    return products.as_floats(products.integer_product(a, b, a_zero, b_zero), a_scale, b_scale, b, bias)


@v1.body
def body(  # ruff: ignore[too-many-positional-arguments]  the operator's signature
    b: Builder, a: Value, other: Value, a_scale: Value, b_scale: Value, a_zero: Value | None = None,
    b_zero: Value | None = None, bias: Value | None = None, /,
) -> Value:  # fmt: skip
    y = b.MatMulInteger(a, other, None if a_zero is None else graphs.single(b, a_zero), b_zero)
    return products.write_floats(b, y, a_scale, b_scale, bias)


@matmul_integer_to_float.examples
def examples() -> Iterator[Example]:
    f, half, u, s = np.float32, np.float16, np.uint8, np.int8
    a, b = np.array([[3, 5], [1, 0]]), np.array([[1, 2, 3], [4, 6, 5]])
    # by hand: a - 1 is [[2, 4], [0, -1]], b - [1, 2, 1] is [[0, 0, 2], [3, 4, 4]]
    y = np.array([[12, 16, 20], [-3, -4, -4]])
    zeros = [1], np.array([1, 2, 1])
    for left, right in ((u, u), (u, s), (s, s), (s, u)):
        call = a.astype(left), b.astype(right), f(0.5), np.array([1, 0.25, 2], f)
        by_column = left(1), zeros[1].astype(right), np.array([1, 0, -1], f)
        yield Example(1, *call, *by_column, expect=[np.array(y * [0.5, 0.125, 1] + [1, 0, -1], f)])
        yield Example(1, *call[:2], half(0.5), half(2), *by_column[:2], expect=[y.astype(half)])
        yield Example(
            1, *call[:2], f(1), f(1), None, None, by_column[2], expect=[(a @ b + [1, 0, -1]).astype(f)]
        )
        yield Example(1, *call[:2], np.array([1, 2, 3], f), f(0.5), left(1), right(1))
        stack = np.stack([call[0], call[0] + left(1)])
        yield Example(1, stack, *call[1:], left(1), right(1), by_column[2])
        yield Example(1, stack, np.stack([call[1]] * 2), f(0.5), f(2), left(1), right(1))
        yield Example(1, call[0][0], call[1], f(1), f(2), expect=[(2 * (a @ b)[0]).astype(f)])
        yield Example(1, call[0], call[1][:, 0], f(1), f(2), expect=[(2 * (a @ b)[:, 0]).astype(f)])
    yield Example(1, np.zeros((2, 0), u), np.zeros((0, 3), u), f(1), f(1), expect=[np.zeros((2, 3), f)])
    yield Example(1, np.zeros((0, 2), u), b.astype(u), f(1), f(1), expect=[np.zeros((0, 3), f)])
