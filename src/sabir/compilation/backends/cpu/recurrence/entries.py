"""The entries of recurrences: a kernel for each stage of a step, or one walk, which computes many steps."""

from __future__ import annotations

from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.axes import merged, nest_of
from sabir.compilation.backends.cpu.elementwise.entries import nest_values
from sabir.compilation.backends.cpu.elementwise.nesting import NestBuilder, Nesting, Place
from sabir.compilation.backends.cpu.emit.nest import Accumulated
from sabir.compilation.backends.cpu.products.panels import Panels, lanes_of, packed_panels
from sabir.compilation.backends.cpu.products.tiles import step_tiles
from sabir.compilation.backends.cpu.recurrence.kernel import (
    Recurrence,
    StateAccess,
    StepStage,
    panels_name,
    stage_name,
    state_name,
)
from sabir.compilation.backends.cpu.recurrence.stages import Stage, leaves_of, sources_of, stages_of
from sabir.compilation.fusion.groups import Group
from sabir.compilation.fusion.views import Located, row_major
from sabir.compilation.plan.bounds import ComputedTensor
from sabir.compilation.plan.decisions import Reason
from sabir.compilation.plan.entries import Entry, EntryLoop, count_of, start_of
from sabir.compilation.plan.signature import words_of
from sabir.loops import Contract, Expression, Recur, StepOperand, StepState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.building import PlanBuilder
    from sabir.compilation.backends.cpu.products.tiles import Tile
    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.signature import Packable
    from sabir.loops import Size, StepBody

_STEP = 64  # bytes that the limits of a run count for each step, even if it computes nothing


_SYMBOLIC = Reason("the size of a step is symbolic")


class _Packed(NamedTuple):
    buffer: Buffer
    panel: Size
    depth: Size


class _Built(NamedTuple):
    """The kernel of a stage: its variants, loops, arguments by name, and the buffers that it writes.

    Each of the `choices` is `(limit, rows, stage)`: for at most `limit` rows, None for any number, a stage
    with tiles of `rows` rows.
    """

    choices: list[tuple[int | None, int, StepStage]]
    nesting: Nesting
    values: dict[str, Packable]
    entry: Entry
    flops: Size
    written: list[Buffer]


def add_recurrences(builder: PlanBuilder, group: Group) -> None:
    """Add the entries of the recurrences of a group, after those that pack matrices that are not constant."""
    made = [_RecurrenceBuilder(builder, group, body) for body in group.recurrences]
    first = len(builder.entries)
    together = next((reason for m in made if (reason := m.why_together) is not None), None)
    entries = _walks(made) if together is None else _steps(made)
    alone, shared = "one thread for all steps of a row", "all threads for each step"
    if together is None:
        builder.decisions.add(group.members, "threads", alone)
    else:
        builder.decisions.add(group.members, "threads", shared, alone, together)
    builder.entries += entries
    builder.works += [ComputedTensor((making.steps,), 0, _STEP) for making in made]
    for buffer in {b for entry in entries for b in entry.buffers}:
        buffer.use(first)  # a buffer is live throughout the loop: a step reads what the previous one wrote
        buffer.use(first + len(entries) - 1)


def _steps(made: Sequence[_RecurrenceBuilder]) -> list[Entry]:
    """Return an entry for each stage, whose tiles all threads share."""
    entries: list[Entry] = []
    for making in made:
        loop = EntryLoop(making.steps)
        for built in making.built():
            entry = built.entry
            entry.loop, entry.flops = loop, built.flops
            entry.writes = built.written
            for limit, rows, stage in built.choices:
                spec = making.spec((stage,), rows, walks=False)
                block = spec.signature.pack({stage_name(0): built.values})
                entry.loops = spec.signature.span(stage_name(0), "nest", "sizes")
                entry.choices.append((built.nesting.sizes[1], limit or 0, spec, block))
            entries.append(entry)
    return entries


def _walks(made: Sequence[_RecurrenceBuilder]) -> list[Entry]:
    """Return an entry for each kernel; recurrences with equal kernels are the parts of one entry."""
    entries: dict[tuple[Recurrence, ...], list[tuple[_RecurrenceBuilder, list[_Built]]]] = {}
    for making in made:
        built = making.built()
        specs = [
            making.spec(
                tuple(stage for _, _, stage in choice), min(rows for _, rows, _ in choice), walks=True
            )
            for choice in zip(*(b.choices for b in built), strict=True)
        ]
        entries.setdefault(tuple(specs), []).append((making, built))
    return list(starmap(_walk, entries.items()))


