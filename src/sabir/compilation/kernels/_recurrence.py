"""One step of a recurrence, or a stage of it: products of rows of a state, and maps of their sums.

A step is a row of the native plan: the driver runs it on all threads, which meet before the next one. The
tiles of a step are rows by panels of columns, and each thread has the same panels in every step, so that
they stay in its cache. The sums of all products of a tile wait on the stack for the maps.

A state lies in two buffers in turn, so that no thread overwrites what another one reads. The last step
writes the first of them; the first step reads the initial state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.kernels._body import Body, Point, element_bytes, kind_of
from sabir.compilation.kernels._emitter import Emitter, Kind, Register
from sabir.compilation.kernels._jobs import lanes_before
from sabir.compilation.kernels._nest import Accumulated

if TYPE_CHECKING:
    from sabir.compilation.kernels._emitter import Variable
    from sabir.compilation.kernels._nest import Nest


class StateAccess(NamedTuple):
    """An access of a nest that reads a state before the step, or writes it after."""

    access: int
    state: int
    written: bool


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A stage of the steps of a recurrence; the axes of the nest are steps, rows and columns.

    `sources` are the accesses whose rows are multiplied, `products` has the source of each product. A tile
    has `rows` rows by `vectors` vectors of each product.
    """

    nest: Nest
    element: str
    states: int
    state_accesses: tuple[StateAccess, ...]
    sources: tuple[int, ...]
    products: tuple[int, ...]
    rows: int
    vectors: int

    def __str__(self) -> str:
        tile = f"tile {self.rows}x{len(self.products)}x{self.vectors}"
        lines = [f"recurrence {self.element} {tile}"]
        lines += [f"  product {n} of rows of a{self.sources[s]}" for n, s in enumerate(self.products)]
        for access, state, written in self.state_accesses:
            lines.append(f"  a{access} is state {state} {'after' if written else 'before'} the step")
        return "\n".join([*lines, str(self.nest)])


class RecurrenceLayout:
    """Where the arguments lie, after those of the nest, whose accesses of states have the first buffer.

    Of each state: the second buffer, the initial state, each a buffer and an offset; of each source its
    columns; of each product the panels, a buffer and an offset, and the bytes of a panel.
    """

    def __init__(self, recurrence: Recurrence, start: int) -> None:
        self.states = start
        self.depths = start + 4 * recurrence.states
        self.panels = self.depths + len(recurrence.sources)
        self.count = self.panels + 3 * len(recurrence.products)


def recurrence_text(recurrence: Recurrence) -> str:
    """Return the LLVM module of a stage; its block is the number of the step, and where the arguments are."""
    return _Emission(recurrence).text()


