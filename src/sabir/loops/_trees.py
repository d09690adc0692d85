"""Decision trees, as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_MATRIX = 2


@expression
class Descend(Expression):
    """Decision trees: the weights of the leaves that rows `[N, F]` reach, combined tree by tree: `[N, T]`.

    `op` combines the weights, which are doubles: `sum`, `min` or `max`. The features are unsigned integers of
    the element type of `nodes`. `nodes[p]` is a pair: the threshold, and `next << bits | 8 * feature`. A row
    at node `p` goes to `next`, or to `next + 1` if its feature is greater than the threshold. A leaf has
    itself as `next`, and the largest integer as threshold, which no other node has. `roots`, `[2, trees
    rounded up to 8]`, has the first node of each of the `trees`, and after how many steps the kernel begins
    to test for leaves.

    Without `targets`, leaf `p` adds `weights[p]`. With `targets`, it adds `weights[v]` to the target
    `targets[v]`, for each `v` with `first[p] <= v < first[p + 1]`. `widest` is the largest feature that a
    node reads, `steps` the length of the longest path.
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
        """Yield violations of the ranks and the element types."""
        if self.rank != _MATRIX or self.operand.rank != _MATRIX:
            yield "rows of targets are computed from rows of features"
        if self.operand.element != self.nodes.element:
            yield f"features of {self.operand.element} and nodes of {self.nodes.element}"
        if (self.first is None) is not (self.targets is None):
            yield "`first` and `targets` come together"