def _walk(specs: Sequence[Recurrence], parts: Sequence[tuple[_RecurrenceBuilder, list[_Built]]]) -> Entry:
    making, stages = parts[0]
    signature, length = specs[0].signature, making.steps_of_a_row
    loop = EntryLoop((making.steps + (length - 1)) // length)
    entry = Entry([], loop=loop, loops=signature.span("count"))
    entry.alone = len(parts) == 1 and making.space[-2] == 1
    for _, part in parts:
        for built in part:
            entry.buffers += [b for b in built.entry.buffers if b not in entry.buffers]
            entry.reaches += built.entry.reaches
            entry.writes += built.written
            entry.flops += built.flops
            entry.nodes = tuple(dict.fromkeys((*entry.nodes, *built.entry.nodes)))
    of_parts = [{stage_name(n): built.values for n, built in enumerate(part)} for _, part in parts]
    words = words_of(signature.find("parts")[1])
    block = signature.pack({"count": len(parts), "words": words, "steps": length, "parts": of_parts})
    limits = [limit for limit, _, _ in stages[0].choices]
    entry.choices = [
        (making.space[-2], limit or 0, spec, block) for limit, spec in zip(limits, specs, strict=True)
    ]
    return entry


class _RecurrenceBuilder:
    """Builds the kernels of one recurrence."""

    def __init__(self, builder: PlanBuilder, group: Group, body: StepBody) -> None:
        self.builder, self.group, self.body = builder, group, body
        self.operands = group.recurrences[body]
        self.stages = stages_of(body)
        self.space = body.states[0].shape
        self.element, self.steps = body.states[0].element, body.steps
        members = [x for x in group.members if isinstance(x, Recur) and x.body is body]
        self.results = {x.number: x for x in members}
        self.members = members
        self._place()
        self.tiles = {stage: self._tiles(stage) for stage in self.stages}
        self.packed = {
            x: self._packed(x, self.tiles[stage][0][1]) for stage in self.stages for x in stage.products
        }

    def _tiles(self, stage: Stage) -> list[tuple[int | None, Tile]]:
        rows, columns = self.space[-2:]
        known = rows if isinstance(rows, int) else None
        if known and self.walks:  # the rows are divided among the threads
            known = -(-known // self.builder.cores)
        lanes, registers = lanes_of(self.builder, self.element), self.builder.target.registers
        heuristics = self.builder.heuristics
        return step_tiles(known, columns, len(stage.products), lanes, registers, heuristics)

    @property
    def _work(self) -> Size:
        """The operations of one row in a step: two for each element of the matrices, one for each column."""
        products = [2 * x.b.shape[0] * x.b.shape[1] for stage in self.stages for x in stage.products]
        return sum(products, start=self.space[-1])

    @property
    def walks(self) -> bool:
        """Whether each thread computes all steps of some rows alone."""
        return self.why_together is None

    @property
    def why_together(self) -> Reason | None:
        """The reason why all threads share each step; None if each computes all steps of some rows alone.

        With several rows, the latter requires that the matrices fit the cache of a core.
        """
        heuristics, work = self.builder.heuristics, self._work
        if not isinstance(work, int):
            return _SYMBOLIC
        one = self.space[-2] == 1
        most = heuristics.walked_operations if one else heuristics.walked_cached_operations
        return None if work < most else Reason("{} operations of a step of a row >= {}", (work, most))

    @property
    def steps_of_a_row(self) -> int:
        """The number of steps that one call of a walk computes: a run can be cancelled between calls."""
        rows, work = self.space[-2], self._work
        heuristics = self.builder.heuristics
        rows = rows if isinstance(rows, int) else heuristics.walked_rows
        return max(1, heuristics.walk_operations // max(1, rows * work)) if isinstance(work, int) else 1

    def spec(self, stages: tuple[StepStage, ...], rows: int, *, walks: bool) -> Recurrence:
        """Return the specification of the kernel of some stages, with tiles of `rows` rows."""
        return Recurrence(stages, self.element, len(self.body.states), rows, walks)

    def _place(self) -> None:
        """Bind the leaves of a step to memory: operands, states, and values that earlier stages keep."""
        builder, views = self.builder, self.builder.grouping.views
        count = len(self.body.states)
        for leaf in leaves_of(self.body):
            if isinstance(leaf, StepOperand):
                views.bind(leaf, views.locate(self.operands[count + leaf.number]))
        shape = self.space[1:]
        strides = (0, *row_major(shape))
        for number, state in enumerate(self.body.states):
            final = self.results.get(number)
            views.bind(state, Located(state, 0, strides))
            builder.buffers[state] = self._memory() if final is None else builder.buffer(final)
            builder.buffers[state, "second"] = self._memory()
        for stage in self.stages:
            for x in stage.kept:
                views.bind(x, Located(x, 0, strides))
                builder.buffers[x] = builder.new_buffer("arena", x.element, shape)

    def _memory(self) -> Buffer:
        return self.builder.new_buffer("arena", self.element, self.space[1:])

    def _packed(self, x: Contract, tile: Tile) -> _Packed:
        located = self.builder.grouping.views.locate(x.b)
        depth, columns = zip(x.b.shape, located.strides, strict=True)
        width = tile.vectors * lanes_of(self.builder, x.element)
        panels = Panels(x.element, [], [depth], columns, width, source=located.base.element)
        return _Packed(packed_panels(self.builder, x, located, panels), panels.panel, x.b.shape[0])

    # ------------------------------------------------------------ a stage

    def built(self) -> list[_Built]:
        """Return the kernels of the stages."""
        return [self._built(stage) for stage in self.stages]

    def _built(self, stage: Stage) -> _Built:
        builder, group = self.builder, self.group
        members = Group("recurrence", group.number, self.space, members=stage.members)
        nests = NestBuilder(members, builder.grouping)
        nesting = nests.run()
        for number, x in enumerate(stage.products):
            nesting.steps[nests.numbers[x]] = Accumulated(x.element, number)
        self._store(stage, nests, nesting)
        sources = list(dict.fromkeys(a for x in stage.products for a in sources_of(x)))
        first = len(nesting.places)
        for x in sources:
            located = builder.grouping.views.locate(x)
            nesting.places.append(Place(located, x.element, (*located.strides[:-1], 0)))
        nesting = _over_steps(nesting)
        nest = nest_of(nesting, builder.target.vector_bits, builder.heuristics, inner=2)
        nest = replace(nest, short=(), lanes=lanes_of(builder, self.element))
        written = {access for access, _ in nesting.stores}
        spec = StepStage(
            nest,
            tuple(
                StateAccess(n, self.body.states.index(p.located.base), n in written)
                for n, p in enumerate(nesting.places)
                if isinstance(p.located.base, StepState)
            ),
            tuple(range(first, first + len(sources))),
            tuple(tuple(map(sources.index, sources_of(x))) for x in stage.products),
            1,
        )
        entry = Entry([], nodes=builder.origins.labels(self.members))
        values = {"nest": nest_values(builder, nest, nesting, entry, 0)}
        values |= self._values(stage, sources, entry)
        choices = [
            (limit, tile.rows, replace(spec, vectors=tile.vectors, at_once=tile.panels))
            for limit, tile in self.tiles[stage]
        ]
        depths = sum((self.packed[x].depth for x in stage.products), start=0)
        return _Built(
            choices, nesting, values, entry,
            flops=count_of(nesting.sizes) * (len(nest.steps) + 2 * depths),
            written=[builder.buffer(nesting.places[n].located.base) for n, _ in nesting.stores],
        )  # fmt: skip

    def _store(self, stage: Stage, nests: NestBuilder, nesting: Nesting) -> None:
        """Add the stores of a stage: values that later stages read, new states, and outputs."""
        views, count = self.builder.grouping.views, len(self.body.states)
        stores = [(views.locate(x), x) for x in stage.kept]
        for number, x in enumerate((*self.body.after, *self.body.outputs)):
            last = stage is self.stages[-1] and not any(x in s.members for s in self.stages)
            if x not in stage.members and not last:  # the last stage stores values that no stage computes
                continue
            if number < count:
                stores.append((views.locate(self.body.states[number]), x))
            elif number in self.results:
                stores.append((self._output(self.results[number]), x))
        for located, x in stores:
            nesting.places.append(Place(located, x.element, located.strides))
            nesting.stores.append((len(nesting.places) - 1, nests.operand(x)))

    def _output(self, x: Recur) -> Located:
        """Return the memory of an output in the order of the steps.

        If the steps run backwards, the first one writes the last index, and the stride is negative.
        """
        located = self.builder.grouping.views.locate(x)
        if not self.body.backwards:
            return located
        first, *others = located.strides
        return Located(located.base, located.offset + (x.shape[0] - 1) * first, (-1 * first, *others))

    def _values(self, stage: Stage, sources: Sequence[Expression], entry: Entry) -> dict[str, Packable]:
        """Return the arguments other than those of the nest; add their buffers and reaches to the entry."""
        builder, views = self.builder, self.builder.grouping.views
        rows, columns = self.space[-2:]
        found: dict[str, Packable] = {"depths": [x.shape[-1] for x in sources]}
        for number, (state, initial) in enumerate(zip(self.body.states, self.operands, strict=False)):
            second, located = builder.buffers[state, "second"], views.locate(initial)
            builder.use(second, entry)
            pointer = builder.pointer(located, self.element, entry)
            found[state_name(number)] = {"second": start_of(second), "initial": pointer}
            entry.reaches.append(builder.reach(located, self.element, [(rows, columns), (columns, 1)]))
        for x in sources:
            depth = x.shape[-1]
            reach = builder.reach(views.locate(x), self.element, [(rows, depth), (depth, 1)])
            entry.reaches.append(reach)
        for number, x in enumerate(stage.products):
            buffer, panel, _ = self.packed[x]
            builder.use(buffer, entry)
            found[panels_name(number)] = {"tensor": start_of(buffer), "bytes": panel}
        return found


def _over_steps(nesting: Nesting) -> Nesting:
    """Return the nest over steps, rows and columns, without the axes of size 1 between steps and rows."""
    steps = [p.strides[0] for p in nesting.places]
    places = [p._replace(strides=p.strides[1:]) for p in nesting.places]
    inner = merged(
        Nesting(
            nesting.sizes[1:], nesting.reduced[1:], places, nesting.steps, nesting.stores, nesting.takes,
            nesting.arguments,
        ),
        fixed=2,
    )  # fmt: skip
    inner.sizes, inner.reduced = (nesting.sizes[0], *inner.sizes), (False, *inner.reduced)
    inner.places = [
        p._replace(strides=(step, *p.strides)) for p, step in zip(inner.places, steps, strict=True)
    ]
    return inner
