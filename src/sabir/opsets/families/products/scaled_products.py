"""A scaled matrix product plus a scaled matrix, as Gemm: its type rule and its evaluation."""
# ruff: file-ignore[invalid-argument-name]  transA and transB are the standard's names

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.products import products
from sabir.opsets.families.products.gemm_shapes import gemm_shape

if TYPE_CHECKING:
    from sabir.opsets.typing import Array


def infer(
    a: TensorType,
    b: TensorType,
    c: TensorType | None = None,
    /,
    *,
    transA: int,
    transB: int,
    broadcast: int = 1,
) -> TensorType:
    """Return the type of `alpha * A' @ B' + beta * C`; raises InferenceError for shapes that do not match."""
    shape = gemm_shape(a, b, c, transposed=(transA, transB), exact=not broadcast)
    element = next((t.element for t in (a, b, c) if t is not None and t.element.number), a.element)
    return TensorType(element, shape)


def evaluate(
    a: Array,
    b: Array,
    c: Array | None = None,
    /,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
    broadcast: int = 1,
) -> Array:
    """Return `alpha * A' @ B' + beta * C` in the type of A; with a `beta` of 0, C is not read."""
    if a.ndim != products.MATRIX or b.ndim != products.MATRIX:
        raise ValueError(f"A and B must be matrices, and have ranks {a.ndim} and {b.ndim}")
    kind, a, b = a.dtype, a.T if transA else a, b.T if transB else b
    shape = (a.shape[0], b.shape[1])
    if c is not None and np.broadcast_shapes(c.shape, shape if broadcast else c.shape) != shape:
        raise ValueError(f"C of shape {list(c.shape)} does not fit the output's {list(shape)}")
    if kind.kind in "iu" and float(alpha).is_integer() and float(beta).is_integer():
        return _combined(a, b, c, _wrapped(alpha, kind), _wrapped(beta, kind))
    # integers times a fraction are rounded toward zero once, at the end
    wide = np.float64 if kind.kind in "iu" else np.promote_types(np.float32, kind)
    a, b = a.astype(wide, copy=False), b.astype(wide, copy=False)
    c = None if c is None else c.astype(wide, copy=False)
    return _combined(a, b, c, alpha, beta).astype(kind, copy=False)


def _wrapped(factor: float, kind: np.dtype[Any]) -> Array:
    return np.array(int(factor) % 2**64, np.uint64).astype(kind)


def _combined(a: Array, b: Array, c: Array | None, alpha: Array | float, beta: Array | float) -> Array:
    y = products.matmul(a, b)
    if alpha != 1:
        y *= alpha
    if c is not None and beta != 0:
        y += c if beta == 1 else c * beta
    return y
