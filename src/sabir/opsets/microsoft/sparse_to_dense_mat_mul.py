"""SparseToDenseMatMul: the product of a sparse matrix and a dense one."""
# ruff: file-ignore[invalid-argument-name]  transA and transB are the operator's names

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.elements import element
from sabir.ir import Shape, SparseTensorType, TensorType
from sabir.opsets.families.products import products
from sabir.opsets.families.products.fused_products import Transposition
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, sparse_tensors, tensors

sparse_to_dense_mat_mul = Operator(
    "SparseToDenseMatMul",
    domain="com.microsoft",
    summary="`alpha * A' @ B'`, where A is sparse: an element of 0 multiplies nothing, not even infinity.",
)

_NUMBERS = tensors("float", "double", "int32", "int64", "uint32", "uint64")
T = Constraint("T", sparse_tensors(_NUMBERS))
T1 = Constraint("T1", _NUMBERS)

v1 = sparse_to_dense_mat_mul.first(
    1,
    inputs=[
        Input(
            "A", T, "A sparse tensor of the dense shape (M, K), or (K, M) with `transA`.", tolerated=_NUMBERS
        ),
        Input("B", T1, "Shape (K, N), or (N, K) with `transB`; of A's element type."),
    ],
    outputs=[Output("Y", T1, "Shape (M, N).")],
    attributes=[
        Attribute("alpha", "float", "The factor of the product; 1 for integers.", default=1.0),
        Attribute("transA", "int", "1: A is transposed first.", default=0),
        Attribute("transB", "int", "1: B is transposed first.", default=0),
    ],
)


@v1.infer
def infer(
    a: SparseTensorType | TensorType, b: TensorType, /, *, alpha: float, transA: int, transB: int
) -> TensorType:
    if b.element.number and a.element != b.element:
        raise InferenceError(f"A and B must have one element type, and have {a.element} and {b.element}")
    _check_ranks(a.shape, b.shape)
    if alpha != 1 and not a.element.is_float:
        raise InferenceError(f"alpha must be 1 for a product of integers, and is {alpha:g}")
    left, right = Transposition(transA).shape(a.shape), Transposition(transB).shape(b.shape)
    shape = products.matmul_shape(left, right)
    if shape is None:
        shape = (None if left is None else left[0], None if right is None else right[1])
    return TensorType(a.element, shape)


def _check_ranks(a: Shape | None, b: Shape | None) -> None:
    for name, shape in (("A", a), ("B", b)):
        if shape is not None and len(shape) != products.MATRIX:
            raise InferenceError(f"{name} must be a matrix, and has rank {len(shape)}")


@v1.evaluate
def evaluate(a: Array, b: Array, /, *, alpha: float, transA: int, transB: int) -> Array:
    _check_ranks(a.shape, b.shape)
    left, right = a.T if transA else a, b.T if transB else b
    is_finite = a.dtype.kind != "f" or bool(np.isfinite(left).all() and np.isfinite(right).all())
    y = products.matmul(left, right) if is_finite else _by_elements(left, right)
    return y if alpha == 1 else y * y.dtype.type(alpha)


def _by_elements(a: Array, b: Array) -> Array:
    """Return the product of the elements that are not 0, in which 0 times infinity does not occur."""
    y = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    for k in range(len(b)):
        rows = np.flatnonzero(a[:, k])
        spend_work(rows.size * y.shape[1])
        y[rows] += a[rows, k, np.newaxis] * b[k]
    return y


@sparse_to_dense_mat_mul.check
def dense_operand(
    a: SparseTensorType | TensorType, b: TensorType, /, *, alpha: float, transA: int, transB: int
) -> Iterator[str]:
    """Warn about a dense A, such as an initializer, also if its file stores it sparsely."""
    if isinstance(a, TensorType):
        yield "A is a dense tensor, which onnxruntime refuses; declare a graph input as sparse_tensor"


v1.absent("body", "no operator of the standard takes a sparse tensor")
v1.absent("lower", "an element that is 0 multiplies nothing, not even infinity, as a product of kernels does")
v1.absent("gradient", "the gradient of a sparse tensor is sparse too, which no operator computes")


@sparse_to_dense_mat_mul.examples
def examples() -> Iterator[Example]:
    a = np.array([[0, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]])
    b = np.arange(8).reshape(4, 2)
    y = np.array([[2, 3], [8, 10], [0, 0]])  # by hand

    def example(a: Array, b: Array, y: Array, **attributes: Any) -> Example:
        kind = SparseTensorType(element(a.dtype), a.shape)
        return Example(1, a, b, expect=[y], types=[kind, None], **attributes)

    for kind in (np.float32, np.float64, np.int32, np.int64, np.uint32, np.uint64):
        yield example(a.astype(kind), b.astype(kind), y.astype(kind))
    a, b, y = a.astype(np.float32), b.astype(np.float32), y.astype(np.float32)
    yield example(a, b, 1.5 * y, alpha=1.5)
    yield example(a.T, b, y, transA=1)
    yield example(a, b.T, y, transB=1)
    yield example(a.T, b.T, -y, transA=1, transB=1, alpha=-1.0)
    yield example(np.zeros_like(a), b, np.zeros_like(y))
    endless = b.copy()
    endless[0, 0], endless[2, 1] = np.nan, np.inf
    yield example(a, endless, np.array([[2, 3], [8, np.inf], [0, 0]], np.float32))
    large = a.copy()
    large[2, 2] = np.inf
    yield example(large, b, np.array([[2, 3], [8, 10], [np.inf, np.inf]], np.float32))
    yield example(a[:, :0], b[:0], np.zeros_like(y))
