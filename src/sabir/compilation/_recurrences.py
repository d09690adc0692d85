"""The entries of recurrences: the kernels of one step, which run in turn as often as there are steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation._groups import Group
from sabir.compilation._matrices import Panels, lanes_of, packed_panels
from sabir.compilation._nesting import NestBuilder, Nesting, Place, merged, nest_of
from sabir.compilation._plan import (
    Argument,
    Buffer,
    BufferNumber,
    Entry,
    Offset,
    Turns,
    count_of,
)
from sabir.compilation._stages import Stage, leaves_of, stages_of
from sabir.compilation._tiles import step_tiles
from sabir.compilation._views import Located, row_major
from sabir.compilation.kernels import Accumulated, Recurrence, StateAccess
from sabir.loops import Bound, Contract, Expression, Recur, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._building import PlanBuilder
    from sabir.compilation._tiles import Tile
    from sabir.loops import Size, StepBody


class _Packed(NamedTuple):
    buffer: Buffer
    panel: Size
    depth: Size


def add_recurrence_entries(builder: PlanBuilder, group: Group) -> None:
    """Add the entries of the stages of a step, and before them those of packing where matrices vary."""
    making = _Making(builder, group)
    entries = [making.entry(stage) for stage in making.stages]
    first, last = len(builder.entries), len(builder.entries) + len(entries) - 1
    builder.entries += entries
    for buffer in {b for entry in entries for b in entry.buffers}:
        buffer.use(first)  # what a step leaves, the next one reads
        buffer.use(last)


class _Making:
    """The entries of one recurrence in the making."""

    def __init__(self, builder: PlanBuilder, group: Group) -> None:
        self.builder, self.group = builder, group
        self.recur = _recur_of(group.members[0])
        self.body: StepBody = self.recur.body
        self.stages = stages_of(self.body)
        self.turns = Turns(self.body.steps)
        self.space = self.body.states[0].shape
        self.results = {x.number: x for x in map(_recur_of, group.members)}
        self._place()
        rows = self.space[-2]
        self.tiles = {
            stage: step_tiles(
                rows if isinstance(rows, int) else None, self.space[-1], len(stage.products),
                lanes_of(builder, self.recur.element), builder.host.registers,
            )
            for stage in self.stages
        }  # fmt: skip
        self.packed = {
            x: self._packed(x, self.tiles[stage][0][1]) for stage in self.stages for x in stage.products
        }

    def _place(self) -> None:
        """Place what a step reads: operands, states, and what earlier stages leave."""
        builder, views = self.builder, self.builder.grouping.views
        count = len(self.body.states)
        for leaf in leaves_of(self.body):
            if isinstance(leaf, Bound):
                views.bind(leaf, views.locate(self.group.operands[count + leaf.number]))
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
                builder.buffers[x] = self.builder.new_buffer("arena", x.element, shape)

    def _memory(self) -> Buffer:
        return self.builder.new_buffer("arena", self.recur.element, self.space[1:])

    def _packed(self, x: Contract, tile: Tile) -> _Packed:
        located = self.builder.grouping.views.locate(x.b)
        depth, columns = zip(x.b.shape, located.strides, strict=True)
        width = tile.vectors * lanes_of(self.builder, x.element)
        panels = Panels(x.element, [], [depth], columns, width)
        return _Packed(packed_panels(self.builder, x, located, panels), panels.panel, x.b.shape[0])

    # ------------------------------------------------------------ a stage

    def entry(self, stage: Stage) -> Entry:
        """Return the entry of a stage."""
        builder, group = self.builder, self.group
        nests = NestBuilder(Group("recurrence", group.number, self.space, members=stage.members), builder.grouping)
        nesting = nests.run()
        for number, x in enumerate(stage.products):
            nesting.steps[nests.numbers[x]] = Accumulated(x.element, number)
        self._store(stage, nests, nesting)
        sources = list(dict.fromkeys(x.a for x in stage.products))
        first = len(nesting.places)
        for x in sources:
            located = builder.grouping.views.locate(x)
            nesting.places.append(Place(located, x.element, (*located.strides[:-1], 0)))
        nesting = _over_steps(nesting)
        nest = replace(nest_of(nesting, builder.host.vector_bits, inner=2), short=())
        nest = replace(nest, lanes=lanes_of(builder, self.recur.element))
        written = {access for access, _ in nesting.stores}
        states = tuple(
            StateAccess(n, self.body.states.index(p.located.base), n in written)
            for n, p in enumerate(nesting.places)
            if isinstance(p.located.base, State)
        )
        spec = Recurrence(
            nest, self.recur.element, len(self.body.states), states,
            tuple(range(first, first + len(sources))),
            tuple(sources.index(x.a) for x in stage.products), 1, 1,
        )  # fmt: skip
        entry = Entry([], nodes=builder.origins.labels(group.members), turns=self.turns)
        arguments = [*builder.arguments(nest, nesting, entry, 0), *self._arguments(stage, sources, entry)]
        for limit, tile in self.tiles[stage]:
            tiled = replace(spec, rows=tile.rows, vectors=tile.vectors)
            entry.choices.append((nesting.sizes[1], limit or 0, tiled, arguments))
        builder.note_writes(entry, nesting)
        entry.flops = count_of(nesting.sizes) * (
            len(nest.steps) + 2 * sum((self.packed[x].depth for x in stage.products), start=0)
        )
        return entry

    def _store(self, stage: Stage, nests: NestBuilder, nesting: Nesting) -> None:
        """Add what a stage writes: what later stages read, new states, and outputs."""
        views = self.builder.grouping.views
        count = len(self.body.states)
        stores = [(views.locate(x), x) for x in stage.kept]
        for number, x in enumerate((*self.body.after, *self.body.outputs)):
            if x not in stage.members and not (stage is self.stages[-1] and x in leaves_of(self.body)):
                continue
            if number < count:
                stores.append((views.locate(self.body.states[number]), x))
            elif number in self.results:
                stores.append((self._output(self.results[number]), x))
        for located, x in stores:
            nesting.places.append(Place(located, x.element, located.strides))
            nesting.stores.append((len(nesting.places) - 1, nests.operand(x)))

    def _output(self, x: Recur) -> Located:
        """Return where the outputs of the steps lie, in the order of the steps."""
        located = self.builder.grouping.views.locate(x)
        if not self.body.backwards:
            return located
        first, *others = located.strides
        return Located(located.base, located.offset + (x.shape[0] - 1) * first, (-1 * first, *others))

    def _arguments(self, stage: Stage, sources: Sequence[Expression], entry: Entry) -> list[Argument]:
        """Return the arguments after those of the nest, and note what the kernel reads beside its places."""
        builder, element = self.builder, self.recur.element
        views, found = builder.grouping.views, list[Argument]()
        for state, initial in zip(self.body.states, self.group.operands, strict=False):
            second = builder.buffers[state, "second"]
            builder.use(second, entry)
            located = views.locate(initial)
            found += [BufferNumber(second), Offset(second, 0), *builder.pointer(located, element, entry)]
            extents = list(zip(self.space[-2:], row_major(self.space[-2:]), strict=True))
            entry.reaches.append(builder.reach(located, element, extents))
        rows = self.space[-2]
        for x in sources:
            depth = x.shape[-1]
            found.append(depth)
            entry.reaches.append(builder.reach(views.locate(x), element, [(rows, depth), (depth, 1)]))
        for x in stage.products:
            buffer, panel, _ = self.packed[x]
            builder.use(buffer, entry)
            found += [BufferNumber(buffer), Offset(buffer, 0), panel]
        return found


def _over_steps(nesting: Nesting) -> Nesting:
    """Return the nest over steps, rows and columns."""
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


def _recur_of(x: Expression) -> Recur:
    if not isinstance(x, Recur):
        raise TypeError("the members of the group are results of a recurrence")
    return x

