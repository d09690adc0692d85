"""From a group of expressions to a nest of loops and its arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._inlining import is_inline
from sabir.compilation._plan import count_of
from sabir.compilation._views import Copy, Located, broadcast_strides
from sabir.compilation.kernels import (
    ANY,
    NEXT,
    SHORT,
    STILL,
    Access,
    Accumulated,
    Apply,
    Constant,
    Fold,
    Load,
    Nest,
    Position,
    SizeArgument,
    Step,
    Stride,
    TakeStep,
    can_transpose,
    element_bytes,
)
from sabir.loops import (
    Best,
    Contract,
    Count,
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
    Take,
)

if TYPE_CHECKING:
    from sabir.compilation._grouping import Grouping
    from sabir.compilation._groups import Group

_SHORT_FOLD = 16  # elements: a vector along so few is combined more slowly than it is filled
_SHORT_FOLDS = 4  # the same for several folds, whose passes read again what does not lie side by side


class Place(NamedTuple):
    """A tensor that a nest reads or writes: where it lies, and its strides along the axes of the nest."""

    located: Located
    element: str
    strides: Sizes


@dataclass(slots=True, eq=False)
class Nesting:
    """A nest in the making: the sizes of its axes, its places, steps and stores, not yet merged."""

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
    """Builds the nest of a group; `numbers` has the step of each member."""

    def __init__(self, group: Group, grouping: Grouping) -> None:
        self.group, self.grouping = group, grouping
        reduced = group.reduced or ()
        self.found = Nesting(group.space, tuple(axis in reduced for axis in range(len(group.space))))
        self.numbers: dict[Expression, int] = {}
        self._targets: dict[Expression, int] = {}
        self._loads: dict[Expression, int] = {}

    def run(self) -> Nesting:
        """Return the nest."""
        for x in self.group.members:
            self.numbers[x] = self._member(x)
        for x in self.group.members:
            if x in self.grouping.stored:
                self.found.stores.append((self._target(x), self.numbers[x]))
        return self.found

    def _step(self, step: Step) -> int:
        self.found.steps.append(step)
        return len(self.found.steps) - 1

    # ------------------------------------------------------------ members

    def _member(self, x: Expression) -> int:
        match x:
            case Map():
                return self._step(Apply(x.element, x.op, tuple(self.operand(o) for o in x.operands)))
            case Copy() | Cumulate() | Best():
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
        """Return the step that computes an operand: a member of the group, a number, or a load."""
        found = self.numbers.get(x)
        if found is not None:
            return found
        match x:
            case Number():
                found = self._step(Constant(x.element, x.number))
            case Extent():
                self.found.arguments.append(x.size)
                found = self._step(SizeArgument(x.element, len(self.found.arguments) - 1))
            case Count():
                found = self._position(x)
            case Map() if is_inline(x):
                found = self._member(x)
                self.group.inlined.append(x)
            case _:
                return self._load(x)
        self.numbers[x] = found
        return found

    def _position(self, x: Count) -> int:
        return self._step(Position("int64", len(self.group.space) - x.rank + x.axis))

    def _load(self, x: Expression) -> int:
        """Return the load of an expression in memory, or of a number behind views."""
        found = self._loads.get(x)
        if found is None:
            located = self.grouping.views.locate(x)
            if isinstance(located.base, (Number, Extent)):
                found = self.operand(located.base)
            else:
                strides = broadcast_strides(x.shape, located.strides, self.group.space)
                found = self._step(Load(x.element, self._place(Place(located, x.element, strides))))
            self._loads[x] = found
        return found

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
        return self._step(TakeStep(x.element, self._place(Place(located, x.element, strides)), index))

    def _scatter(self, x: Scatter) -> int:
        """Return the new value of the element that an index names; a Take reads the old one."""
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
        located = self.grouping.views.locate(x.indices)
        if isinstance(located.base, (Number, Extent)):
            return self.operand(located.base)
        tail = x.rank - x.axis - x.indices.rank
        strides = (*(0,) * x.axis, *located.strides, *(0,) * tail)
        return self._step(Load(x.indices.element, self._place(Place(located, x.indices.element, strides))))

    # ------------------------------------------------------------ results

    def _target(self, x: Expression) -> int:
        """Return the place that a member is stored to."""
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


# ---------------------------------------------------------------- fewer axes


def merged(nesting: Nesting, *, fixed: int = 0) -> Nesting:
    """Return the same loops over fewer axes; the last `fixed` ones stay.

    Axes of size 1 go, and neighbours merge that all places cross as one.
    """
    used = {s.axis for s in nesting.steps if isinstance(s, Position)}
    count = len(nesting.sizes)
    axes = [a for a in range(count) if nesting.sizes[a] != 1 or a in used or a >= count - fixed]
    groups: list[list[int]] = []
    for axis in axes:
        free = not used & {axis} and axis < count - fixed
        last = groups[-1] if groups else None
        if last is not None and free and not used & set(last) and _merges(nesting, last[-1], axis):
            last.append(axis)
        else:
            groups.append([axis])
    places = [p._replace(strides=tuple(p.strides[g[-1]] for g in groups)) for p in nesting.places]
    renamed = {g[0]: number for number, g in enumerate(groups)}
    steps = [Position(s.element, renamed[s.axis]) if isinstance(s, Position) else s for s in nesting.steps]
    sizes: list[Size] = []
    for g in groups:
        size: Size = 1
        for axis in g:
            size *= nesting.sizes[axis]
        sizes.append(size)
    reduced = tuple(nesting.reduced[g[0]] for g in groups)
    return Nesting(tuple(sizes), reduced, places, steps, nesting.stores, nesting.takes, nesting.arguments)


def _merges(nesting: Nesting, outer: int, inner: int) -> bool:
    if nesting.reduced[outer] != nesting.reduced[inner]:
        return False
    size = nesting.sizes[inner]
    return all(p.strides[outer] == p.strides[inner] * size for p in nesting.places)


def nest_of(nesting: Nesting, vector_bits: int, *, inner: int | None = None) -> Nest:
    """Return the nest of merged loops; `inner` is the axis of vectors, by default the best."""
    inner = _inner(nesting) if inner is None else inner
    elements = [s.element for s in nesting.steps] + [p.element for p in nesting.places]
    if nesting.sizes and not nesting.reduced[inner] and is_short(nesting):
        elements = [s.element for s in nesting.steps if isinstance(s, Load)]  # what the loops of folds read
    widest = max([4, *(element_bytes(e) for e in elements)])
    nest = Nest(
        axes=len(nesting.sizes),
        reduced=nesting.reduced,
        inner=inner,
        accesses=tuple(Access(p.element, tuple(_class(s) for s in p.strides)) for p in nesting.places),
        steps=tuple(nesting.steps),
        stores=tuple(nesting.stores),
        sizes=len(nesting.arguments),
        lanes=vector_bits // 8 // widest,
    )
    if not can_transpose(nest):
        return nest
    short = [axis for axis, size in enumerate(nesting.sizes) if isinstance(size, int) and size <= SHORT]
    return replace(nest, short=tuple(short))


def _class(stride: Size) -> Stride:
    if stride == 0:
        return STILL
    return NEXT if stride == 1 else ANY


def _inner(nesting: Nesting) -> int:
    """Return the axis of vectors: one along which the most places advance by one element."""
    count = len(nesting.sizes)
    if not count:
        return 0
    if not any(nesting.reduced):
        return max(range(count), key=lambda axis: (_advances(nesting, axis), axis))
    kept = [a for a in range(count) if not nesting.reduced[a]]
    if kept and is_short(nesting):
        return max(kept, key=lambda a: (_advances(nesting, a), _extent(nesting.sizes[a]), a))
    candidates = [
        max((a for a in range(count) if nesting.reduced[a] == folded), default=-1) for folded in (True, False)
    ]
    along, beside = candidates
    if beside < 0:
        return along
    return max(
        along, beside, key=lambda axis: (_advances(nesting, axis), -_jumps(nesting, axis), axis == along)
    )


def _jumps(nesting: Nesting, axis: int) -> int:
    """Return how many places have gaps between neighbours along an axis."""
    return sum(p.strides[axis] not in {0, 1} for p in nesting.places)


def is_short(nesting: Nesting) -> bool:
    """Return whether a fold is too short for vectors along it: they lie across many folds instead."""
    folded = [size for size, reduced in zip(nesting.sizes, nesting.reduced, strict=True) if reduced]
    folds = sum(isinstance(s, Fold) for s in nesting.steps)
    most = _SHORT_FOLD if folds == 1 else _SHORT_FOLDS
    return bool(folds) and isinstance(count := count_of(folded), int) and count <= most


def beside_one(nesting: Nesting) -> Nesting:
    """Return short folds of which there is one as those of many, so that it has their bits."""
    if not is_short(nesting) or not all(nesting.reduced):
        return nesting
    places = [p._replace(strides=(1, *p.strides)) for p in nesting.places]  # only the first lane is there
    steps = [replace(s, axis=s.axis + 1) if isinstance(s, Position) else s for s in nesting.steps]
    return replace(
        nesting, sizes=(1, *nesting.sizes), reduced=(False, *nesting.reduced), places=places, steps=steps
    )


def _extent(size: Size) -> float:
    return size if isinstance(size, int) else math.inf


def _advances(nesting: Nesting, axis: int) -> int:
    """Return how many places lie side by side along an axis; stores count more.

    Those that are one number for a whole fold do not count: so a row is summed alike in every batch. Nor do
    indices, along which no other places lie side by side.
    """
    stored = {number for number, _ in nesting.stores}
    taken = {s.access for s in nesting.steps if isinstance(s, TakeStep)}  # along folds too
    places = {s.place for s in nesting.steps if isinstance(s, TakeStep)}
    indices = {s.access for n, s in enumerate(nesting.steps) if n in places and isinstance(s, Load)}
    folds = any(nesting.reduced)
    return sum(
        (2 if number in stored else 1) * (p.strides[axis] == 1)
        for number, p in enumerate(nesting.places)
        if number not in indices
        and (
            not folds
            or number in taken
            or any(s != 0 and r for s, r in zip(p.strides, nesting.reduced, strict=True))
        )
    )
