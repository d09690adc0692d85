"""From groups to a plan: kernels with their arguments, calls that are evaluated, and the memory of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.base import check_time
from sabir.compilation._attention import add_attention
from sabir.compilation._axes import beside_one, merged, nest_of
from sabir.compilation._bands import add_bands, banded_chains
from sabir.compilation._bounds import Reach
from sabir.compilation._grouping import Grouping
from sabir.compilation._groups import in_order, last_of
from sabir.compilation._lowering import KEYS
from sabir.compilation._matrices import add_product
from sabir.compilation._matrix_steps import add_matrix_steps
from sabir.compilation._nesting import Nesting, Place, nesting_of
from sabir.compilation._origins import Origins
from sabir.compilation._plan import (
    FIRST,
    Argument,
    Buffer,
    BufferKind,
    BufferNumber,
    Entry,
    Offset,
    Plan,
    Step,
    StoredKernel,
    count_of,
)
from sabir.compilation._reaches import reaches_of, values_of
from sabir.compilation._recurrences import add_recurrences
from sabir.compilation._regions import add_regions
from sabir.compilation._singles import single_of
from sabir.compilation._sliding import add_windows
from sabir.compilation._texts import source_of
from sabir.compilation._trees import add_trees
from sabir.compilation.kernels import ANY, Nest, element_bytes, passes_of
from sabir.loops import Best, Couple, Expression, Size, Sizes, Stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from sabir.compilation._bounds import Value
    from sabir.compilation._groups import Group
    from sabir.compilation._lowering import Lowered
    from sabir.compilation._settings import Settings
    from sabir.compilation._views import Located
    from sabir.compilation.native import EarlyKernels, Host

_WORD = 64  # bytes to which parts of scratch memory are rounded


def build(
    lowered: Lowered,
    outputs: Sequence[int],
    host: Host,
    settings: Settings,
    early: EarlyKernels | None = None,
) -> Plan:
    """Return the plan that computes the values in the slots `outputs`.

    Kernels are begun in `early`; raises UnsupportedError for one that cannot be made.
    """
    grouping = Grouping(lowered)
    grouping.run(outputs)
    builder = PlanBuilder(lowered, grouping, host, settings, early)
    plan = builder.run()
    plan.values = [*values_of(lowered), *builder.works]
    return plan


class PlanBuilder:
    """The plan in the making: its entries so far, and the buffers of what they read and write."""

    def __init__(
        self,
        lowered: Lowered,
        grouping: Grouping,
        host: Host,
        settings: Settings,
        early: EarlyKernels | None = None,
    ) -> None:
        self.lowered, self.grouping, self.host, self.settings = lowered, grouping, host, settings
        self._early, self._begun = early, 0  # how many entries have their kernels begun
        self.buffers: dict[Expression | tuple[Expression, str], Buffer] = {}
        self.by_slot: dict[int, Buffer] = {}
        self._aliased: dict[int, frozenset[Buffer]] = {}  # memory in evaluated values
        self.entries: list[Entry | Step] = []
        self.setup: list[Entry] = []  # the packing of constants
        self.works: list[Value] = []  # what limits count beside the tensors
        self.origins = Origins(lowered)
        self._inputs = set(lowered.prepared.inputs)
        self._outputs = {x: slot for slot, x in grouping.outputs.items()}

    def run(self) -> Plan:
        """Return the plan of all groups, in their order."""
        groups = last_of(in_order(self.grouping.groups), self._gives_no_tensor)
        for group in self._in_bands(groups):
            check_time()
            if group.kind == "evaluate":
                self._evaluate(group)
            elif group.kind == "product":
                add_product(self, group)
            elif group.kind == "attention":
                add_attention(self, group)
            elif group.kind == "windows":
                add_windows(self, group)
            elif group.kind == "recurrence":
                add_recurrences(self, group)
            elif group.kind == "matrix steps":
                add_matrix_steps(self, group)
            elif group.kind == "regions":
                add_regions(self, group)
            elif group.kind == "trees":
                add_trees(self, group)
            elif group.kind == "single":
                self._single(group)
            else:
                self._nest(group)
            self._begin_kernels()
        self._keep_aliased(self.lowered.prepared.plan.results)
        outputs = {slot: self.buffer(x) for slot, x in self.grouping.outputs.items()}
        return Plan(
            self.entries,
            [b for b in dict.fromkeys([*self.buffers.values(), *self.by_slot.values()]) if b.kind != "own"],
            outputs,
            self.setup,
        )

    def _in_bands(self, groups: Sequence[Group]) -> Iterator[Group]:
        """Yield groups in their order; one entry for each chain that runs in bands is added at its end."""
        found = banded_chains(self, groups)
        within = {group for banded in found.values() for group in banded.chain.groups}
        for group in groups:
            if group in found:
                add_bands(self, found[group])
            elif group not in within:
                yield group

    # ------------------------------------------------------------ memory

    def buffer(self, x: Expression) -> Buffer:
        """Return the memory of an expression that is stored."""
        found = self.buffers.get(x)
        if found is None:
            found = self.buffers[x] = self._stored(x) if isinstance(x, Stored) else self._computed(x)
        return found

    def _stored(self, x: Stored) -> Buffer:
        if x.array is not None:
            slot = self.lowered.prepared.program.size + len(self.lowered.tables)
            self.lowered.tables[slot] = x.array
            return self.new_buffer("constant", x.element, x.shape, slot)
        kind: BufferKind = "known"
        if x.slot == KEYS:
            kind = "keys"
        elif x.slot in self._inputs:
            kind = "input"
        elif x.slot in self.lowered.prepared.constants:
            kind = "constant"
        elif x in self.grouping.of:
            kind = "result"
        found = self.by_slot.get(x.slot)
        if found is None:
            found = self.by_slot[x.slot] = self.new_buffer(kind, x.element, x.shape, x.slot)
        return found

    def _computed(self, x: Expression) -> Buffer:
        slot = self._outputs.get(x)
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
        """Return a new buffer; `size` is its bytes where they are not those of the tensor."""
        number = FIRST + len(self.buffers) + len(self.by_slot)
        whole = math.prod(shape, start=element_bytes(element)) if size is None else size
        return Buffer(kind, number, element, shape, whole, slot)

    def pointer(self, located: Located, element: str, entry: Entry) -> list[Argument]:
        """Return the arguments that place an expression, which an entry reads or writes."""
        buffer = self.buffer(located.base)
        self.use(buffer, entry)
        return [BufferNumber(buffer), Offset(buffer, located.offset * element_bytes(element))]

    def use(self, buffer: Buffer, entry: Entry) -> None:
        """Note that an entry, the next one of the plan, uses a buffer."""
        buffer.use(len(self.entries))
        entry.buffers.append(buffer)

    def reach(self, located: Located, element: str, extents: Sequence[tuple[Size, Size]]) -> Reach:
        """Return what an operand touches that is read along axes of some sizes and strides."""
        return Reach(self.buffer(located.base), element_bytes(element), located.offset, extents)

    # ------------------------------------------------------------ kernels

    def _begin_kernels(self) -> None:
        """Begin kernels of the entries so far, as long as threads wait for some."""
        while self._early is not None and self._begun < len(self.entries) and self._early.has_room():
            entry = self.entries[self._begun]
            self._begun += 1
            for spec in entry.specs() if isinstance(entry, Entry) else ():
                if not isinstance(spec, StoredKernel):
                    self._early.begin(source_of(spec))

    def _nest(self, group: Group) -> None:
        nesting = nesting_of(group, self.grouping)
        if nesting.stores:
            self.entries.append(self.nest_entry(group, nesting))

    def nest_entry(self, group: Group, nesting: Nesting) -> Entry:
        """Return the entry of the loops of a group."""
        nesting = beside_one(merged(nesting))
        nest = nest_of(nesting, self.host.vector_bits)
        entry = Entry([], nodes=self.origins.labels([*group.members, *group.inlined]))
        scratch = self.scratch(nest, nesting)
        arguments = self.arguments(nest, nesting, entry, scratch)
        entry.choices.append((None, 0, nest, arguments))
        self.note_writes(entry, nesting)
        entry.scratch = scratch
        entry.flops = _operations(nest) * count_of(nesting.sizes)
        return entry

    def arguments(
        self, nest: Nest, nesting: Nesting, entry: Entry, scratch: Size, own: Place | None = None
    ) -> list[Argument]:
        """Return the arguments of a nest; with `own`, the kernel places the last access."""
        entry.reaches += [] if entry.choices else reaches_of(nesting, self.buffer)
        found: list[Argument] = [*nesting.sizes]
        places = nesting.places if own is None else [*nesting.places, own]
        for place, access in zip(places, nest.accesses, strict=True):
            if place is own:
                found += [0, 0]
                continue
            found += self.pointer(place.located, place.element, entry)
            size = element_bytes(place.element)
            found += [
                stride * size
                for stride, kind in zip(place.strides, access.strides, strict=True)
                if kind == ANY
            ]
        for pair in nesting.takes:
            found += pair
        found += nesting.arguments
        return [*found, 2, 0, scratch]

    def note_writes(self, entry: Entry, nesting: Nesting) -> None:
        """Note what an entry writes, whose first arguments are the sizes of one nest."""
        if not nesting.takes:  # an index out of range counts for an empty result too
            entry.axes = len(nesting.sizes)
            entry.writes = [self.buffer(nesting.places[n].located.base) for n, _ in nesting.stores]

    def scratch(self, nest: Nest, nesting: Nesting) -> Size:
        """Return how many bytes each thread needs for what a row keeps."""
        if not any(nest.reduced) or not nest.reduced[nest.inner]:
            return 0
        length = count_of([n for n, reduced in zip(nesting.sizes, nest.reduced, strict=True) if reduced])
        found: Size = 0
        for number in passes_of(nest, keep=True).kept:
            found += length * element_bytes(nest.steps[number].element) + 2 * _WORD
        return found

    def _single(self, group: Group) -> None:
        nesting = merged(nesting_of(group, self.grouping))
        single = single_of(group.members[0], nesting, self.host.vector_bits)
        labels = self.origins.labels(group.members)
        entry = Entry([], single.scratch, labels, count_of(nesting.sizes))
        arguments = self.arguments(single.spec.nest, nesting, entry, single.scratch)
        entry.choices.append((None, 0, single.spec, [*arguments, *single.more]))
        if isinstance(group.members[0], (Best, Couple)):
            self._selected(entry, nesting, single.more)
        self.note_writes(entry, nesting)
        self.entries.append(entry)

    @staticmethod
    def _selected(entry: Entry, nesting: Nesting, count: Sizes) -> None:
        """Note that a kernel stores another number of elements along its axis than it reads."""
        ((target, _),) = nesting.stores
        reach, along = entry.reaches[target], nesting.reduced.index(True)
        extents = [*reach.extents]
        extents[along] = count[0], extents[along][1]
        entry.reaches[target] = reach._replace(extents=extents)

    # ------------------------------------------------------------ evaluated calls

    def _gives_no_tensor(self, group: Group) -> bool:
        """Return whether a group is a call that is evaluated, and no kernel can read its results: texts."""
        if group.step is None:
            return False
        call = self.lowered.prepared.program.calls[group.step.place]
        return not any(slot in self.lowered.expressions for slot in call.outputs)

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
        self.entries.append(Step(step, reads, writes, call.label, step.reason))

    def _keep_aliased(self, slots: Iterable[int]) -> None:
        """Keep the memory alive up to the next entry that values in some slots may contain.

        A sequence, an optional or a map has its items where the call that made it read them. So any value of
        an evaluated call may contain the memory of all operands, but a tensor that kernels read: a run
        copies it where it is a view.
        """
        for slot in slots:
            for buffer in self._aliased.get(slot, ()):
                buffer.use(len(self.entries))


def _operations(nest: Nest) -> int:
    return sum(type(step).__name__ in {"Apply", "Fold"} for step in nest.steps)
