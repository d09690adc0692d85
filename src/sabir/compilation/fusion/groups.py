"""Groups: the expressions that fusion assigns to one kernel, or one evaluated call."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sabir.loops import Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.compilation.frontend.unlowered import UnloweredCall
    from sabir.loops import Sizes, StepBody

GroupKind: TypeAlias = str
"""The name of a kernel family; `evaluate` for an evaluated call; `gone` for an absorbed group."""


@dataclass(slots=True, eq=False)
class Group:
    """Expressions that one kernel computes, or an evaluated call.

    `space` is the iteration space of its loops, `reduced` the axes that its folds reduce. `after` is a bit
    set: the numbers of the groups that must run before.
    """

    kind: GroupKind
    number: int
    space: Sizes = ()
    reduced: tuple[int, ...] | None = None
    members: list[Expression] = field(default_factory=list[Expression])
    inlined: list[Expression] = field(
        default_factory=list[Expression]
    )  # expressions that the kernel recomputes
    scores: Group | None = None  # of attention: the group of the scores
    after: int = 0
    step: UnloweredCall | None = None
    recurrences: dict[StepBody, tuple[Expression, ...]] = field(
        default_factory=dict["StepBody", "tuple[Expression, ...]"]
    )  # with their operands in memory
    place: int = 0  # index of the evaluated call in the program

    def narrow(self) -> Sizes:
        """Return the space with size 1 along the reduced axes."""
        return tuple(1 if i in (self.reduced or ()) else d for i, d in enumerate(self.space))


def in_order(groups: Sequence[Group]) -> list[Group]:
    """Return the groups in topological order, as close to the order of their numbers as possible.

    If a group depends on groups with higher numbers, these move before it. If the group moved behind them
    instead, the results of the groups between would be live for longer.
    """
    done, found = 0, list[Group]()
    for group in groups:
        if group.after >> group.number & 1:
            raise AssertionError("the groups depend on each other")
        needed = () if group.kind == "gone" else _numbers(group.after & ~done)
        # a dependency has fewer groups before it than its user
        for other in sorted((groups[n] for n in needed), key=lambda g: g.after.bit_count()):
            if other.kind != "gone":
                found.append(other)
            done |= 1 << other.number
        if group.kind != "gone" and not done >> group.number & 1:
            found.append(group)
        done |= 1 << group.number
    return found


def _numbers(bits: int) -> Iterator[int]:
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def last_of(groups: Sequence[Group], leaves_native: Callable[[Group], bool]) -> list[Group]:
    """Return the groups with those at the end that satisfy `leaves_native` and no other group needs."""
    last: list[Group] = []
    needed = 0
    for group in reversed(groups):
        if leaves_native(group) and not needed >> group.number & 1:
            last.append(group)
        else:
            needed |= group.after
    moved = {group.number for group in last}
    return [*(g for g in groups if g.number not in moved), *reversed(last)]


def first_of(groups: Sequence[Group], is_ahead: Callable[[Group], bool]) -> list[Group]:
    """Return the groups with those that are ahead at the beginning; they depend on no other groups."""
    return [*filter(is_ahead, groups), *(g for g in groups if not is_ahead(g))]