class _Emission:
    def __init__(self, recurrence: Recurrence) -> None:
        self.spec, self.e = recurrence, Emitter()
        e = self.e
        self.step = e.argument(0)
        e.block = e.argument(1, "ptr")
        self.body = Body(e, recurrence.nest)
        self.layout = RecurrenceLayout(recurrence, self.body.layout.count)
        self.steps, self.row_count, self.columns = self.body.sizes
        self.size, self.lanes = element_bytes(recurrence.element), recurrence.nest.lanes
        self.vector = kind_of(recurrence.element, self.lanes)
        self.width = recurrence.vectors * self.lanes
        self.depths = [e.argument(self.layout.depths + n) for n in range(len(recurrence.sources))]
        places = range(self.layout.panels, self.layout.count, 3)
        self.panels = [(self.body.pointer(place), e.argument(place + 2)) for place in places]
        self._place_states()

    def _place_states(self) -> None:
        """Let the accesses of states begin where the states lie in this step."""
        e, body = self.e, self.body
        is_first = e.compare("icmp eq", self.step, e.index(0))
        left = e.binary("and", e.binary("sub", self.steps, self.step), e.index(1))
        is_even = e.compare("icmp eq", left, e.index(0))
        for access, state, written in self.spec.state_accesses:
            first = body.pointer(body.layout.accesses[access])
            place = self.layout.states + 4 * state
            second, initial = body.pointer(place), body.pointer(place + 2)
            if written:
                body.rebase(access, e.select(is_even, second, first))
            else:
                body.rebase(access, e.select(is_first, initial, e.select(is_even, first, second)))

    def text(self) -> str:
        e, rows = self.e, self.spec.rows
        groups = e.binary("udiv", e.add(self.columns, self.width - 1), e.index(self.width))
        tiles = e.binary("udiv", e.add(self.row_count, rows - 1), e.index(rows))
        low, high = e.share(e.mul(groups, tiles))
        with e.loop(low, high) as job:
            group, tile = e.binary("udiv", job, tiles), e.binary("urem", job, tiles)
            self._tile(e.mul(tile, rows), group)
        return e.text()

    # ------------------------------------------------------------ products

    def _tile(self, row: Register, group: Register) -> None:
        e, spec = self.e, self.spec
        rows = e.least(e.index(spec.rows), e.binary("sub", self.row_count, row))
        last = e.add(self.row_count, -1)
        places = [e.least(e.add(row, m), last) for m in range(spec.rows)]
        sums: list[list[list[Variable]]] = [[] for _ in spec.products]
        zero = e.constant(self.vector, 0)
        for source in range(len(spec.sources)):
            chosen = [n for n, s in enumerate(spec.products) if s == source]
            for n in chosen:
                sums[n] = [[e.variable(zero) for _ in range(spec.vectors)] for _ in places]
            self._multiply(source, places, group, [(self._panel(n, group), sums[n]) for n in chosen])
        self._maps(row, rows, e.mul(group, self.width), sums)

    def _panel(self, product: int, group: Register) -> Register:
        base, panel_bytes = self.panels[product]
        return self.e.offset(base, self.e.mul(group, panel_bytes))

    def _multiply(
        self, source: int, places: list[Register], group: Register,
        products: list[tuple[Register, list[list[Variable]]]],
    ) -> None:  # fmt: skip
        """Emit the loop over the columns of a source, which adds to the sums of all its products."""
        e, spec = self.e, self.spec
        zero = e.index(0)
        rows = [
            self.body.address(spec.sources[source], Point([self.step, place, zero])) for place in places
        ]
        with e.loop(zero, self.depths[source]) as k:
            wide = [
                e.splat(e.load(e.offset(row, e.mul(k, self.size)), Kind(self.vector.scalar)), self.lanes)
                for row in rows
            ]
            for base, sums in products:
                line = e.offset(base, e.mul(k, self.width * self.size))
                for v in range(spec.vectors):
                    bytes_ = self.lanes * self.size
                    y = e.load(e.offset(line, e.index(v * bytes_)), self.vector, align=bytes_)
                    for x, slots in zip(wide, sums, strict=True):
                        e.assign(slots[v], e.fma(x, y, e.get(slots[v])))

    # ------------------------------------------------------------ maps

    def _maps(
        self, row: Register, rows: Register, column: Register, sums: list[list[list[Variable]]]
    ) -> None:
        """Emit the maps in a loop over the vectors of the tile, whose sums wait on the stack."""
        e, spec = self.e, self.spec
        size = self.lanes * self.size
        pitch = len(sums) * size  # bytes of the sums of one vector
        tile = e.stack(max(1, spec.rows * spec.vectors * pitch))
        for n, product in enumerate(sums):
            for m, slots in enumerate(product):
                for v, slot in enumerate(slots):
                    place = e.index((m * spec.vectors + v) * pitch + n * size)
                    e.store(e.get(slot), e.offset(tile, place), align=size)
        with e.loop(e.index(0), rows) as m, e.loop(e.index(0), e.index(spec.vectors)) as v:
            here = e.offset(tile, e.mul(e.add(e.mul(m, spec.vectors), v), pitch))
            at = e.add(column, e.mul(v, self.lanes))
            self._map(here, e.add(row, m), at)

    def _map(self, sums: Register, row: Register, column: Register) -> None:
        """Emit the maps of one vector."""
        e, nest = self.e, self.spec.nest
        mask = lanes_before(e, column, self.columns, self.lanes)
        point = Point([self.step, row, column], self.lanes, mask)
        size = self.lanes * self.size
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                address = e.offset(sums, e.index(step.number * size))
                point.values[number] = e.load(address, self.vector, align=size)
        found = [(access, self.body.value(number, point)) for access, number in nest.stores]
        for access, x in found:
            self.body.write(access, x, point)
