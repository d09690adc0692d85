"""Sums of a few elements times weights, which lie at places of their own for each result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops

if TYPE_CHECKING:
    from sabir.loops import Expression

_MOST = 8  # taps that one kernel reads in turn; more are folded


def weighted(x: Expression, axis: int, indices: Expression, weights: Expression) -> Expression:
    """Return sums along an axis: number `i` has `x` at `indices[:, i]` times `weights[:, i]`, both [K, L]."""
    weights = loops.cast(weights, x.element)
    tail, count = (1,) * (x.rank - axis - 1), indices.shape[0]
    if not isinstance(count, int) or count > _MOST:
        taken = loops.take(x, loops.permute(indices, (1, 0)), axis)
        factors = loops.permute(weights, (1, 0))
        terms = loops.apply("mul", taken, loops.reshape(factors, (*factors.shape, *tail)))
        return loops.squeeze(loops.reduce("sum", terms, [axis + 1]), [axis + 1])
    found: Expression | None = None
    for tap in range(count):
        place, factor = (loops.squeeze(loops.narrow(t, 0, tap, 1), [0]) for t in (indices, weights))
        term = loops.apply("mul", loops.take(x, place, axis), loops.reshape(factor, (*factor.shape, *tail)))
        found = term if found is None else loops.apply("add", found, term)
    return x if found is None else found


def inside(x: Expression, indices: Expression) -> Expression:
    """Return the elements of a vector at indices, zeros where an index is negative."""
    found = loops.take(x, loops.apply("max", indices, 0), 0)
    return loops.where(loops.apply("ge", indices, 0), found, 0)
