"""FusedMatMul: a matrix product of transposed operands, times a number."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.products.fused_products import TRANSPOSED_BATCHES, declare, product_of
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

fused_mat_mul = Operator(
    "FusedMatMul",
    domain="com.microsoft",
    summary="`alpha * A' @ B'`; A' and B' are A and B, whose matrices or batches may be transposed.",
    body_opset=18,
)

v1 = declare(fused_mat_mul, *TRANSPOSED_BATCHES)


@v1.infer
def infer(a: TensorType, b: TensorType, /, **attributes: Any) -> TensorType:
    return product_of(**attributes).infer(a, b)


@v1.evaluate
def evaluate(a: Array, b: Array, /, **attributes: Any) -> Array:
    return product_of(**attributes).compute(a, b).astype(a.dtype, copy=False)


@v1.body
def body(b: Builder, x: Value, w: Value, /, **attributes: Any) -> Value:
    return product_of(**attributes).emit(b, x, w)


@fused_mat_mul.examples
def examples() -> Iterator[Example]:
    a, w = np.array([[1, 2, 0], [3, 4, -1]], np.float32), np.array([[5, 6], [-1, 0], [2, 1]], np.float32)
    product = np.array([[3, 6], [9, 17]], np.float32)  # by hand
    for kind in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16):
        operands = a.astype(kind), w.astype(kind)
        yield Example(1, *operands, expect=[product.astype(kind)])
        yield Example(1, *operands, alpha=0.5, expect=[(product / 2).astype(kind)])
    yield Example(1, a.T, w, transA=1, expect=[product])
    yield Example(1, a, w.T, transB=1, alpha=-2.0, expect=[-2 * product])
    yield Example(1, a.T, w.T, transA=1, transB=1, expect=[product])
    yield Example(1, a[0], w, transA=1, expect=[product[0]])  # a vector is not transposed
    yield Example(1, a, w[:, 0], transB=1, expect=[product[:, 0]])
    yield Example(1, a[0], w[:, 0], expect=[product[0, 0]])
    stack = np.arange(60, dtype=np.float32).reshape(5, 4, 3)
    y = np.einsum("bmk,kn->bmn", stack, w)
    yield Example(1, stack, w, expect=[y])
    yield Example(1, stack.swapaxes(1, 2), w.T, transA=1, transB=1, expect=[y])
    yield Example(1, np.zeros((0, 4), np.float32), np.zeros((4, 3), np.float32), alpha=2.0)


@fused_mat_mul.examples
def examples_of_batches() -> Iterator[Example]:
    rng = np.random.default_rng(5)
    a, w = rng.integers(-4, 5, (2, 5, 3, 4)), rng.integers(-4, 5, (2, 5, 4, 6))
    y = np.einsum("abmk,abkn->abmn", a, w).astype(np.float32)
    rows = a.astype(np.float32).transpose(2, 0, 1, 3), w.astype(np.float32).transpose(2, 0, 1, 3)
    columns = a.astype(np.float32).transpose(3, 0, 1, 2), w.astype(np.float32).transpose(3, 0, 1, 2)
    both: dict[str, Any] = {"transBatchA": 1, "transBatchB": 1}
    yield Example(1, *rows, **both, expect=[y])
    yield Example(1, *columns, **both, transA=1, transB=1, alpha=3.0, expect=[3 * y])
    yield Example(1, rows[0], w.astype(np.float32), transBatchA=1, expect=[y])
    yield Example(1, a.astype(np.float32), columns[1], transBatchB=1, transB=1, expect=[y])
