"""Expressions that have a kernel of their own, which no other expression joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation._matrix_steps import group_matrix_steps
from sabir.compilation._regions import group_regions
from sabir.compilation._trees import group_trees
from sabir.loops import Descend, MatrixSteps, PoolRegions

if TYPE_CHECKING:
    from sabir.compilation._grouping import Grouping


def group_alone(grouping: Grouping, x: Descend | MatrixSteps | PoolRegions) -> None:
    """Let a kernel of its own compute an expression."""
    match x:
        case Descend():
            group_trees(grouping, x)
        case MatrixSteps():
            group_matrix_steps(grouping, x)
        case PoolRegions():
            group_regions(grouping, x)
