"""TransposeMatMul: the older name of FusedMatMul, without the transposition of batches."""
# ruff: file-ignore[invalid-argument-name]  transA and transB are the operator's names

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.products.fused_products import FusedProduct, Transposition, declare
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

transpose_mat_mul = Operator(
    "TransposeMatMul",
    domain="com.microsoft",
    summary="`alpha * A' @ B'`; A' and B' are A and B, transposed if `transA`, `transB`.",
    body_opset=18,
)

v1 = declare(transpose_mat_mul)


@v1.infer
def infer(a: TensorType, b: TensorType, /, *, transA: int, transB: int, alpha: float) -> TensorType:
    return FusedProduct(Transposition(transA), Transposition(transB), alpha).infer(a, b)


@v1.evaluate
def evaluate(a: Array, b: Array, /, *, transA: int, transB: int, alpha: float) -> Array:
    product = FusedProduct(Transposition(transA), Transposition(transB), alpha)
    return product.compute(a, b).astype(a.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, w: Value, /, *, transA: int, transB: int, alpha: float) -> Value:
    return FusedProduct(Transposition(transA), Transposition(transB), alpha).emit(b, x, w)


@transpose_mat_mul.examples
def examples() -> Iterator[Example]:
    row, matrix = [[2.0, -1.0]], [[1.0, 3.0, 0.0], [4.0, 1.0, 2.0]]
    y = np.array([[-2, 5, -2]], np.float32)  # by hand
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        yield Example(1, np.array(row, kind), np.array(matrix, kind), expect=[y.astype(kind)])
    left, right = np.array(row, np.float32), np.array(matrix, np.float32)
    yield Example(1, left.T, right, transA=1, alpha=1.5, expect=[1.5 * y])
    yield Example(1, left, right.T, transB=1, expect=[y])
    yield Example(1, np.stack([left.T] * 2), right.T, transA=1, transB=1, expect=[np.stack([y] * 2)])
    yield Example(1, left[0], right, transA=1, expect=[y[0]])
