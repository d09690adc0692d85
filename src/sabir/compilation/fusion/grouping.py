"""Fusion: the assignment of expressions to groups, each of which is computed by one kernel.

Expressions are visited from operands to results. A map joins the group of an operand that has the same
iteration space. A fold joins the maps that it reduces, and maps over the same rows that read its result join
as well. So Softmax and LayerNormalization become one kernel, also as subgraphs of simpler operators. Maps
after a product are its epilogue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sabir.base import check_time
from sabir.compilation.fusion.checks import checks_of
from sabir.compilation.fusion.groups import Group, GroupKind
from sabir.compilation.fusion.inlining import InliningHeuristics, is_inline, read_by, why_inline
from sabir.compilation.fusion.parts import parts_to_write
from sabir.compilation.fusion.updates import absorb, candidates, is_update, note_reader
from sabir.compilation.fusion.views import (
    VIEWS,
    Copy,
    Views,
    is_number,
    is_reshape,
)
from sabir.compilation.plan.decisions import Decisions, NodesOf, Reason
from sabir.loops import (
    Contract,
    Count,
    Expression,
    Extent,
    Join,
    Map,
    Number,
    Pad,
    Permute,
    Reduce,
    Reshape,
    Slide,
    StepBody,
    Stored,
    Take,
    Windows,
)
from sabir.loops.walk import postorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.frontend.unlowered import UnloweredCall
    from sabir.compilation.fusion.families import Families
    from sabir.loops import Sizes

# why an expression joins no group
_CLOSED = Reason("that kernel computes nothing else")
_TAKEN = Reason("only plain loops over the same shape take elements")
_NO_AXES = Reason("it folds no axis")
_OTHER_AXES = Reason("that kernel folds other axes")
_OTHER_SHAPE = Reason("it has another shape")
_OTHER_RESULT = Reason("it reads a result of another shape there")
_UPDATE = Reason("tensors of an optimizer are read faster row by row than in tiles")
_CIRCLE = Reason("the kernels would wait for each other")
_VIEW = Reason("it reads a view of the result")
_OWN = "a separate kernel"


class FusionHeuristics(InliningHeuristics, Protocol):
    """The thresholds of a target for fusion."""

    @property
    def most_members(self) -> int:
        """The expressions of a group, at most."""
        ...

    @property
    def update_tensors(self) -> int:
        """The tensors that an optimizer reads and updates, at least."""
        ...


def _reads_channels(user: object) -> bool:
    """Return whether an expression needs the last axis of its operand to be contiguous."""
    return isinstance(user, (Windows, Slide)) or (isinstance(user, Contract) and user.rows > 1)


def _why_unfolded(x: Reduce, group: Group) -> Reason | None:
    """Return why a fold cannot join a group; None if it can."""
    if group.kind != "nest":
        return Reason("a kernel of the kind {} computes no folds", (group.kind,))
    if x.operand.shape != group.space:
        return _OTHER_SHAPE
    if not x.axes:
        return _NO_AXES
    return None if group.reduced in {None, x.axes} else _OTHER_AXES


class Grouping:
    """The groups of one plan, and the expressions that they store."""

    def __init__(self, lowered: Lowered, families: Families, heuristics: FusionHeuristics) -> None:
        self.lowered = lowered
        self.families, self.heuristics = families, heuristics
        self.decisions = Decisions()
        self.views = Views(families.row_major)
        self.groups: list[Group] = []
        self.of: dict[Expression, Group] = {}
        self.stored: dict[Expression, None] = {}
        self.writers: dict[Expression, list[Group]] = {}  # of Join, Pad, Scatter: groups that write it
        self.waited = 0  # bit set: the numbers of the groups that others depend on
        self.readers: dict[Expression, Group] = {}  # of a result: the nest whose first map reads it
        self.updates: dict[Group, bool] = {}  # products whose epilogue would be an optimizer
        self._visited: set[Expression] = set()
        self._inline: list[Expression] = []
        self._copied: dict[Expression, Copy] = {}
        self.users: dict[Expression, list[object]] = {}
        self.recurrences: dict[StepBody, Group] = {}
        self.whole: dict[Expression, Expression | None] = {}  # of a Join or Pad: the tensor that contains it
        self._filled: dict[int, tuple[Group, ...]] = {}  # by slot: the evaluated call that computes it
        self.outputs: dict[int, Expression] = {}
        self.results: set[Expression] = set()  # the outputs
        self.shapes: dict[int, Sizes] = {}  # of the outputs
        self.plain: set[Expression] = set()  # row-major operands of control flow
        self.chosen: set[Expression] = set()  # results of control flow
        self.operands: dict[Expression, tuple[Expression, Expression]] = {}  # both operands in memory
        self.takers: dict[Expression, Group] = {}  # by tensor: the last group with a Take of it
        self.more: dict[Expression, dict[Expression, Expression]] = {}  # further operands in memory

    def run(self, outputs: Sequence[int]) -> None:
        """Group all expressions that the evaluated calls and the outputs (slots) depend on."""
        prepared = self.lowered.prepared
        roots: list[tuple[int, UnloweredCall | None, list[Expression]]] = []
        for place, _ in prepared.plan.steps:
            step = self.lowered.evaluated.get(place)
            if step is not None:
                read = self._plain if place in self.lowered.controls else self._read
                found = [read(s) for s in step.reads if s in self.lowered.expressions]
                roots.append((place, step, found))
        for place in self.lowered.controls:
            self.chosen.update(self._results_of(place))
        last = [self._output(slot) for slot in outputs if slot in self.lowered.expressions]
        last += checks_of(self.lowered, [*(x for _, _, found in roots for x in found), *last])
        roots.append((len(prepared.program.calls), None, last))
        seen: set[Expression] = set()
        reshapes: list[Reshape] = []
        for _, step, found in roots:
            for x in found if step is not None else ():
                self.users.setdefault(x, []).append(step)
            for x in postorder(found, seen):
                for o in x.operands:
                    self.users.setdefault(o, []).append(x)
                if isinstance(x, Reshape):
                    reshapes.append(x)
        self._prefer(reshapes)
        for place, step, found in roots:
            self._visit(found)
            if step is not None:
                self._evaluated(step, place, found)
            else:
                for x in found:
                    self.need(x)
        self._decide_inline()

    def _prefer(self, reshapes: Iterable[Reshape]) -> None:
        """Choose the axis order of the operands of reshapes, except operands of convolutions or pooling."""
        for x in reshapes:
            base = x.operand.operand if isinstance(x.operand, Permute) else x.operand
            if (
                base not in self.results
                and base not in self.plain
                and not any(map(_reads_channels, self.users.get(base, ())))
            ):
                self.views.prefer(x)

    def _read(self, slot: int) -> Expression:
        """Return an operand of an evaluated call; a number, also below views, is copied to memory."""
        x = self.lowered.expressions[slot]
        if is_number(x):
            x = self.lowered.expressions[slot] = Copy(x.element, x.shape, x)
        return x

    def _plain(self, slot: int) -> Expression:
        """Return an operand of control flow as a whole row-major tensor in memory; others are copied."""
        x = self.lowered.expressions[slot]
        if not isinstance(x, (Stored, Join, Copy)) and (is_number(x) or isinstance(x, VIEWS)):
            x = self.lowered.expressions[slot] = Copy(x.element, x.shape, x)
        self.plain.add(x)
        return x

    def _output(self, slot: int) -> Expression:
        """Return the expression that is stored as an output, below reshapes; views and inputs are copied."""
        x = self.lowered.expressions[slot]
        shape = x.shape
        while is_reshape(x):
            x = x.operand
        is_copied = isinstance(x, (*VIEWS, Stored, Number, Extent, Count)) and x not in self.chosen
        if is_copied or x in self.results:
            x = Copy(x.element, x.shape, x)
        self.results.add(x)
        self.outputs[slot], self.shapes[slot] = x, shape
        return x

    def _evaluated(self, step: UnloweredCall, place: int, found: Sequence[Expression]) -> None:
        is_control = place in self.lowered.controls
        group = self.new_group("control" if is_control else "evaluate")
        group.step, group.place = step, place
        for x in found:
            self.depend(group, self.need(x))
        for slot in step.reads:
            self.depend(group, self._filled.get(slot, ()))
        for slot in self.lowered.prepared.program.calls[place].outputs:
            self._filled[slot] = (group,)
            x = self.lowered.expressions.get(slot)
            if x is not None:
                self.of[x] = group

    def _results_of(self, place: int) -> Iterable[Expression]:
        slots = self.lowered.prepared.program.calls[place].outputs
        return (self.lowered.expressions[slot] for slot in slots if slot in self.lowered.expressions)

    def _decide_inline(self) -> None:
        """Record a decision for each expression that is inlined into all its readers."""
        for x in self._inline:
            if x not in self.of:
                self.decisions.add((x,), "storage", "computed by each reader", because=why_inline(x))

    # ------------------------------------------------------------ visiting

    def _visit(self, roots: Iterable[Expression]) -> None:
        for x in postorder(roots, self._visited):
            check_time()
            if isinstance(x, (Map, Reduce, Take, Copy)):
                if is_inline(x, self.heuristics):  # `need` assigns it to a group if memory is required
                    self._inline.append(x)
                else:
                    self.assign(x)
            elif isinstance(x, (Join, Pad)):
                self._parts(x)
            else:
                self.families.group(self, x)

    def _copies(self) -> None:
        """Group the copies that views require."""
        copies = self.views.copies
        self.views.copies = []  # grouping a copy may require further copies
        for copy in copies:
            self._visited.add(copy)
            self.assign(copy)
            self.stored[copy] = None

    def need(self, x: Expression) -> list[Group]:
        """Store an expression in memory; return the groups that write it."""
        base = self.views.locate(x).base
        self._copies()
        if isinstance(base, (Number, Extent)):
            return []
        if isinstance(base, Count) and base not in self.of:
            self.start(base, base.shape)
        if base not in self.of and is_inline(base, self.heuristics):
            self.assign(base)
        if isinstance(base, Stored):
            return [self.of[base]] if base in self.of else []
        self.stored[base] = None
        if base in self.writers:
            return self.writers[base]
        return [self.of[base]]

    # ------------------------------------------------------------ groups

    def new_group(self, kind: GroupKind) -> Group:
        """Add an empty group."""
        group = Group(kind, len(self.groups))
        self.groups.append(group)
        return group

    def depend(self, group: Group, on: Iterable[Group]) -> None:
        """Make a group, and all groups that depend on it, depend on others."""
        more = 0
        for other in on:
            if other is not group:
                more |= other.after | (1 << other.number)
        if more & ~group.after == 0:
            return
        group.after |= more
        self.waited |= more
        if not self.waited >> group.number & 1:
            return  # no group depends on it, as on a new group
        bit = 1 << group.number
        for other in self.groups[group.number + 1 :]:
            if other.after & bit:
                other.after |= group.after
        for other in self.groups[: group.number]:
            if other.after & bit:
                other.after |= group.after

    def assign(self, x: Expression) -> None:
        """Add a Map, Reduce, Take or Copy to the best group that it fits, or to a new nest."""
        direct, memory = self._operands(x)
        needed = [g for o in memory for g in self.need(o)]
        rejected: list[tuple[Group, Reason]] = []
        for group in self._readers(x) if isinstance(x, Take) else candidates(self, x, direct):
            others = [o for o in direct if self.of.get(o) is not group and o in self.of]
            apart = self._why_apart(x, group, direct)
            if apart is None and not self.allowed(group, [*needed, *(self.of[o] for o in others)]):
                apart = _CIRCLE
            if apart is None:
                absorb(self, group, [self.of[o] for o in others], self.heuristics.most_members - 1)
                needed += [g for o in others if self.of[o] is not group for g in self.need(o)]
                self._decide(x, Reason("fused with {}", (NodesOf(group.members[0]),)), rejected)
                self._join(x, group, needed)
                return
            rejected.append((group, apart))
        needed += [g for o in direct if o in self.of for g in self.need(o)]
        rejected += [(self.of[o], _VIEW) for o in map(self._viewed, memory) if o in self.of]
        self._decide(x, _OWN, rejected)
        group = self.start(x, x.operand.shape if isinstance(x, Reduce) else x.shape)
        group.reduced = x.axes if isinstance(x, Reduce) else None
        note_reader(self, x, group)
        self.depend(group, needed)
        self._wrote(x, group)

    def _decide(self, x: Expression, chosen: Reason | str, rejected: Sequence[tuple[Group, Reason]]) -> None:
        """Record the fusion decision of an expression, with the rejected groups."""
        if not rejected:
            self.decisions.add((x,), "fusion", chosen)
        for group, reason in rejected:
            if group.members:
                other = Reason("fused with {}", (NodesOf(group.members[0]),))
                self.decisions.add((x,), "fusion", chosen, other, reason)

    def _viewed(self, x: Expression) -> Expression:
        """Return the tensor in memory that a view reads; an expression that is no view is returned itself."""
        return self.views.locate(x).base if isinstance(x, VIEWS) else x

    def _readers(self, x: Take) -> Iterable[Group]:
        """Return the last group with a Take of the same tensor, unless it computes the indices of `x`."""
        group = self.takers.get(self.operands[x][0])
        return () if group is None or self.of.get(x.indices) is group else (group,)

    def _operands(self, x: Expression) -> tuple[list[Expression], list[Expression]]:
        """Return the operands that the same kernel may compute, and those that it loads from memory."""
        direct: list[Expression] = []
        memory: list[Expression] = []
        if isinstance(x, Take):
            self.operands[x] = data, _ = self.in_memory(x.operand), x.indices
            memory.append(data)
            if isinstance(x.indices, Count):
                return direct, memory  # the indices are a loop index
            in_memory = isinstance(x.indices, (*VIEWS, Stored)) or x.indices in self.of
            (memory if in_memory or is_inline(x.indices, self.heuristics) else direct).append(x.indices)
            return direct, memory
        for o in dict.fromkeys(read for operand in x.operands for read in read_by(operand, self.heuristics)):
            if isinstance(o, (Number, Extent, Count)):
                continue
            if isinstance(o, (*VIEWS, Stored, Join, Pad)):
                memory.append(o)
            else:
                direct.append(o)
        return direct, memory

    def in_memory(self, x: Expression) -> Expression:
        """Return an expression in memory: a copy if it is a number, also below views, else itself."""
        if not is_number(x):
            return x
        copy = Copy(x.element, x.shape, x)
        self.assign(copy)
        return copy

    def _why_apart(self, x: Expression, group: Group, direct: Sequence[Expression]) -> Reason | None:
        """Return why an expression does not fit the loops of a group; None if it does."""
        if self.families.is_closed(group):
            return _CLOSED
        if len(group.members) >= self.heuristics.most_members:
            return Reason("{} expressions >= {}", (len(group.members), self.heuristics.most_members))
        if isinstance(x, Take):
            fits = group.kind == "nest" and group.reduced is None and group.space == x.shape
            return None if fits else _TAKEN
        inside = [o for o in direct if self.of.get(o) is group]
        if isinstance(x, Reduce):
            return _why_unfolded(x, group)
        if x.shape == group.space:
            has_epilogue = self.families.has_epilogue(group)
            shapes = {group.space} if has_epilogue else {group.space, group.narrow()}
            if not all(o.shape in shapes for o in inside):
                return _OTHER_RESULT
            return _UPDATE if is_update(self, group) else None
        return None if group.reduced is not None and x.shape == group.narrow() else _OTHER_SHAPE

    def allowed(self, group: Group, needed: Sequence[Group]) -> bool:
        """Return whether a group may depend on others without a cycle."""
        bit = 1 << group.number
        return all(other is not group and not other.after & bit for other in needed)

    def _join(self, x: Expression, group: Group, needed: Sequence[Group]) -> None:
        group.members.append(x)
        self.of[x] = group
        if isinstance(x, Reduce):
            group.reduced = x.axes
        self.depend(group, needed)
        self._wrote(x, group)

    def start(self, x: Expression, space: Sizes, kind: GroupKind = "nest") -> Group:
        """Return a new group with one member; `space` is its iteration space."""
        group = self.new_group(kind)
        group.space = space
        group.members.append(x)
        self.of[x] = group
        return group

    def _wrote(self, x: Expression, group: Group) -> None:
        if isinstance(x, Take):
            self.takers[self.operands[x][0]] = group
        if isinstance(x, Copy):
            self.stored[x] = None
            if x.into is not None:
                self.writers[self.views.locate(x.into).base].append(group)

    def side_by_side(self, x: Expression) -> Expression:
        """Return a row-major copy, which all products that read it share."""
        if x not in self._copied:
            self._copied[x] = Copy(x.element, x.shape, x)
            self.assign(self._copied[x])
        return self._copied[x]

    def _parts(self, x: Join | Pad) -> None:
        """Assign the copies that write the parts of a Join or Pad to groups."""
        for copy in parts_to_write(self, x):
            self.assign(copy)
