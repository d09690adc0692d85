"""Groups: expressions that one kernel computes, or a call that is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from sabir.loops import Expression

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.compilation.frontend.lowering import EvaluatedCall
    from sabir.loops import Sizes, StepBody

GroupKind = Literal[
    "nest", "product", "attention", "windows", "trees", "single", "scatter", "recurrence", "matrix steps",
    "regions", "evaluate", "gone",
]  # fmt: skip
"""The names of families of kernels, a call that is evaluated, and a group whose members went elsewhere."""


@dataclass(slots=True, eq=False)
class Group:
    """Expressions that one kernel computes, or a call that is evaluated.

    `space` is the shape that its loops run over, `reduced` the axes along which folds run. `after` has the
    numbers of the groups that run before, as bits.
    """

    kind: GroupKind
    number: int
    space: Sizes = ()
    reduced: tuple[int, ...] | None = None
    members: list[Expression] = field(default_factory=list[Expression])
    inlined: list[Expression] = field(default_factory=list[Expression])  # that its kernel computes for itself
    scores: Group | None = None  # of attention: the product and the rows between it and the members
    after: int = 0
    step: EvaluatedCall | None = None
    recurrences: dict[StepBody, tuple[Expression, ...]] = field(
        default_factory=dict["StepBody", "tuple[Expression, ...]"]
    )  # with their operands as they lie in memory
    place: int = 0  # among the calls of the program: the order in which equals run

    def narrow(self) -> Sizes:
        """Return the space with the reduced axes at size 1."""
        return tuple(1 if i in (self.reduced or ()) else d for i, d in enumerate(self.space))


def in_order(groups: Sequence[Group]) -> list[Group]:
    """Return groups in an order in which each runs after those that it needs: else in that of their numbers.

    Those of higher numbers that a group needs come forward. If it waited for their turn instead, the groups
    between would run earlier than what reads them, and their results would take memory for longer.
    """
    done, found = 0, list[Group]()
    for group in groups:
        if group.after >> group.number & 1:
            raise AssertionError("the groups wait for each other")
        needed = () if group.kind == "gone" else _numbers(group.after & ~done)
        # whatever a group needs has fewer others before it
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
    """Return ordered groups with those at the end that leave native code and that no kernel needs."""
    last: list[Group] = []
    needed = 0
    for group in reversed(groups):
        if leaves_native(group) and not needed >> group.number & 1:
            last.append(group)
        else:
            needed |= group.after
    moved = {group.number for group in last}
    return [*(g for g in groups if g.number not in moved), *reversed(last)]
