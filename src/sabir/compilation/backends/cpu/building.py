"""The construction of a plan from groups: entries for kernels and evaluated calls, and their buffers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import check_time
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.backends.cpu.reaches import values_of
from sabir.compilation.backends.cpu.texts import source_of
from sabir.compilation.frontend.ahead import calls_ahead
from sabir.compilation.frontend.lowering import KEYS
from sabir.compilation.fusion.grouping import Grouping
from sabir.compilation.fusion.groups import first_of, in_order, last_of
from sabir.compilation.fusion.origins import Origins
from sabir.compilation.native import is_compiled
from sabir.compilation.plan.bounds import Reach
from sabir.compilation.plan.entries import (
    FIRST,
    Argument,
    Buffer,
    BufferKind,
    BufferNumber,
    Entry,
    EvaluatedEntry,
    KernelPlan,
    Offset,
    StoredKernel,
)
from sabir.elements import element as element_of
from sabir.ir import Expr, TensorType
from sabir.loops import Expression, Size, Sizes, Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sabir.compilation.backends.cpu.heuristics import Heuristics
    from sabir.compilation.frontend.control import Inner
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.fusion.groups import Group
    from sabir.compilation.fusion.views import Located
    from sabir.compilation.native import EarlyKernels, Target
    from sabir.compilation.plan.bounds import ComputedTensor
    from sabir.compilation.plan.entries import Spec
    from sabir.compilation.protocol import Request
    from sabir.ir import Array, Known
    from sabir.scheduling import ScheduledCall


def build(
    request: Request, target: Target, cores: int, heuristics: Heuristics, early: EarlyKernels | None = None
) -> KernelPlan:
    """Return the plan that computes the results of a request on `cores` cores of `target`.

    `early` starts to compile kernels while the plan is built; None means later. Raises UnsupportedError if a
    kernel cannot be compiled, NotYet if compilation would exceed the cost that the request allows.
    """
    lowered = request.lowered
    grouping = Grouping(lowered, families(), heuristics)
    grouping.run(lowered.prepared.plan.results)
    builder = PlanBuilder(request, grouping, target, cores, heuristics, early)
    plan = builder.run()
    plan.values = [*values_of(lowered), *builder.works]
    return plan


class Shared:
    """What the parts of a plan under construction share: entries, buffers, and slots for more values."""

    def __init__(self, lowered: Lowered) -> None:
        self.entries: list[Entry | EvaluatedEntry] = []
        self.setup: list[Entry] = []  # the packing of constants
        self.works: list[ComputedTensor] = []  # work that limits count in addition to the tensors
        self.buffers: list[Buffer] = []  # those that belong to no expression of the whole graph
        self.known: dict[int, Known] = {}
        self.loops: list[str] = []  # the labels of loops
        self.count = 0  # of buffers
        self._tables = lowered.tables
        self._first = lowered.prepared.program.size
        self._constants = {id(array): slot for slot, array in lowered.prepared.constants.items()}

    def table(self, array: Array) -> int:
        """Return the slot of a constant; one that has none gets a new one."""
        slot = self._constants.get(id(array))
        if slot is None:
            slot = self._constants[id(array)] = self._new_slot()
            self._tables[slot] = array
        return slot

    def known_slot(self, items: Known) -> int:
        """Return a new slot of a tensor that sizes determine."""
        slot = self._new_slot()
        self.known[slot] = items
        return slot

    def _new_slot(self) -> int:
        return self._first + len(self._tables) + len(self.known)


class Within(NamedTuple):
    """What a subgraph has of the plan around it: the buffers of its operands and results, by its slots.

    `path` has the labels of the calls around it.
    """

    shared: Shared
    given: Mapping[int, Buffer]
    written: Mapping[int, Buffer]
    path: str


class PlanBuilder:
    """A plan under construction: its entries so far, and the buffers that they read and write."""

    def __init__(
        self, request: Request, grouping: Grouping, target: Target, cores: int, heuristics: Heuristics,
        early: EarlyKernels | None = None, within: Within | None = None,
    ) -> None:  # fmt: skip
        """Begin a plan; with `within` the part of a plan that a subgraph is."""
        self._request, self._within = request, within
        self.path = "" if within is None else within.path
        self.lowered, self.settings = request.lowered, request.settings
        self.grouping, self.target, self.cores = grouping, target, cores
        self.heuristics, self.decisions = heuristics, grouping.decisions
        self._early, self._begun = early, 0  # number of entries whose kernels were offered to `early`
        self._cost, self._counted = request.cost, 0  # number of entries whose kernels are in the cost
        self._specs: set[Spec] = set()  # kernels that are in the cost
        self._begun_specs: set[Spec] = set()  # kernels that were offered to `early`
        self.buffers: dict[Expression | tuple[Expression, str], Buffer] = {}
        self.by_slot: dict[int, Buffer] = {}
        self._aliased: dict[int, frozenset[Buffer]] = {}  # by slot: buffers that a value may refer to
        self.shared = Shared(self.lowered) if within is None else within.shared
        self.entries, self.setup, self.works = self.shared.entries, self.shared.setup, self.shared.works
        self.origins = Origins(self.lowered)
        self.families = grouping.families
        self._inputs = set(self.lowered.prepared.inputs)
        self._outputs = {x: slot for slot, x in grouping.outputs.items()}

    def run(self) -> KernelPlan:
        """Return the plan of all groups, in topological order."""
        self._plan_groups()
        self._keep_aliased(self.lowered.prepared.plan.results)
        outputs = {slot: self.buffer(x) for slot, x in self.grouping.outputs.items()}
        self.decisions.settle(self.origins.labels)
        return KernelPlan(
            self.entries,
            [b for b in dict.fromkeys([*self._buffers(), *self.shared.buffers]) if b.kind != "own"],
            outputs,
            self.setup,
            decisions=self.decisions,
            known=self.shared.known,
            loops=self.shared.loops,
            single_work=self.heuristics.single_work,
            fine_work=self.heuristics.fine_work,
        )

    def _plan_groups(self) -> None:
        ahead = calls_ahead(self.lowered)
        ordered = first_of(in_order(self.grouping.groups), lambda g: g.step is not None and g.place in ahead)
        groups = last_of(ordered, self._gives_no_tensor)
        for number, group in enumerate(self.families.scheduled(self, groups), 1):
            check_time()
            if group.kind == "evaluate":
                self._evaluate(group)
            else:
                self.families.plan(self, group)
            if self._within is None:
                self._count_kernels(number / len(groups))
                self._begin_kernels()

    def plan_inner(
        self, inner: Inner, given: Mapping[int, Buffer], written: Sequence[Buffer], label: str
    ) -> None:
        """Add the entries of a subgraph to the plan.

        `given` has the buffers of its inputs and captures by slot, `written` those of its results in order,
        `label` is that of its call.
        """
        grouping = Grouping(inner.lowered, self.families, self.heuristics)
        grouping.run(inner.results)
        path = f"{self.path}{label}: "
        within = Within(self.shared, given, dict(zip(inner.results, written, strict=True)), path)
        builder = PlanBuilder(
            self._request._replace(lowered=inner.lowered), grouping, self.target, self.cores, self.heuristics,
            within=within,
        )  # fmt: skip
        builder.add_to(self)

    def add_to(self, outer: PlanBuilder) -> None:
        """Add the entries of this subgraph to the plan of the graph around it, and its decisions."""
        self._plan_groups()
        for x in self.grouping.outputs.values():
            self.buffer(x)
        self.works += values_of(self.lowered)
        self.shared.buffers += self._buffers()
        self.decisions.settle(self.origins.labels)
        outer.decisions.records += self.decisions.records

    def _buffers(self) -> list[Buffer]:
        return [*self.buffers.values(), *self.by_slot.values()]

    # ------------------------------------------------------------ memory

    def memory(self, kind: BufferKind, element: str, shape: Sizes) -> Buffer:
        """Return a new buffer of the plan that belongs to no expression."""
        made = self.new_buffer(kind, element, shape)
        self.shared.buffers.append(made)
        return made

    def constant(self, array: Array) -> Buffer:
        """Return the buffer of a constant that belongs to no expression."""
        slot = self.shared.table(array)
        made = self.new_buffer("constant", element_of(array.dtype).name, array.shape, slot)
        self.shared.buffers.append(made)
        return made

    def buffer(self, x: Expression) -> Buffer:
        """Return the buffer of an expression in memory; it is created on first use."""
        found = self.buffers.get(x)
        if found is None:
            found = self.buffers[x] = self._stored(x) if isinstance(x, Stored) else self._computed(x)
        return found

    def _stored(self, x: Stored) -> Buffer:
        if x.array is not None:
            return self.new_buffer("constant", x.element, x.shape, self.shared.table(x.array))
        if x in self.grouping.chosen:
            return self._computed(x)
        found = self.by_slot.get(x.slot)
        if found is None:
            found = self._of_slot(x) if self._within is None else self._of_inner_slot(x, self._within)
            self.by_slot[x.slot] = found
        return found

    def _of_slot(self, x: Stored) -> Buffer:
        kind: BufferKind = "known"
        if x.slot == KEYS:
            kind = "keys"
        elif x.slot in self._inputs:
            kind = "input"
        elif x.slot in self.lowered.prepared.constants:
            kind = "constant"
        elif x in self.grouping.of:
            kind = "result"
        return self.new_buffer(kind, x.element, x.shape, x.slot)

    def _of_inner_slot(self, x: Stored, within: Within) -> Buffer:
        """Return the buffer of a value of a subgraph: its slots are not those of the plan."""
        if x.slot in within.given:
            return within.given[x.slot]
        array = self.lowered.prepared.constants.get(x.slot)
        if array is not None:
            return self.new_buffer("constant", x.element, x.shape, self.shared.table(array))
        if x.known is None:
            raise AssertionError("a subgraph reads a value that nothing computes")
        return self.new_buffer("known", x.element, x.shape, self.shared.known_slot(x.known))

    def _computed(self, x: Expression) -> Buffer:
        slot = self._outputs.get(x)
        if slot is not None and self._within is not None:
            return self._within.written[slot]
        if slot is None:
            found = self.new_buffer("arena", x.element, x.shape)
        else:
            found = self.new_buffer("output", x.element, self.grouping.shapes[slot], slot)
        located = self.grouping.views.locate(x)
        found.strides = located.strides if x in self.grouping.views.order else None
        return found

    def new_buffer(
        self, kind: BufferKind, element: str, shape: Sizes, slot: int = 0, size: Size | None = None
    ) -> Buffer:
        """Return a new buffer of `size` bytes; None means the bytes of the tensor."""
        number = FIRST + self.shared.count
        self.shared.count += 1
        whole = math.prod(shape, start=element_bytes(element)) if size is None else size
        return Buffer(kind, number, element, shape, whole, slot)

    def pointer(self, located: Located, element: str, entry: Entry) -> list[Argument]:
        """Return the address arguments of an expression (buffer, byte offset); record its use by `entry`."""
        buffer = self.buffer(located.base)
        self.use(buffer, entry)
        return [BufferNumber(buffer), Offset(buffer, located.offset * element_bytes(element))]

    def use(self, buffer: Buffer, entry: Entry) -> None:
        """Record that `entry`, the next entry of the plan, uses a buffer."""
        buffer.use(len(self.entries))
        entry.buffers.append(buffer)

    def reach(self, located: Located, element: str, extents: Sequence[tuple[Size, Size]]) -> Reach:
        """Return the reach of an operand; `extents` are (size, stride in elements) of each axis."""
        return Reach(self.buffer(located.base), element_bytes(element), located.offset, extents)

    # ------------------------------------------------------------ kernels

    def _count_kernels(self, part: float) -> None:
        """Add the kernels of new entries to the cost; `part` is the fraction of groups planned so far."""
        for entry in self.entries[self._counted :]:
            for spec in entry.specs() if isinstance(entry, Entry) else ():
                if not isinstance(spec, StoredKernel) and spec not in self._specs:
                    self._specs.add(spec)
                    source = source_of(spec)
                    if self._cost.is_bounded and not is_compiled(source, self.target):
                        self._cost.add_kernel(len(source.name), part)
        self._counted = len(self.entries)

    def _begin_kernels(self) -> None:
        """Start to compile the kernels of new entries while compiler threads are idle."""
        while self._early is not None and self._begun < len(self.entries) and self._early.has_room():
            entry = self.entries[self._begun]
            self._begun += 1
            for spec in entry.specs() if isinstance(entry, Entry) else ():
                if not isinstance(spec, StoredKernel) and spec not in self._begun_specs:
                    self._begun_specs.add(spec)
                    self._early.begin(source_of(spec))

    # ------------------------------------------------------------ evaluated calls

    def _gives_no_tensor(self, group: Group) -> bool:
        """Return whether a group is an evaluated call whose results neither kernels nor sizes depend on."""
        if group.step is None:
            return False
        call = self.lowered.prepared.program.calls[group.step.place]
        return not any(slot in self.lowered.expressions for slot in call.outputs) and not self._decided(call)

    def _decided(self, call: ScheduledCall) -> dict[int, Sizes]:
        """Return the shapes, by slot, of results that have no expression, and have sizes unknown before."""
        prepared, found = self.lowered.prepared, dict[int, Sizes]()
        for slot in call.outputs:
            kind = None if slot in self.lowered.expressions else prepared.types[slot]
            shape = kind.shape if isinstance(kind, TensorType) else None
            sizes = tuple(d for d in shape or () if d is not None)
            if any(isinstance(d, Expr) and d.symbols & prepared.unknown for d in sizes):
                found[slot] = sizes
        return found

    def _evaluate(self, group: Group) -> None:
        step = group.step
        if step is None:
            raise TypeError("an evaluated group has a call")
        call = self.lowered.prepared.program.calls[step.place]
        reads: dict[int, tuple[Buffer, Size, Sizes, Sizes]] = {}
        self._keep_aliased(step.reads)
        for slot in step.reads:
            x = self.lowered.expressions.get(slot)
            if x is None or (isinstance(x, Stored) and x.slot == slot):
                if x is not None:
                    self.buffer(x).use(len(self.entries))
                continue
            located = self.grouping.views.locate(x)
            buffer = self.buffer(located.base)
            buffer.use(len(self.entries))
            reads[slot] = buffer, located.offset, located.strides, x.shape
        writes: dict[int, Buffer] = {}
        for slot in call.outputs:
            x = self.lowered.expressions.get(slot)
            if isinstance(x, Stored):
                writes[slot] = self.buffer(x)
        memory = frozenset(buffer for buffer, *_ in reads.values())
        memory = memory.union(*(self._aliased.get(slot, ()) for slot in step.reads))
        self._aliased |= dict.fromkeys(set(call.outputs) - writes.keys(), memory)
        self.entries.append(EvaluatedEntry(step, reads, writes, call.label, step.reason, self._decided(call)))

    def _keep_aliased(self, slots: Iterable[int]) -> None:
        """Extend the liveness of the buffers that the values in `slots` may refer to, to the next entry.

        A sequence, an optional or a map refers to the tensors that its call read, without a copy. So the
        value of an evaluated call may refer to the memory of all its operands. Only tensors with expressions
        do not: a run copies such a result if it is a view of the arena.
        """
        for slot in slots:
            for buffer in self._aliased.get(slot, ()):
                buffer.use(len(self.entries))
