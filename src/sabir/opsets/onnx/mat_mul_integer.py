"""MatMulInteger: the matrix product of 8-bit integers minus their zero points, as 32-bit integers."""

from collections.abc import Iterator

import numpy as np

from sabir.elements import INT32
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.products.products import matmul_shape
from sabir.opsets.families.quantization import quantization_kernels as kernels
from sabir.opsets.families.quantization.quantization import (
    along_columns,
    along_rows,
    centred,
    check_columns,
    check_rows,
    exact_matmul,
    wrapped,
)
from sabir.opsets.families.quantization.quantized_graphs import product
from sabir.opsets.typing import Array
from sabir.schema import Constraint, Example, Input, Operator, Output, tensors

mat_mul_integer = Operator(
    "MatMulInteger",
    summary="`(A - a_zero_point) @ (B - b_zero_point)` as int32, with overflow wrapping around.",
)

T1 = Constraint("T1", tensors("int8", "uint8"))
T2 = Constraint("T2", tensors("int8", "uint8"))
T3 = Constraint("T3", tensors("int32"))

v10 = mat_mul_integer.first(
    10,
    inputs=[
        Input("A", T1, "Shape (..., M, K), or (K).", differentiable=False),
        Input("B", T2, "Shape (..., K, N), or (K).", differentiable=False),
        Input(
            "a_zero_point",
            T1,
            "The number in A that represents 0: a scalar, (M), or (..., M, 1); 0 by default.",
            optional=True,
            differentiable=False,
        ),
        Input(
            "b_zero_point",
            T2,
            "The number in B that represents 0: a scalar, (N), or (..., 1, N); 0 by default.",
            optional=True,
            differentiable=False,
        ),
    ],
    outputs=[Output("Y", T3, "Shape (..., M, N), without M or N for a 1-D operand.", differentiable=False)],
)


@v10.infer
def infer(
    a: TensorType, b: TensorType, a_zero: TensorType | None = None, b_zero: TensorType | None = None, /
) -> TensorType:
    check_rows("a_zero_point", a_zero, a)
    check_columns("b_zero_point", b_zero, b)
    return TensorType(INT32, matmul_shape(a.shape, b.shape))


@v10.evaluate
def evaluate(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None, /) -> Array:
    left = centred(a, None if a_zero is None else along_rows("a_zero_point", a_zero, a))
    right = centred(b, None if b_zero is None else along_columns("b_zero_point", b_zero, b))
    return wrapped(exact_matmul(left, right))


@v10.lower
def lower(
    a: Expression, b: Expression, a_zero: Expression | None = None, b_zero: Expression | None = None, /
) -> Expression:
    return kernels.multiplied(a, b, a_zero, b_zero)


@v10.downgrade
def multiply(
    b: Builder, a: Value, other: Value, a_zero: Value | None = None, b_zero: Value | None = None, /
) -> Value:
    return product(b, a, other, a_zero, b_zero)


@mat_mul_integer.examples
def examples() -> Iterator[Example]:
    i, u, s = np.int32, np.uint8, np.int8
    a, b = np.array([[11, 7, 3], [10, 6, 2]], u), np.array([[1, 4], [2, 5], [3, 6]], u)
    yield Example(10, a, b, expect=[[[34, 97], [28, 82]]])
    yield Example(10, a, b, 12, 0, expect=[[[-38, -83], [-44, -98]]])
    yield Example(10, a, b.astype(s) - 9, [11, 10], [-8, -5], expect=[np.full((2, 2), -4 * 1 - 8 * 2, i)])
    # each row of A and each column of B has its own zero point, in stacks of matrices
    stack = np.arange(8, dtype=s).reshape(2, 2, 2)
    zeros = [[[0], [2]], [[4], [6]]], [[[0, 1]]]
    rows, columns = np.array([[0, 1]] * 4).reshape(2, 2, 2), np.array([[0, 1], [2, 3]]) - [0, 1]
    yield Example(10, stack, stack[:1], *zeros, expect=[(rows @ columns).astype(i)])
    yield Example(10, a[0], b[:, 0], expect=[34])
    yield Example(10, a, b[:, 0], [10], 1, expect=[[-17, -20]])
    yield Example(10, np.zeros((2, 0), u), np.zeros((0, 3), s), expect=[np.zeros((2, 3), i)])
    # 259 products of 255 * 255 exceed the integers that are exact in float32
    yield Example(10, np.full((1, 259), 255, u), np.full((259, 1), 255, u), expect=[[[16841475]]])
    yield Example(10, np.full((1, 2), -128, s), np.full((2, 1), 127, s), 127, -128, expect=[[[-130050]]])
