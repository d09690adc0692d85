"""The shape of `A' @ B' + C`, where A' and B' are matrices that may be transposed first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.ir import TensorType, is_one
from sabir.opsets.families.products.products import MATRIX
from sabir.opsets.families.shapes.shapes import same_dim

if TYPE_CHECKING:
    from sabir.ir import Dim


def gemm_shape(
    a: TensorType, b: TensorType, c: TensorType | None, *, transposed: tuple[int, int], exact: bool = False
) -> tuple[Dim, Dim]:
    """Return the shape (M, N) of the sum; C broadcasts to it, or has it if `exact`.

    Raises InferenceError for operands that are no matrices, or do not fit.
    """
    (m, inner), (other, n) = _sides(a, "A", transposed[0]), _sides(b, "B", transposed[1])
    same_dim([inner, other], "the inner dimensions of A and B")
    return (m, n) if c is None or c.shape is None else _with_addend(m, n, c.shape, exact=exact)


def _sides(t: TensorType, name: str, transposed: int) -> tuple[Dim, Dim]:
    if t.shape is None:
        return None, None
    if len(t.shape) != MATRIX:
        raise InferenceError(f"{name} is {t}, and must be a matrix")
    rows, columns = t.shape
    return (columns, rows) if transposed else (rows, columns)


def _with_addend(m: Dim, n: Dim, c: tuple[Dim, ...], *, exact: bool) -> tuple[Dim, Dim]:
    """Check (m, n) against the shape of C, which may determine what A and B leave unknown."""
    if len(c) > MATRIX or (exact and len(c) < MATRIX):
        raise InferenceError(f"C of rank {len(c)} does not fit an output of rank 2")
    sides: list[Dim] = [m, n]
    for place, dim in enumerate(c, start=MATRIX - len(c)):
        if exact or is_one(dim) is False:
            sides[place] = same_dim([sides[place], dim], "the shape of C and that of the output")
    return sides[0], sides[1]
