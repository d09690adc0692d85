"""Gradients of matrices are copied in the order of the matrices, for an optimizer.

g = permute(contract(dy, x))   before: the update of a matrix gathers the columns of its gradient
g = copy(permute(contract(dy, x)))     after: a kernel of transposed tiles reads and writes whole cache lines

The product is computed so that its larger operand is read as it is; then the gradient is transposed. It is
copied where a map reads it together with a fed tensor of the same shape, as the state of an optimizer is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import Copy
from sabir.loops import Contract, Expression, Map, Permute, Stored
from sabir.loops.walk import postorder, rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST = 1 << 12  # elements of a matrix: a smaller one stays in the nearest cache


def gradients_in_order(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where maps read no transposed product beside a tensor that is fed."""
    maps = [x for x in postorder(expressions.values()) if isinstance(x, Map)]
    transposed = {o for x in maps for o in x.operands if is_transposed_product(o) and _reads_state(x, o)}

    def rule(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
        return Copy(x.element, x.shape, rebuilt(x, new)) if x in transposed else None

    return rewrite(expressions, rule) if transposed else dict(expressions)


def is_transposed_product(x: Expression) -> bool:
    """Return whether an expression is the transposition of a matrix product that is not small."""
    if not isinstance(x, Permute) or x.axes != (1, 0) or not isinstance(x.operand, Contract):
        return False
    rows, columns = x.shape
    return isinstance(rows, int) and isinstance(columns, int) and rows * columns >= _LEAST


def _reads_state(x: Map, gradient: Expression) -> bool:
    """Return whether a map reads a fed tensor of its own shape, directly or through another map."""
    others = [o for o in x.operands if o is not gradient]
    behind = [o for other in others if isinstance(other, Map) for o in other.operands]
    return any(isinstance(o, Stored) and o.shape == x.shape for o in (*others, *behind))
