"""Steps of a recurrence: products of the rows of states and operands with matrices, and maps of the sums.

The work is divided among threads in one of two ways. Large steps: each stage of each step is a row of the
native plan; the threads share its tiles, and synchronize before the next row. A thread has the same panels in
every step, so that they stay in its cache. Small steps would spend more time on synchronization than on their
work: there a thread walks. It computes many steps for some rows of the states, which no other thread reads.

Each state has two buffers: a step reads one and writes the other, so that no thread overwrites what another
one reads. The first step reads the initial state; the last step writes the first buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point, kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.emit.nest import NEXT, STILL, Accumulated
from sabir.compilation.backends.cpu.products.spec import PANELS
from sabir.compilation.plan.rows import ITERATION
from sabir.compilation.plan.signature import KernelSignature, Repeated, declared
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable
    from sabir.compilation.backends.cpu.emit.nest import Nest

_WORD = 8
_ROWS_AXIS = 1  # of the nest of a stage, between steps and columns
_BLOCK = 128  # k of the inner of two loops: nested, accumulators get registers before the constants of maps
_STATE = KernelSignature(second="tensor", initial="tensor")
"""The arguments of a state in addition to its first buffer, which is an argument of the nest."""


class StateAccess(NamedTuple):
    """An access of a nest that reads a state before the step, or writes it after."""

    access: int
    state: int
    written: bool

    def __str__(self) -> str:
        return f"a{self.access} is state {self.state} {'after' if self.written else 'before'} the step"


@dataclass(frozen=True, slots=True)
class StepStage:
    """The products of a step that can be computed together, and their maps.

    The axes of the nest are steps, rows and columns. `sources` are the accesses whose rows are multiplied
    with matrices. `products` has, for each product, the indices of its sources, which are concatenated along
    their columns; its matrix has the rows for all of them in this order. A tile has `Recurrence.rows` rows by
    `vectors` vectors of each product. The sums of at most `at_once` products with the same sources are in
    registers together; they are stored on the stack until the maps read them.
    """

    nest: Nest
    state_accesses: tuple[StateAccess, ...]
    sources: tuple[int, ...]
    products: tuple[tuple[int, ...], ...]
    vectors: int
    at_once: int = 1

    def signature(self, states: int) -> KernelSignature:
        """Return the arguments: of the nest, of all states, the depths of sources, the panels of products."""
        return declared(
            nest=self.nest.signature,
            **{state_name(number): _STATE for number in range(states)},
            depths=("size", len(self.sources)),
            **{panels_name(number): PANELS for number in range(len(self.products))},
        )

    def __str__(self) -> str:
        lines = [f"stage {len(self.products)} products of {self.vectors} vectors, {self.at_once} at a time"]
        for n, sources in enumerate(self.products):
            read = ", ".join(f"a{self.sources[s]}" for s in sources)
            lines.append(f"  product {n} of rows of {read}")
        lines += [f"  {access}" for access in self.state_accesses]
        return "\n".join([*lines, str(self.nest)])


@dataclass(frozen=True, slots=True)
class Recurrence:
    """The specification of a kernel: stages of a recurrence with `states` states, in tiles of `rows` rows.

    A kernel that `walks` computes all stages of many steps, for several parts: recurrences with equal stages
    that do not depend on each other. Any other kernel has one stage, and computes it for one step.
    """

    stages: tuple[StepStage, ...]
    element: str
    states: int
    rows: int
    walks: bool

    @property
    def signature(self) -> KernelSignature:
        """The arguments of the stages; of a walk, those of the stages of each part.

        The parts of a walk follow their `count`, the `words` of the arguments of each, and the `steps` of a
        call.
        """
        stages = declared(**{
            stage_name(n): stage.signature(self.states) for n, stage in enumerate(self.stages)
        })
        if not self.walks:
            return stages
        return declared(count="size", words="size", steps="size", parts=Repeated(stages))

    def __str__(self) -> str:
        walk = " walk" if self.walks else ""
        return "\n".join([f"recurrence {self.element} rows {self.rows}{walk}", *map(str, self.stages)])


def stage_name(number: int) -> str:
    """Return the name of the arguments of a stage."""
    return f"stage{number}"


def state_name(number: int) -> str:
    """Return the name of the arguments of a state."""
    return f"state{number}"


def panels_name(product: int) -> str:
    """Return the name of the arguments of the panels of a product."""
    return f"panels{product}"


def recurrence_text(recurrence: Recurrence) -> str:
    """Return the LLVM module of a recurrence: an iteration computes one step, or several of a walk."""
    e = Emitter()
    arguments = Arguments(e, ITERATION)
    iteration, e.block = arguments.number("iteration"), arguments.address("block")
    if recurrence.walks:
        _walk(e, recurrence, iteration)
    else:
        _step(e, recurrence, iteration)
    return e.text()


def _step(e: Emitter, spec: Recurrence, step: Register) -> None:
    """Emit the stage of one step, whose tiles are divided among the shares."""
    (only,) = spec.stages
    stage = _Stage(spec, only, Arguments(e, spec.signature).group(stage_name(0)))
    stage.begin(step)
    tiles = _parts(e, stage.row_count, spec.rows)
    low, high = e.share(e.mul(stage.groups, tiles))
    is_odd = e.compare("icmp ne", e.binary("and", step, e.index(1)), e.index(0))
    last = e.add(e.add(low, high), -1)
    with e.loop(low, high) as place:
        # odd steps run in reverse: each step begins with the panels that the previous one left in the cache
        job = e.select(is_odd, e.binary("sub", last, place), place)
        group, tile = e.binary("udiv", job, tiles), e.binary("urem", job, tiles)
        stage.tile(e.mul(tile, spec.rows), stage.row_count, group)


def _walk(e: Emitter, spec: Recurrence, iteration: Register) -> None:
    """Emit the steps of a walk; the rows of all parts are divided among the shares.

    A share computes all steps of the iteration, and all of their stages, for its rows.
    """
    arguments = Arguments(e, spec.signature)
    parts, words, length = (arguments.number(name) for name in ("count", "words", "steps"))
    stages = arguments.group("parts")
    rows = stages.group(stage_name(0)).group("nest").number("sizes", _ROWS_AXIS)
    first = e.mul(iteration, length)
    block, zero = e.block, e.index(0)
    low, high = e.share(e.mul(parts, rows))
    with e.loop(zero, parts) as part:
        before = e.mul(part, rows)
        end = e.least(e.binary("sub", high, before), rows)
        start = e.binary("sub", low, before)
        start = e.select(e.compare("icmp slt", start, zero), zero, start)
        with e.when(e.compare("icmp slt", start, end)):
            e.block = e.offset(block, e.mul(e.mul(part, words), _WORD))
            _walk_part(spec, stages, (first, e.add(first, length)), (start, end))


def _walk_part(
    spec: Recurrence, arguments: Arguments, steps: tuple[Register, Register], rows: tuple[Register, Register]
) -> None:
    """Emit the steps and rows of a part between their bounds; the number of steps bounds the steps too."""
    e = arguments.e
    stages = [_Stage(spec, stage, arguments.group(stage_name(n))) for n, stage in enumerate(spec.stages)]
    with e.loop(steps[0], e.least(steps[1], stages[0].steps)) as step:
        for stage in stages:
            stage.begin(step)
            with e.loop(e.index(0), stage.groups) as group, e.loop(*rows, spec.rows) as row:
                stage.tile(row, rows[1], group)


def _parts(e: Emitter, count: Register, size: int) -> Register:
    return e.binary("udiv", e.add(count, size - 1), e.index(size))


def _batched(numbers: Sequence[int], size: int) -> list[Sequence[int]]:
    return [numbers[n : n + size] for n in range(0, len(numbers), size)]


def _by_sources(products: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], list[int]]:
    """Return the numbers of the products with the same sources."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number, sources in enumerate(products):
        found.setdefault(sources, []).append(number)
    return found


