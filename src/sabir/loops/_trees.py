"""Decision trees, as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_MATRIX = 2


@expression
class Descend(Expression):
    """The leaves of decision trees that rows `[N, F]` reach, combined in the order of the trees: `[N, T]`.

    `op` is `sum`, `min` or `max`, of doubles. The features are unsigned integers of the type of `nodes`. A
    row at node `p` goes to `next` or, if its feature is greater than the threshold, to the node after `next`:
    `nodes[p]` is the threshold and `next << bits | 8 * feature`. A leaf is a node whose `next` is itself and
    whose threshold is the largest integer, which other nodes do not have. `roots` (2, a multiple of 8) has
    the first node of each of the `trees`, and the number of steps after which the kernel tests for leaves.

    Without `targets`, node `p` adds `weights[p]`. Else it adds `weights[v]` to `targets[v]` for each `v` from
    `first[p]` to before `first[p + 1]`. `widest` is the largest feature that a node reads, `steps` the
    largest number of nodes on a path.
    """

    operand: Expression
    op: str
    nodes: Expression
    roots: Expression
    weights: Expression
    first: Expression | None = None
    targets: Expression | None = None
    trees: int = 0
    bits: int = 0
    widest: int = 0
    steps: int = 0

    def violations(self) -> Iterator[str]:
        """Yield what is wrong with the ranks and the element types."""
        if self.rank != _MATRIX or self.operand.rank != _MATRIX:
            yield "rows of targets are computed from rows of features"
        if self.operand.element != self.nodes.element:
            yield f"features of {self.operand.element} and nodes of {self.nodes.element}"
        if (self.first is None) is not (self.targets is None):
            yield "`first` and `targets` come together"
