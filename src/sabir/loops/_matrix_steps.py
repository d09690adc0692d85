"""Linear attention as an expression: steps that update a matrix of state and read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANK = 4


@expression
class MatrixSteps(Expression):
    """Steps that update a matrix `S [K, V]` of each head and read it: `[batch, heads, steps * G + K, V]`.

    Each step computes

        S = S * decay[:, None]
        S = S + outer(key, (value - key @ S) * rate)    or, without `rate`, S + outer(key, value)
        results = queries @ S                           for its G queries

    The last K rows of the result are `S` after all steps.

    The operands have one element type: queries `[batch, heads, steps, G, K]`, keys and `decay`
    `[batch, heads, steps, K]`, values `[batch, heads, steps, V]`, the `first` matrices, and `rate`
    `[batch, heads, steps]`.
    """

    queries: Expression
    keys: Expression
    values: Expression
    first: Expression
    decay: Expression | None = None
    rate: Expression | None = None

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks and the element types."""
        ranks = (self.queries.rank, self.keys.rank, self.values.rank, self.first.rank)
        if ranks != (_RANK + 1, _RANK, _RANK, _RANK) or self.rank != _RANK:
            yield f"queries, keys, values and matrices have the ranks {ranks}"
        if any(x.element != self.element for x in self.operands):
            yield "the operands have several element types"
