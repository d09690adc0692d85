"""Gradients of updates written into a copy of a tensor, for every reduction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from sabir.opsets.families.indexing.move_gradients import as_numbers, numbers_of, zeros_of
from sabir.opsets.families.indexing.scattering import NONE
from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


class Scatter(Protocol):
    """Writes updates into data at the indices of a call."""

    def __call__(self, data: Value, updates: Value, reduction: str = NONE) -> Value:
        """Return the data with the updates."""
        ...


def gradient(
    g: Gradient,
    data: Value,
    updates: Value,
    reduction: str,
    scatter: Scatter,
    gather: Callable[[Value], Value],
) -> tuple[Value, None, Value]:
    """Return the gradients of `data`, the indices and `updates`.

    `scatter` writes to the places of the call, and `gather` reads there, one part for each update.
    """
    if reduction == "add":
        return g.dy, None, gather(g.dy)
    if reduction == "mul":
        return (
            g.Mul(g.dy, _products(g, data, updates, scatter)),
            None,
            _other_factors(g, data, updates, scatter, gather),
        )
    if reduction == NONE:
        kept = scatter(g.dy, zeros_of(g, g.sizes(updates), updates))
        return kept, None, _of_last(g, data, updates, scatter, gather)
    return _of_extremes(g, data, updates, scatter, gather)


def _of_last(
    g: Gradient, data: Value, updates: Value, scatter: Scatter, gather: Callable[[Value], Value]
) -> Value:
    """Return the gradient of the updates, which is zero where a later one has replaced an update."""
    numbers = numbers_of(g, updates)
    last = gather(scatter(g.ConstantOfShape(g.sizes(data), value=np.zeros(1, np.int64)), numbers))
    return g.Where(g.Equal(last, numbers), gather(g.dy), 0)


def _products(g: Gradient, data: Value, updates: Value, scatter: Scatter) -> Value:
    """Return the product of the updates of each element, 1 without any."""
    return scatter(g.Expand(Numbers.like(g, data)(1), g.sizes(data)), updates, "mul")


def _other_factors(
    g: Gradient, data: Value, updates: Value, scatter: Scatter, gather: Callable[[Value], Value]
) -> Value:
    """Return the gradient of factors: the product of the others, also where some are zero.

    It is the product of those that are not zero, and divided by the factor itself; it is zero where another
    factor is.
    """
    zero = g.Equal(updates, 0)
    factors = g.Where(zero, 1, updates)
    zeros = as_numbers(g, zero, updates)
    count = scatter(zeros_of(g, g.sizes(data), data), zeros, "add")
    alone = g.Equal(gather(count), zeros)
    product = gather(g.Mul(g.dy, scatter(data, factors, "mul")))
    return g.Where(alone, g.Div(product, factors), 0)


def _of_extremes(
    g: Gradient, data: Value, updates: Value, scatter: Scatter, gather: Callable[[Value], Value]
) -> tuple[Value, None, Value]:
    """Divide the gradient among all that equal the extreme, as PyTorch does."""
    y = g.y()
    mine = as_numbers(g, g.Equal(data, y), data)
    theirs = as_numbers(g, g.Equal(updates, gather(y)), data)
    share = g.Div(g.dy, scatter(mine, theirs, "add"))
    return g.Mul(share, mine), None, g.Mul(gather(share), theirs)
