"""Lowering that several rooms share: elementwise functions, and what calls know before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import Expression, NotLowered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.loops import Size
    from sabir.opsets.typing import BehaviourFunction


def elementwise(op: str) -> BehaviourFunction:
    """Return the lowering of an operator that is one scalar function of its operands."""

    def lower(*operands: Expression) -> Expression:
        return loops.apply(op, *operands)

    return lower


def formula(function: Callable[[Expression], Expression]) -> BehaviourFunction:
    """Return the lowering of a function of one operand; the binder sees no attributes."""

    def lower(x: Expression, /) -> Expression:
        return function(x)

    return lower


def sizes_of(operand: Expression | None, name: str) -> tuple[Size, ...]:
    """Return the contents of an operand as sizes; raises NotLowered where a run computes them."""
    known = loops.known_sizes(operand)
    if known is None:
        raise NotLowered(f"{name} is computed at run time")
    return known


def integers_of(operand: Expression | None, name: str) -> tuple[int, ...]:
    """Return the contents of an operand as numbers; raises NotLowered where they are not known."""
    found = tuple(n for n in sizes_of(operand, name) if isinstance(n, int))
    if operand is None or len(found) < len(sizes_of(operand, name)):
        raise NotLowered(f"{name} depends on the shapes of a run")
    return found


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front."""
    return tuple(axis % rank for axis in axes)
