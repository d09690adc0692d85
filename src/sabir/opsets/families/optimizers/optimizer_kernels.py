"""Lowering of optimizers: updates are computed in double and rounded once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import NotLowered
from sabir.opsets.families.optimizers.optimizers import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Expression


def scalar(x: Expression) -> Expression:
    """Return a tensor of one element as a double."""
    if any(size != 1 for size in x.shape):
        raise NotLowered("whether a rate or a count is a scalar is known at run time only")
    return loops.cast(loops.reshape(x, ()), "double")


def stepped(
    inputs: Sequence[Expression], parts: int, rule: Callable[..., tuple[Expression, ...]]
) -> tuple[Expression, ...]:
    """Return the new tensors, then their new states, as `optimizers.stepped` does it."""
    results: list[list[Expression]] = []
    for x, gradient, *states in grouped(inputs, parts):
        found = rule(*(loops.cast(value, "double") for value in (x, gradient, *states)))
        results.append([loops.cast(y, old.element) for y, old in zip(found, (x, *states), strict=True)])
    return tuple(y for part in zip(*results, strict=True) for y in part)


def slope(x: Expression, gradient: Expression, penalty: float) -> Expression:
    """Return the gradient plus that of a penalty on `x`."""
    return loops.apply("add", loops.apply("mul", x, penalty), gradient)


def descended(
    x: Expression, rate: Expression, slope: Expression, squares: Expression, least: float
) -> Expression:
    """Return `x - rate * slope / (sqrt(squares) + least)`."""
    step = loops.apply("mul", slope, rate)
    return loops.apply(
        "sub", x, loops.apply("div", step, loops.apply("add", loops.apply("sqrt", squares), least))
    )
