"""Steps that update matrices, as an expression of their own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

# the API reference looks up the type of an inherited field here
# ruff: ignore[unused-import]  the same
from sabir.loops._expressions import (
    Expression,
    Number,
    Sizes,  # pyright: ignore[reportUnusedImport] - the same
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_OPERANDS = ("queries", "keys", "values", "first", "decay", "rate")


@dataclass(frozen=True, slots=True, eq=False)
class MatrixSteps(Expression):
    """What steps leave that update matrices `[..., K, V]`, and read them: `[batch, heads, steps * G + K, V]`.

    Each step multiplies the rows of a matrix by `decay`, takes what its key reads of the matrix from its
    value, times `rate`, and adds the product of the key and that; then each of its G queries reads the
    matrix. The last K rows are the matrix after all steps. Without `rate` a value is added as it is.

    The operands are of one element type: queries `[batch, heads, steps, G, K]`, keys, as `decay`,
    `[batch, heads, steps, K]`, values `[batch, heads, steps, V]`, the `first` matrices, and `rate`
    `[batch, heads, steps]`.
    """

    queries: Expression = field(default_factory=lambda: Number("float", ()))
    keys: Expression = field(default_factory=lambda: Number("float", ()))
    values: Expression = field(default_factory=lambda: Number("float", ()))
    first: Expression = field(default_factory=lambda: Number("float", ()))
    decay: Expression | None = None
    rate: Expression | None = None

    @property
    def operands(self) -> tuple[Expression, ...]:
        """What there is of the operands, in this order."""
        return tuple(x for x in (getattr(self, name) for name in _OPERANDS) if x is not None)

    def of(self, operands: Sequence[Expression]) -> MatrixSteps:
        """Return the steps with other operands, in the order of `operands`."""
        names = [name for name in _OPERANDS if getattr(self, name) is not None]
        return replace(self, **dict(zip(names, operands, strict=True)))
