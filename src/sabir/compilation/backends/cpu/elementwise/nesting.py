"""The translation of a group of expressions to a loop nest over all axes of its space, with its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.nest import (
    Accumulated,
    Apply,
    ConstantStep,
    Fold,
    Load,
    Position,
    SizeArgument,
    Step,
    TakeStep,
)
from sabir.compilation.fusion.inlining import is_inline
from sabir.compilation.fusion.views import Copy, Located, broadcast_strides
from sabir.elements import element
from sabir.loops import (
    Best,
    Contract,
    Count,
    Couple,
    Cumulate,
    Expression,
    Extent,
    Map,
    Number,
    Reduce,
    Scatter,
    Size,
    Sizes,
    Slide,
    Stored,
    Take,
    element_bytes,
)

if TYPE_CHECKING:
    from sabir.compilation.fusion.grouping import Grouping
    from sabir.compilation.fusion.groups import Group


class Place(NamedTuple):
    """A tensor that a nest reads or writes, with strides in elements along the axes of the nest."""

    located: Located
    element: str
    strides: Sizes


@dataclass(slots=True, eq=False)
class Nesting:
    """A loop nest before its axes are merged: the sizes of its axes, its places, steps and stores.

    `stores` are pairs of a place and the number of a step. `takes` has, for each take, the size of the axis
    that it indexes, and its stride in bytes. `arguments` are the sizes that steps read.
    """

    sizes: Sizes
    reduced: tuple[bool, ...]
    places: list[Place] = field(default_factory=list[Place])
    steps: list[Step] = field(default_factory=list[Step])
    stores: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    takes: list[tuple[Size, Size]] = field(default_factory=list[tuple[Size, Size]])
    arguments: list[Size] = field(default_factory=list[Size])


def nesting_of(group: Group, grouping: Grouping) -> Nesting:
    """Return the loops over the space of a group."""
    return NestBuilder(group, grouping).run()


class NestBuilder:
    """Builds the nest of a group; `numbers` maps members and operands, except loads, to their steps."""

    def __init__(self, group: Group, grouping: Grouping) -> None:
        self.group, self.grouping = group, grouping
        reduced = group.reduced or ()
        self.found = Nesting(group.space, tuple(axis in reduced for axis in range(len(group.space))))
        self.numbers: dict[Expression, int] = {}
        self._targets: dict[Expression, int] = {}
        self._loads: dict[Expression, int] = {}
        self._pure: dict[Step, int] = {}

    def run(self) -> Nesting:
        """Return the nest."""
        for x in self.group.members:
            self.numbers[x] = self._member(x)
        for x in self.group.members:
            if x in self.grouping.stored:
                self.found.stores.append((self._target(x), self.numbers[x]))
        return self.found

    def _step(self, step: Step) -> int:
        """Add a step, unless the nest has an equal pure step; return its number."""
        if isinstance(step, (Apply, ConstantStep)) and step in self._pure:
            return self._pure[step]
        self.found.steps.append(step)
        number = len(self.found.steps) - 1
        if isinstance(step, (Apply, ConstantStep)):
            self._pure[step] = number
        return number

    # ------------------------------------------------------------ members

    def _member(self, x: Expression) -> int:
        match x:
            case Map():
                return self._step(Apply(x.element, x.op, tuple(self.operand(o) for o in x.operands)))
            case Copy() | Cumulate() | Best() | Couple():
                return self.operand(x.operand)
            case Reduce():
                return self._step(Fold(x.element, x.op, self.operand(x.operand), x.last))
            case Take():
                return self._take(x)
            case Scatter():
                return self._scatter(x)
            case Contract() | Slide():
                return self._step(Accumulated(x.element))
            case Count():
                return self._position(x)
            case _:
                raise TypeError(f"{type(x).__name__} is no member of a group")

    def operand(self, x: Expression) -> int:
        """Return the step that computes an operand: a member, a number, a size, an inlined map or a load."""
        found = self.numbers.get(x)
        if found is not None:
            return found
        match x:
            case Number():
                found = self._step(ConstantStep(x.element, x.number))
            case Extent():
                self.found.arguments.append(x.size)
                found = self._step(SizeArgument(x.element, len(self.found.arguments) - 1))
            case Count():
                found = self._position(x)
            case Map() if is_inline(x, self.grouping.heuristics):
                found = self._member(x)
                self.group.inlined.append(x)
            case _:
                return self._load(x)
        self.numbers[x] = found
        return found

    def _position(self, x: Count, tail: int = 0) -> int:
        """Return the step with the index along the axis of a Count, whose last axis precedes `tail` axes."""
        return self._step(Position("int64", len(self.group.space) - tail - x.rank + x.axis))

    def _load(self, x: Expression) -> int:
        """Return the step that loads an expression, or the step of a number that it is a view of."""
        found = self._loads.get(x)
        if found is None:
            found = self._literal(x)
        if found is None:
            located = self.grouping.views.locate(x)
            if isinstance(located.base, (Number, Extent)):
                found = self.operand(located.base)
            else:
                strides = broadcast_strides(x.shape, located.strides, self.group.space)
                found = self._step(Load(x.element, self._place(Place(located, x.element, strides))))
            self._loads[x] = found
        return found

    def _literal(self, x: Expression) -> int | None:
        """Return the step of a number of the group that is equal to a constant in memory, or None.

        Constants are loaded, so that nests with other constants share machine code. But steps are equal, and
        computed once, only if their operands are the same steps.
        """
        known = x.known if isinstance(x, Stored) else None
        if known is None or len(known) != 1 or x.element not in {"float", "double"}:
            return None
        as_stored, wanted = element(x.element).dtype.type, known[0]
        if not isinstance(wanted, float) or as_stored(wanted) == 0:  # 0 and -0 are equal
            return None
        numbers = (o for m in self.group.members if isinstance(m, Map) for o in m.operands)
        same = (n for n in numbers if isinstance(n, Number) and n.element == x.element)
        return next((self.operand(n) for n in same if as_stored(n.number) == as_stored(wanted)), None)

    def _place(self, place: Place) -> int:
        self.found.places.append(place)
        return len(self.found.places) - 1

    def _take(self, x: Take) -> int:
        located = self.grouping.views.locate(self.grouping.operands[x][0])
        before, after = located.strides[: x.axis], located.strides[x.axis + 1 :]
        strides = (*before, *(0,) * x.indices.rank, *after)
        index = self._index(x)
        size = element_bytes(x.element)
        self.found.takes.append((x.operand.shape[x.axis], located.strides[x.axis] * size))
        near = located.strides[x.axis] == 1 and x.indices.element == "int32"
        return self._step(TakeStep(x.element, self._place(Place(located, x.element, strides)), index, near))

    def _scatter(self, x: Scatter) -> int:
        """Return the step of the new value of the element at an index; a TakeStep loads the old value."""
        located = self.grouping.views.locate(x)
        stride = located.strides[x.axis]
        strides = tuple(0 if axis == x.axis else s for axis, s in enumerate(located.strides))
        self.found.takes.append((x.shape[x.axis], stride * element_bytes(x.element)))
        index, update = self.operand(x.indices), self.operand(x.updates)
        self._targets[x] = self._place(Place(located, x.element, strides))
        old = self._step(TakeStep(x.element, self._targets[x], index))
        return self._step(Apply(x.element, x.op, (old, update))) if x.op else update

    def _index(self, x: Take) -> int:
        if isinstance(x.indices, (Number, Extent)) or x.indices in self.numbers:
            return self.operand(x.indices)
        tail = x.rank - x.axis - x.indices.rank
        if isinstance(x.indices, Count):
            return self._position(x.indices, tail)
        located = self.grouping.views.locate(x.indices)
        if isinstance(located.base, (Number, Extent)):
            return self.operand(located.base)
        strides = (*(0,) * x.axis, *located.strides, *(0,) * tail)
        return self._step(Load(x.indices.element, self._place(Place(located, x.indices.element, strides))))

    # ------------------------------------------------------------ results

    def _target(self, x: Expression) -> int:
        """Return the number of the place that a member is stored to."""
        if x in self._targets:
            return self._targets[x]
        if isinstance(x, Copy) and x.into is not None:
            located = self.grouping.views.locate(x.into)
            offset = located.offset
            for start, stride in zip(x.starts, located.strides, strict=True):
                offset += start * stride
            located = located._replace(offset=offset)
        else:
            located = self.grouping.views.locate(x)
        strides = broadcast_strides(x.shape, located.strides, self.group.space)
        return self._place(Place(located, x.element, strides))
