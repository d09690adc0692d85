"""What an expression is computed from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expressions import (
    Best,
    Contract,
    Couple,
    Cumulate,
    Descend,
    Expand,
    Join,
    Map,
    Pad,
    Permute,
    Recur,
    Reduce,
    Reshape,
    Scatter,
    Slice,
    Slide,
    Take,
    Windows,
)
from sabir.loops._matrix_steps import MatrixSteps
from sabir.loops._regions import PoolRegions

if TYPE_CHECKING:
    from sabir.loops._expressions import Expression


def operands_of(x: Expression) -> tuple[Expression, ...]:
    """Return what an expression is computed from."""
    match x:
        case Map() | MatrixSteps() | PoolRegions() | Recur():
            return x.operands
        case Join():
            return x.parts
        case Contract():
            return tuple(o for o in (x.a, x.b, x.zero, x.scale, x.less) if o is not None)
        case Take():
            return (x.operand, x.indices)
        case Scatter():
            return (x.operand, x.indices, x.updates)
        case Slide():
            return (x.operand,) if x.weights is None else (x.operand, x.weights)
        case Descend():
            tables = (x.nodes, x.roots, x.weights, x.first, x.targets)
            return (x.operand, *(table for table in tables if table is not None))
        case (
            Reduce()
            | Cumulate()
            | Best()
            | Couple()
            | Pad()
            | Permute()
            | Reshape()
            | Expand()
            | Slice()
            | Windows()
        ):
            return (x.operand,)
        case _:
            return ()
