"""Scaled matrices: a number that scales the second operand of a product scales the first one instead.

    contract(q, mul(view(k), c))                         before: attention that scales queries and keys
    contract(mul(q, c), view(k))                         after

Exporters of PyTorch scale both by the root of the usual factor. The keys are then copied in each run, for
each head that shares them; as a view they are read in place. A view in which only the axes before the two of
the matrix are split or joined after a transposition becomes the transposition of a view, which is how other
passes and kernels expect it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sabir import loops
from sabir.loops import Contract, Expand, Expression, Map, Number, Permute, Reshape, Slice, Stored
from sabir.loops.walk import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

_VIEWS = (Expand, Permute, Reshape, Slice)


def scaled_matrices(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where the second operands of products are not scaled by a number."""
    return rewrite(expressions, _moved)


def reads_scaled(x: Expression) -> bool:
    """Return whether an expression is a product whose second operand is a view that a number scales."""
    return isinstance(x, Contract) and _parts(x.b) is not None


def _moved(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    """Return a product whose first operand is scaled; None for any other expression."""
    if not isinstance(x, Contract) or not x.is_float or x.scale is not None:
        return None
    parts = _parts(new[x.b])
    if parts is None:
        return None
    view, factor = parts
    return replace(x, a=loops.apply("mul", new[x.a], factor), b=_transposed(view))


def _parts(b: Expression) -> tuple[Expression, Expression] | None:
    """Return the view and the number of rank 0 of which an operand is the product; None if it is another."""
    if not isinstance(b, Map) or b.op != "mul":
        return None
    for view, factor in (b.inputs, b.inputs[::-1]):
        if (
            _is_number(factor)
            and isinstance(view, _VIEWS)
            and view.shape == b.shape
            and not _is_constant(view)
        ):
            return view, factor if factor.rank == 0 else loops.reshape(factor, ())
    return None


def _is_number(x: Expression) -> bool:
    return isinstance(x, (Number, Stored)) and all(size == 1 for size in x.shape)


def _is_constant(view: Expression) -> bool:
    while isinstance(view, _VIEWS):
        view = view.operands[0]
    return isinstance(view, Stored) and view.array is not None


def _transposed(view: Expression) -> Expression:
    """Return a view with the transposition of the matrices, if there is one, as its last step."""
    if not isinstance(view, Reshape) or not isinstance(view.operand, Permute):
        return view
    turned = view.operand
    if turned.rank < 2 or view.rank < 2 or view.shape[-2:] != turned.shape[-2:]:  # ruff: ignore[magic-value-comparison]  a matrix
        return view
    *batch, rows, columns = view.shape
    if turned.axes != (*range(turned.rank - 2), turned.rank - 1, turned.rank - 2):
        return view
    base = turned.operand
    while isinstance(base, Reshape):
        base = base.operand
    inner = loops.reshape(base, (*batch, columns, rows))
    return loops.permute(inner, (*range(view.rank - 2), view.rank - 1, view.rank - 2))
