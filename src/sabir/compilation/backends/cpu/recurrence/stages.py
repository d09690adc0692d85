"""The stages of a step of a recurrence: the expressions that are computed together.

A product needs complete rows of its left operand: unless this is a state, the product belongs to a later
stage than the operand. The values that later stages read are stored in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import Copy, row_major
from sabir.loops import Contract, Expression, Extent, Join, Number, StepOperand, StepState
from sabir.loops.walk import postorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group
    from sabir.loops import Recur, StepBody


_LEAVES = (StepState, StepOperand, Number, Extent)


class Stage:
    """The maps and products of a stage, operands first, and those `kept` because later stages read them."""

    def __init__(self) -> None:
        self.members: list[Expression] = []
        self.kept: list[Expression] = []

    @property
    def products(self) -> list[Contract]:
        """The products, in order."""
        return [x for x in self.members if isinstance(x, Contract)]


def add_recurrence(grouping: Grouping, x: Recur) -> None:
    """Add a result of a recurrence to the group of the recurrence.

    The group may have other recurrences, of the same shape and independent of this one.
    """
    group = grouping.recurrences.get(x.body)
    if group is None:
        operands = [grouping.in_memory(o) for o in x.operands]
        for place in range(len(x.initial)):
            operands[place] = _row_by_row(grouping, operands[place])
        needed = [g for o in operands for g in grouping.need(o)]
        group = _beside(grouping, x, needed) or grouping.new_group("recurrence")
        group.recurrences[x.body] = tuple(operands)
        grouping.recurrences[x.body] = group
        grouping.depend(group, needed)
    group.members.append(x)
    grouping.of[x] = group
    grouping.stored[x] = None


def _beside(grouping: Grouping, x: Recur, needed: Sequence[Group]) -> Group | None:
    """Return the group of an independent recurrence with states of the same shape, or None.

    An example is the other direction of a bidirectional LSTM.
    """
    shape = x.body.states[0].shape
    for group in dict.fromkeys(grouping.recurrences.values()):
        (first, *_) = group.recurrences
        if first.states[0].shape == shape and grouping.allowed(group, needed):
            return group
    return None


def _row_by_row(grouping: Grouping, x: Expression) -> Expression:
    """Return a row-major tensor: the expression itself, or a copy."""
    axes = zip(x.shape, grouping.views.locate(x).strides, row_major(x.shape), strict=True)
    if all(size == 1 or stride == usual for size, stride, usual in axes):
        return x
    copy = Copy(x.element, x.shape, x)
    grouping.assign(copy)
    return copy


def stages_of(body: StepBody) -> list[Stage]:
    """Return the stages of a step, in the order of execution."""
    number: dict[Expression, int] = {}
    stages = [Stage()]
    for x in _members(body):
        number[x] = max((_after(x, o, number) for o in x.operands), default=0)
        if isinstance(x, (*_LEAVES, Join)):
            continue
        stages += [Stage() for _ in range(number[x] + 1 - len(stages))]
        stages[number[x]].members.append(x)
        for o in _read(x):
            if not isinstance(o, _LEAVES) and number[o] < number[x]:
                kept = stages[number[o]].kept
                kept += [] if o in kept else [o]
    return stages


def sources_of(x: Contract) -> tuple[Expression, ...]:
    """Return the left operand of a product, or the parts that a Join concatenates to it."""
    return x.a.parts if isinstance(x.a, Join) else (x.a,)


def _read(x: Expression) -> tuple[Expression, ...]:
    """Return the expressions that an expression of a step reads."""
    return (*sources_of(x), x.b) if isinstance(x, Contract) else x.operands


def _after(x: Expression, operand: Expression, number: dict[Expression, int]) -> int:
    """Return the number of the first stage in which this operand of an expression is available to it."""
    waits = isinstance(x, Contract) and operand is x.a and not isinstance(operand, StepState)
    return number[operand] + waits


def leaves_of(body: StepBody) -> list[Expression]:
    """Return the states, operands and numbers that a step reads."""
    return [x for x in _members(body) if isinstance(x, _LEAVES)]


def _members(body: StepBody) -> Iterator[Expression]:
    """Yield the expressions of a step, operands first."""
    return postorder((*body.after, *body.outputs))
