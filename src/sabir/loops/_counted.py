"""Results whose number a run decides: memory for all that there may be, which begins with their number."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.loops._expression import FLOATS, Expression, Size, differ, expression

if TYPE_CHECKING:
    from collections.abc import Iterator

_BOXES, _SCORES = 3, 3  # axes
_SORTED = FLOATS | {"int32", "int64", "uint32", "uint64"}  # kernels sort no other elements
ROWS_OF_DISTINCT = 3
"""The rows of the result of `Distinct`."""


@expression
class TruePlaces(Expression):
    """The indices of the true elements of a vector, in ascending order.

    The result, of int64, has an element more than the operand: first the number of indices, then the indices.
    What follows them has no value.
    """

    operand: Expression

    def violations(self) -> Iterator[str]:
        """Yield violations of the shapes and the element types."""
        x = self.operand
        if x.element != "bool" or x.rank != 1:
            yield f"a vector of truth values, and the operand is {x.element} of rank {x.rank}"
        elif self.rank != 1 or differ(self.shape[0], x.shape[0] + 1):
            yield f"{self.shape} for the places of {x.shape}"
        if self.element != "int64":
            yield f"places of {self.element}"


@expression
class Distinct(Expression):
    """The different elements of a vector, ascending if they are `ascending`, else by their first index.

    NaN equals NaN and is greater than any number. The result, of int64, has three elements for each of the
    operand and one more: first the number of different elements, then three rows. The first has the first
    index of each different element, the second the number of the different element that each element equals,
    the third how often each different element occurs. Only the second row has a value in all places.
    """

    operand: Expression
    ascending: bool

    def violations(self) -> Iterator[str]:
        """Yield violations of the shapes and the element types."""
        x = self.operand
        if x.element not in _SORTED or x.rank != 1:
            yield f"a vector of numbers, and the operand is {x.element} of rank {x.rank}"
        elif self.rank != 1 or differ(self.shape[0], x.shape[0] * ROWS_OF_DISTINCT + 1):
            yield f"{self.shape} for the different elements of {x.shape}"
        if self.element != "int64":
            yield f"indices of {self.element}"


@expression
class Suppress(Expression):
    """The best boxes of each class that overlap no better box of it by more than a part of their union.

    `boxes` are `[batch, boxes, 4]`, two opposite corners, or the centre and the sizes if they are `centred`;
    `scores` are `[batch, classes, boxes]`, both of float. `most`, `overlap` and `threshold` have one element:
    how many boxes of a class are selected, the part of the union, and the score that they need. `bound` is
    the greatest number of boxes of a class that may be selected. A score that is NaN is the worst.

    The result, of int64, has three numbers for each selected box, its batch, its class and its index, after
    their number. What follows them has no value.
    """

    boxes: Expression
    scores: Expression
    most: Expression
    overlap: Expression
    threshold: Expression | None
    centred: bool
    bound: Size

    def violations(self) -> Iterator[str]:
        """Yield violations of the ranks and the element types."""
        floats = (
            self.boxes,
            self.scores,
            self.overlap,
            *(() if self.threshold is None else (self.threshold,)),
        )
        if self.boxes.rank != _BOXES or self.scores.rank != _SCORES or self.rank != 1:
            yield "boxes and scores have three axes, and the result has one"
        if any(x.element != "float" for x in floats) or self.most.element != "int64":
            yield f"numbers of {[x.element for x in floats]} and {self.most.element}"
        if self.element != "int64":
            yield f"indices of {self.element}"
