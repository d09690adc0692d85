"""Equal products as one: what a gradient multiplies again, as a recurrent layer did, is computed once."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from sabir.compilation._layouts import postorder, rebuilt
from sabir.compilation._views import VIEWS, operands_of
from sabir.loops import Contract, Expression

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

_SHARED = (*VIEWS, Contract)


def shared_products(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions of slots, in which equal products, and equal views, are one expression."""
    found = list(postorder(expressions.values()))
    if sum(isinstance(x, Contract) for x in found) < 2:  # ruff: ignore[magic-value-comparison]  none is equal
        return dict(expressions)
    new: dict[Expression, Expression] = {}
    first: dict[Hashable, Expression] = {}
    for x in found:
        operands = [new[o] for o in operands_of(x)]
        same = all(o is old for o, old in zip(operands, operands_of(x), strict=True))
        y = x if same else rebuilt(x, operands)
        new[x] = first.setdefault(_key(y), y) if isinstance(y, _SHARED) else y
    return {slot: new[x] for slot, x in expressions.items()}


def _key(x: Expression) -> Hashable:
    """Return what is the same for equal products or views; their operands are compared by identity."""
    return type(x), *(getattr(x, f.name) for f in fields(x))
