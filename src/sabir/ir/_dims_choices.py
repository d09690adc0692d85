"""Minima and maxima in dimensions, replaced by the argument that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sabir.ir._dims_algebra import DimCall, Expr, floor_of, mod_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Known: TypeAlias = int | Expr
    Choose: TypeAlias = Callable[[str, tuple[Known, ...]], Known]


def choose_extremes(value: int | Expr, choose: Choose) -> int | Expr:
    """Return a dimension in which `choose` has replaced each minimum and maximum, the inner ones first.

    It gets "min" or "max" and the arguments.

    >>> from sabir.ir import dim_min, symbol
    >>> print(choose_extremes(2 * dim_min(symbol('N'), 512), lambda op, args: args[0]))
    2*N
    """
    if isinstance(value, int):
        return value
    found: int | Expr = 0
    for monomial, coefficient in value.terms.items():
        part: int | Expr = coefficient
        for atom in monomial:
            part *= _chosen(atom, choose) if isinstance(atom, DimCall) else Expr({(atom,): 1})
        found += part
    return found


def _chosen(call: DimCall, choose: Choose) -> int | Expr:
    arguments = tuple(choose_extremes(a, choose) for a in call.args)
    if call.op in {"min", "max"}:
        return choose(call.op, arguments)
    return floor_of(*arguments) if call.op == "//" else mod_of(*arguments)
