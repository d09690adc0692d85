"""Common subexpressions: equal products, and equal views, become one expression.

a = contract(x, w);  b = contract(x, w)      before: the gradient of a recurrent layer multiplies again
a = b = contract(x, w)                       after
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import VIEWS
from sabir.loops import Contract, Expression
from sabir.loops.walk import rebuilt, rewrite, structure

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

_SHARED = (*VIEWS, Contract)


def common_products(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where equal products, and equal views, are one expression."""
    first: dict[Hashable, Expression] = {}

    def first_equal(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
        y = rebuilt(x, new)
        return first.setdefault(structure(y), y) if isinstance(y, _SHARED) else None

    return rewrite(expressions, first_equal)


def is_contract(x: Expression) -> bool:
    """Return whether an expression is a product."""
    return isinstance(x, Contract)
