"""Matrix products of one or several axes of rows and of depth."""

from __future__ import annotations

from sabir.loops._assumptions import equal
from sabir.loops._expression import FLOATS, Expression
from sabir.loops._expressions import Contract
from sabir.loops._operations import NotLowered, apply, broadcast, check_computed, reduce, reshape, squeeze


def contract(a: Expression, b: Expression) -> Expression:
    """Return the matrix products of two tensors of rank 2 or more.

    Raises NotLowered for sizes that may differ.
    """
    rows = a.rank - 1 if b.rank == 2 and a.rank > 2 else 1  # ruff: ignore[magic-value-comparison]  matrices
    return convolve(a, b, rows, 1)


def convolve(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    """Return `[..., rows..., depth...]` by `[..., depth..., N]`: sums of products over all axes of the depth.

    The leading axes broadcast. Raises NotLowered for sizes that may differ.
    """
    check_computed(a.element)
    if a.element != b.element or a.element == "bool":
        raise NotLowered(f"{a.element} and {b.element} are not multiplied")
    sizes = zip(a.shape[a.rank - depth :], b.shape[-1 - depth : -1], strict=True)
    for m, n in sizes:  # a kernel would read past the end
        if not equal(m, n):
            raise NotLowered(f"whether the sizes {m} and {n} are equal is known at run time only")
    if a.element not in FLOATS:
        return _sums(a, b, rows, depth)
    batch = broadcast(a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1])
    between = a.shape[a.rank - depth - rows : a.rank - depth]
    return Contract(a.element, (*batch, *between, b.shape[-1]), a, b, rows, depth)


def _sums(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
    """Return the product of integers, which wraps around, as a map and a reduction."""
    columns = reshape(a, (*a.shape, 1))
    head = b.rank - depth - 1
    spread = reshape(b, (*b.shape[:head], *(1,) * rows, *b.shape[head:]))
    terms = apply("mul", columns, spread)
    axes = [*range(terms.rank - 1 - depth, terms.rank - 1)]
    return squeeze(reduce("sum", terms, axes), axes)
