"""Steps that update matrices and read them, as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import Expression, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_RANK = 4


@expression
class MatrixSteps(Expression):
    """Steps that update matrices `[..., K, V]` and read them: `[batch, heads, steps * G + K, V]`.

    Each step multiplies the rows of a matrix by `decay`. It reads the matrix with its key and subtracts the
    result from its value, times `rate`; it adds the product of the key and this difference to the matrix.
    Then each of its G queries reads the matrix. The last K rows of the result are the matrix after all steps.
    Without `rate`, the product of key and value is added.

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
        """Yield what is wrong with the ranks and the element types."""
        ranks = (self.queries.rank, self.keys.rank, self.values.rank, self.first.rank)
        if ranks != (_RANK + 1, _RANK, _RANK, _RANK) or self.rank != _RANK:
            yield f"queries, keys, values and matrices have the ranks {ranks}"
        if any(x.element != self.element for x in self.operands):
            yield "the operands have several element types"