class _Stage:
    """Emits the tiles of a stage."""

    def __init__(self, recurrence: Recurrence, stage: StepStage, arguments: Arguments) -> None:
        self.e, self.spec, self.rows = arguments.e, stage, recurrence.rows
        e, self.arguments = self.e, arguments
        self.body = Body(stage.nest, arguments.group("nest"))
        self.steps, self.row_count, self.columns = self.body.sizes
        self.size, self.lanes = element_bytes(recurrence.element), stage.nest.lanes
        self.vector = kind_of(recurrence.element, self.lanes)
        self.width = stage.vectors * self.lanes
        self.groups = _parts(e, self.columns, self.width)
        self.depths = arguments.numbers("depths")
        panels = [arguments.group(panels_name(n)) for n in range(len(stage.products))]
        self.panels = [(each.pointer("tensor"), each.number("bytes")) for each in panels]
        self._states = [self._addresses(access) for access in stage.state_accesses]

    def _addresses(self, access: StateAccess) -> tuple[Register, Register, Register]:
        """Return the addresses of the first and the second buffer of a state, and of the initial state."""
        state = self.arguments.group(state_name(access.state))
        return self.body.start(access.access), state.pointer("second"), state.pointer("initial")

    def begin(self, step: Register) -> None:
        """Begin a step: emit the addresses of the buffers that the accesses of states read or write in it."""
        e, self.step = self.e, step
        is_first = e.compare("icmp eq", step, e.index(0))
        left = e.binary("and", e.binary("sub", self.steps, step), e.index(1))
        is_even = e.compare("icmp eq", left, e.index(0))
        for access, (first, second, initial) in zip(self.spec.state_accesses, self._states, strict=True):
            before = e.select(is_first, initial, e.select(is_even, first, second))
            after = e.select(is_even, second, first)
            self.body.rebase(access.access, after if access.written else before)

    # ------------------------------------------------------------ products

    def tile(self, row: Register, end: Register, group: Register) -> None:
        """Emit the tile of rows from `row` on and before `end`, for a group of columns."""
        e, spec = self.e, self.spec
        rows = e.least(e.index(self.rows), e.binary("sub", end, row))
        last = e.add(end, -1)
        places = [e.least(e.add(row, m), last) for m in range(self.rows)]  # the last row is repeated
        self._prefetch(places, e.mul(group, self.width))
        pitch = len(spec.products) * self.lanes * self.size  # bytes of one vector of sums of each product
        tile = e.stack(max(1, self.rows * spec.vectors * pitch))
        addresses = [
            [self.body.address(access, Point([self.step, m, e.index(0)])) for m in places]
            for access in spec.sources
        ]
        for sources, products in _by_sources(spec.products).items():
            for together in _batched(products, spec.at_once):
                self._products(together, sources, group, addresses, (tile, pitch))
        self._maps(row, rows, e.mul(group, self.width), (tile, pitch))

    def _products(
        self, products: Sequence[int], sources: Sequence[int], group: Register,
        rows: Sequence[Sequence[Register]], tile: tuple[Register, int],
    ) -> None:  # fmt: skip
        """Emit the sums of some products with the same sources, and their stores to the stack."""
        e, vectors, size = self.e, self.spec.vectors, self.lanes * self.size
        zero = e.constant(self.vector, 0)
        sums = [[[e.variable(zero) for _ in range(vectors)] for _ in rows[0]] for _ in products]
        for place, source in enumerate(sources):
            bases, depth = [self._panel(n, group, place) for n in products], self.depths[source]
            with (
                e.loop(e.index(0), depth, _BLOCK) as first,
                e.loop(first, e.least(e.add(first, _BLOCK), depth)) as k,
            ):
                self._add(sums, rows[source], bases, k)
        base, pitch = tile
        for n, product in zip(products, sums, strict=True):
            for m, slots in enumerate(product):
                for v, slot in enumerate(slots):
                    waiting = e.index((m * vectors + v) * pitch + n * size)
                    e.store(e.get(slot), e.offset(base, waiting), align=size)

    def _prefetch(self, rows: Sequence[Register], column: Register) -> None:
        """Emit prefetches of the elements that the maps read only in this step, before the products."""
        written = {access for access, _ in self.spec.nest.stores}
        for number, access in enumerate(self.spec.nest.accesses):
            if access.strides[0] != STILL and access.strides[-1] == NEXT and number not in written:
                for row in rows:
                    for v in range(self.spec.vectors):
                        place = self.e.add(column, v * self.lanes)
                        self.e.prefetch(self.body.address(number, Point([self.step, row, place])))

    def _panel(self, product: int, group: Register, place: int) -> Register:
        """Emit the address in a panel of the rows that multiply the source number `place` of a product."""
        e, (base, panel_bytes) = self.e, self.panels[product]
        start = e.offset(base, e.mul(group, panel_bytes))
        for source in self.spec.products[product][:place]:
            start = e.offset(start, e.mul(self.depths[source], self.width * self.size))
        return start

    def _add(
        self, sums: Sequence[list[list[Variable]]], rows: Sequence[Register], bases: Sequence[Register],
        k: Register,
    ) -> None:  # fmt: skip
        """Emit the fused multiply-adds of index `k` of a source: `sums[m] += source[m, k] * matrix[k]`."""
        e, bytes_ = self.e, self.lanes * self.size
        lines = [e.offset(base, e.mul(k, self.width * self.size)) for base in bases]
        columns = [
            [
                e.load(e.offset(line, e.index(v * bytes_)), self.vector, align=bytes_)
                for v in range(self.spec.vectors)
            ]
            for line in lines
        ]
        for m, row in enumerate(rows):
            x = e.splat(e.load(e.offset(row, e.mul(k, self.size)), Kind(self.vector.scalar)), self.lanes)
            for product, vectors in zip(sums, columns, strict=True):
                for slot, y in zip(product[m], vectors, strict=True):
                    e.assign(slot, e.fma(x, y, e.get(slot)))

    # ------------------------------------------------------------ maps

    def _maps(self, row: Register, rows: Register, column: Register, tile: tuple[Register, int]) -> None:
        """Emit the maps in a loop over the vectors of the tile, whose sums are on the stack."""
        e, vectors, (base, pitch) = self.e, self.spec.vectors, tile
        with e.loop(e.index(0), e.mul(rows, vectors)) as place:
            m, v = (e.binary(op, place, e.index(vectors)) for op in ("udiv", "urem"))
            here = e.offset(base, e.mul(place, pitch))
            self._map(here, e.add(row, m), e.add(column, e.mul(v, self.lanes)))

    def _map(self, sums: Register, row: Register, column: Register) -> None:
        """Emit the maps of one vector, and their stores."""
        e, nest, size = self.e, self.spec.nest, self.lanes * self.size
        mask = lanes_before(e, column, self.columns, self.lanes)
        point = Point([self.step, row, column], self.lanes, mask)
        for number, step in enumerate(nest.steps):
            if isinstance(step, Accumulated):
                address = e.offset(sums, e.index(step.number * size))
                point.values[number] = e.load(address, self.vector, align=size)
        found = [(access, self.body.value(number, point)) for access, number in nest.stores]
        for access, x in found:
            self.body.write(access, x, point)
