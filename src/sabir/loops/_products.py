"""Products of matrices, and of windows with filters."""

from __future__ import annotations

from sabir.loops._assumptions import equal
from sabir.loops._expressions import FLOATS, Expression
from sabir.loops._operations import NotLowered, check_computed
from sabir.loops._quantized import multiply_narrow, multiply_quantized, product_of


def contract(a: Expression, b: Expression) -> Expression:
    """Return the matrix products of two tensors of rank 2 or more.

    Raises NotLowered for elements that are no floats, and for sizes that may differ.
    """
    rows = a.rank - 1 if b.rank == 2 and a.rank > 2 else 1  # ruff: ignore[magic-value-comparison]  matrices
    return convolve(a, b, rows, 1)


def convolve(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    """Return `[..., rows..., depth...]` by `[..., depth..., N]`: sums of products over all axes of the depth.

    The leading axes broadcast. Operands that integers of 8 bits represent are multiplied as these. Raises
    NotLowered for elements that are no floats, and for sizes that may differ.
    """
    check_computed(a.element)
    if a.element not in FLOATS or a.element != b.element:
        raise NotLowered(f"products of {a.element} have no kernel yet")
    sizes = zip(a.shape[a.rank - depth :], b.shape[-1 - depth : -1], strict=True)
    for m, n in sizes:  # a kernel would read past the end
        if not equal(m, n):
            raise NotLowered(f"whether the sizes {m} and {n} are equal is open")
    for way in (multiply_quantized, multiply_narrow):
        found = way(a, b, rows, depth)
        if found is not None:
            return found
    return product_of(a, b, rows, depth)
