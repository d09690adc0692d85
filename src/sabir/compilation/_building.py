"""From groups to a plan: kernels with their arguments, calls that are evaluated, and the memory of both."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation._grouping import Group, Grouping
from sabir.compilation._nesting import NestBuilder, Nesting, Place, merged, nest_of, nesting_of
from sabir.compilation._plan import (
    FIRST,
    Argument,
    Buffer,
    BufferKind,
    BufferNumber,
    Computed,
    Entry,
    Offset,
    Plan,
    Step,
    bytes_of,
)
from sabir.compilation._tiles import VECTORS, Tile, rows_of_a_job, tile_for, tiles
from sabir.compilation._views import Located
from sabir.compilation.kernels import (
    ANY,
    Accumulated,
    Attention,
    Load,
    Nest,
    Packing,
    Position,
    Product,
    element_bytes,
    passes_of,
)
from sabir.loops import Contract, Expression, Size, Sizes, Stored

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation._lowering import Lowered
    from sabir.compilation.native import Host

_WORD = 64  # bytes to which parts of scratch memory are rounded


def build(lowered: Lowered, outputs: Sequence[int], host: Host) -> Plan:
    """Return the plan that computes the values in the slots `outputs`."""
    grouping = Grouping(lowered)
    grouping.run(outputs)
    return _Builder(lowered, grouping, host).run()


class _Builder:
    def __init__(self, lowered: Lowered, grouping: Grouping, host: Host) -> None:
        self.lowered, self.grouping, self.host = lowered, grouping, host
        self.buffers: dict[Expression | tuple[Expression, str], Buffer] = {}
        self.by_slot: dict[int, Buffer] = {}
        self.entries: list[Entry | Step] = []
        self.setup: list[Entry] = []  # the packing of constants
        self._inputs = set(lowered.prepared.inputs)
        self._outputs = {x: slot for slot, x in grouping.outputs.items()}

    def run(self) -> Plan:
        for group in self.grouping.ordered():
            if group.kind == "evaluate":
                self._evaluate(group)
            elif group.kind == "product":
                self._product(group)
            elif group.kind == "attention":
                self._attention(group)
            else:
                self._nest(group)
        outputs = {slot: self.buffer(x) for slot, x in self.grouping.outputs.items()}
        return Plan(self.entries, list(dict.fromkeys([*self.buffers.values(), *self.by_slot.values()])), outputs, self.setup)

    # ------------------------------------------------------------ memory

    def buffer(self, x: Expression) -> Buffer:
        """Return the memory of an expression that is stored."""
        found = self.buffers.get(x)
        if found is None:
            found = self.buffers[x] = self._stored(x) if isinstance(x, Stored) else self._computed(x)
        return found

    def _stored(self, x: Stored) -> Buffer:
        kind: BufferKind = "known"
        if x.slot in self._inputs:
            kind = "input"
        elif x.slot in self.lowered.prepared.constants:
            kind = "constant"
        elif x in self.grouping.of:
            kind = "result"
        found = self.by_slot.get(x.slot)
        if found is None:
            found = self.by_slot[x.slot] = self._new(kind, x.element, x.shape, x.slot)
        return found

    def _computed(self, x: Expression) -> Buffer:
        slot = self._outputs.get(x)
        found = self._new("arena" if slot is None else "output", x.element, x.shape, slot or 0)
        located = self.grouping.views.locate(x)
        found.strides = located.strides if x in self.grouping.views.order else None
        return found

    def _new(self, kind: BufferKind, element: str, shape: Sizes, slot: int = 0, size: Size | None = None) -> Buffer:
        number = FIRST + len(self.buffers) + len(self.by_slot)
        return Buffer(kind, number, element, shape, bytes_of(element, shape) if size is None else size, slot)

    def _pointer(self, located: Located, element: str, entry: Entry) -> list[Argument]:
        buffer = self.buffer(located.base)
        self._use(buffer, entry)
        return [BufferNumber(buffer), Offset(buffer, located.offset * element_bytes(element))]

    def _use(self, buffer: Buffer, entry: Entry) -> None:
        buffer.use(len(self.entries))
        entry.buffers.append(buffer)

    # ------------------------------------------------------------ kernels

    def _nest(self, group: Group) -> None:
        nesting = merged(nesting_of(group, self.grouping))
        if not nesting.stores:
            return
        nest = nest_of(nesting, self.host.vector_bits)
        entry = Entry([])
        scratch = self._scratch(nest, nesting)
        arguments = self._arguments(nest, nesting, entry, scratch)
        entry.choices.append((None, 0, nest, arguments))
        entry.scratch = scratch
        entry.flops = _operations(nest) * _count(nesting.sizes)
        self.entries.append(entry)

    def _arguments(
        self, nest: Nest, nesting: Nesting, entry: Entry, scratch: Size, own: Place | None = None
    ) -> list[Argument]:
        """Return the arguments of a nest; the kernel itself places its last access where `own` is given."""
        found: list[Argument] = [*nesting.sizes]
        for place, access in zip([*nesting.places, *([own] if own else [])], nest.accesses, strict=True):
            if place is own:
                found += [0, 0]
                continue
            found += self._pointer(place.located, place.element, entry)
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

    def _scratch(self, nest: Nest, nesting: Nesting) -> Size:
        """Return how many bytes each thread needs for what a row keeps."""
        if not any(nest.reduced) or not nest.reduced[nest.inner]:
            return 0
        length = _count([n for n, reduced in zip(nesting.sizes, nest.reduced, strict=True) if reduced])
        found: Size = 0
        for number in passes_of(nest, keep=True).kept:
            found = found + length * element_bytes(nest.steps[number].element) + 2 * _WORD
        return found

    # ------------------------------------------------------------ products

    def _product(self, group: Group) -> None:
        contract = group.members[0]
        if not isinstance(contract, Contract):
            raise TypeError("a product group begins with a product")
        nesting = nesting_of(group, self.grouping)
        a = self.grouping.views.locate(self.grouping.operands[contract][0])
        b = self.grouping.views.locate(self.grouping.operands[contract][1])
        nesting = self._with_operands(nesting, contract, a, b)
        nesting = merged(nesting, fixed=2)
        b_place, a_place = nesting.places.pop(), nesting.places.pop()
        nest = nest_of(nesting, self.host.vector_bits, inner=len(nesting.sizes) - 1)
        *batch, rows, _ = nesting.sizes
        depth, columns = contract.b.shape[-2], contract.b.shape[-1]
        width = VECTORS * nest.lanes
        packed, panel, b_strides = self._packed(contract, b, b_place, batch, (depth, columns), nest.lanes)
        entry = Entry([])
        for limit, tile in tiles(rows if isinstance(rows, int) else None, self.host.registers):
            fitted = self._fitted(tile, columns, width)
            product = Product(nest, contract.element, fitted.rows, VECTORS, fitted.panels)
            arguments = self._arguments(nest, nesting, entry, 0)
            arguments += self._pointer(a_place.located, contract.element, entry)
            self._use(packed, entry)
            arguments += [BufferNumber(packed), Offset(packed, 0)]
            size = element_bytes(contract.element)
            job = partial(_job_rows, tile_rows=fitted.rows, width=width * fitted.panels)
            arguments += [
                a_place.strides[-2] * size, panel, depth, Computed(job, (rows, columns, _count(batch))),
            ]  # fmt: skip
            arguments += [stride * size for stride in a_place.strides[:-2]]
            arguments += b_strides
            entry.choices.append((rows, limit or 0, product, arguments))
        entry.flops = 2 * depth * _count(nesting.sizes)
        self.entries.append(entry)

    @staticmethod
    def _fitted(tile: Tile, columns: Size, width: int) -> Tile:
        """Return the tile with no more panels than there are, all of them whole groups."""
        if not isinstance(columns, int):
            return tile._replace(panels=1)
        panels, count = tile.panels, -(-columns // width)
        while count % panels:
            panels -= 1
        return tile._replace(panels=panels)

    @staticmethod
    def _with_operands(nesting: Nesting, contract: Contract, a: Located, b: Located) -> Nesting:
        """Add the operands as places, so that axes merge only where both allow it."""
        head = contract.rank - 2

        def batch(operand: Expression, located: Located) -> list[Size]:
            missing = head - (operand.rank - 2)
            own = zip(operand.shape[:-2], located.strides[:-2], contract.shape[missing:head], strict=True)
            return [0] * missing + [0 if d == 1 and w != 1 else s for d, s, w in own]

        nesting.places.append(Place(a, contract.element, (*batch(contract.a, a), a.strides[-2], 0)))
        nesting.places.append(Place(b, contract.element, (*batch(contract.b, b), 0, 0)))
        return nesting

    def _packed(
        self, contract: Contract, b: Located, place: Place, batch: Sequence[Size], matrix: tuple[Size, Size],
        lanes: int,
    ) -> tuple[Buffer, Size, list[Size]]:  # fmt: skip
        """Return the packed second operand, the bytes of a panel, and its strides along the batch axes."""
        depth, columns = matrix
        size, width = element_bytes(contract.element), VECTORS * lanes
        panel = depth * width * size
        item = panel * _up(columns, width)
        own = [(n, s) for n, s in zip(batch, place.strides, strict=False) if s != 0]
        strides: list[Size] = []
        step: Size = item
        for n, s in zip(reversed(batch), reversed(place.strides[: len(batch)]), strict=True):
            strides.append(0 if s == 0 else step)
            step = step if s == 0 else step * n
        constant = isinstance(b.base, Stored) and b.base.slot in self.lowered.prepared.constants
        key = (b.base, f"{b.offset}/{b.strides}/{matrix}/{own}")
        found = self.buffers.get(key) if constant else None
        if found is None:
            kind: BufferKind = "packed" if constant else "arena"
            found = self.buffers[key if constant else (contract, "packed")] = self._new(
                kind, contract.element, (), size=item * _count([n for n, _ in own])
            )
            packing = Packing(contract.element, len(own), width, lanes, next_column=b.strides[-1] == 1)
            entry = Entry([], nodes=("packing",))
            arguments: list[Argument] = [*(n for n, _ in own), depth, columns]
            arguments += self._pointer(b, contract.element, entry)
            arguments += [s * size for _, s in own]
            arguments += [b.strides[-2] * size, b.strides[-1] * size]
            self._use(found, entry)
            arguments += [BufferNumber(found), Offset(found, 0), item]
            entry.choices.append((None, 0, packing, arguments))
            (self.setup if constant else self.entries).append(entry)
        return found, panel, strides[::-1]

    # ------------------------------------------------------------ attention

    def _attention(self, group: Group) -> None:
        scores, second = group.scores, group.members[0]
        first = None if scores is None else scores.members[0]
        if scores is None or not isinstance(first, Contract) or not isinstance(second, Contract):
            raise TypeError("attention has two products")
        lanes = self.host.vector_bits // 8 // element_bytes(second.element)
        head = [axis for axis in range(second.rank - 2) if second.shape[axis] != 1]
        inner, outer = self._rows_of_scores(scores, second.a, head), self._chosen(nesting_of(group, self.grouping), head)
        a = self.grouping.views.locate(self.grouping.operands[first][0])
        b = self.grouping.views.locate(self.grouping.operands[first][1])
        with_operands = self._with_operands(Nesting(first.shape, (False,) * first.rank), first, a, b)
        a_place, b_place = self._chosen(with_operands, head).places
        batch = [second.shape[axis] for axis in head]
        matrix = first.b.shape[-2], first.b.shape[-1]
        packed, panel, b_strides = self._packed(first, b, b_place, batch, matrix, lanes)
        v = self.grouping.views.locate(self.grouping.operands[second][1])
        v_place = self._chosen(
            self._with_operands(Nesting(second.shape, (False,) * second.rank), second, v, v), head
        ).places[1]
        entry = Entry([])
        rows = tile_for(second.shape[-2] if isinstance(second.shape[-2], int) else 128, self.host.registers).rows
        attention = Attention(
            nest_of(inner, self.host.vector_bits, inner=len(inner.sizes) - 1),
            nest_of(outer, self.host.vector_bits, inner=len(outer.sizes) - 1),
            second.element, rows, VECTORS, _value_vectors(second.shape[-1], lanes), lanes,
        )  # fmt: skip
        kept = self._scratch(attention.scores, inner)
        size = element_bytes(second.element)
        pitch = _up(matrix[1], VECTORS * lanes) * (VECTORS * lanes * size)
        entry.scratch = kept + rows * pitch
        # the last access is the row of scores, which the kernel places itself
        row = inner.places.pop()
        arguments = self._arguments(attention.scores, inner, entry, entry.scratch, own=row)
        arguments += self._arguments(attention.output, outer, entry, entry.scratch)
        arguments += self._pointer(a, first.element, entry)
        arguments += [a_place.strides[-2] * size, *(s * size for s in a_place.strides[:-2])]
        self._use(packed, entry)
        arguments += [BufferNumber(packed), Offset(packed, 0), panel, *b_strides]
        arguments += self._pointer(v, second.element, entry)
        arguments += [v.strides[-2] * size, *(s * size for s in v_place.strides[:-2])]
        arguments += [matrix[0], kept]
        entry.choices.append((None, 0, attention, arguments))
        entry.flops = 2 * _count(batch) * second.shape[-2] * matrix[1] * (matrix[0] + second.shape[-1])
        self.entries.append(entry)

    def _rows_of_scores(self, scores: Group, result: Expression, head: Sequence[int]) -> Nesting:
        """Return the nest over the rows of scores, which reads and writes them as its last place."""
        builder = NestBuilder(scores, self.grouping)
        nesting = builder.run()
        located = Located(result, 0, (0,) * (len(scores.space) - 1) + (1,))
        nesting.places.append(Place(located, result.element, located.strides))
        own = len(nesting.places) - 1
        nesting.steps = [Load(s.element, own) if isinstance(s, Accumulated) else s for s in nesting.steps]
        nesting.stores = [(own, builder.numbers[result])]
        return self._chosen(nesting, head)

    @staticmethod
    def _chosen(nesting: Nesting, head: Sequence[int]) -> Nesting:
        """Return a nest over some of its batch axes and the last two; the other axes have size 1."""
        count = len(nesting.sizes)
        axes = [*head, count - 2, count - 1]
        renamed = {axis: number for number, axis in enumerate(axes)}
        steps = [
            Position(s.element, renamed.get(s.axis, 0)) if isinstance(s, Position) else s for s in nesting.steps
        ]
        return Nesting(
            tuple(nesting.sizes[axis] for axis in axes),
            tuple(nesting.reduced[axis] for axis in axes),
            [p._replace(strides=tuple(p.strides[axis] for axis in axes)) for p in nesting.places],
            steps, nesting.stores, nesting.takes, nesting.arguments,
        )  # fmt: skip

    # ------------------------------------------------------------ evaluated calls

    def _evaluate(self, group: Group) -> None:
        step = group.step
        if step is None:
            raise TypeError("an evaluated group has a call")
        call = self.lowered.prepared.program.calls[step.place]
        reads: dict[int, tuple[Buffer, Size, Sizes, Sizes]] = {}
        for slot in step.reads:
            x = self.lowered.expressions.get(slot)
            if x is None or (isinstance(x, Stored) and x.slot == slot):
                if x is not None:
                    self.buffer(x)
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
        self.entries.append(Step(step, reads, writes, call.label, step.reason))


def _job_rows(rows: int, columns: int, batch: int, *, tile_rows: int, width: int) -> int:
    return rows_of_a_job(rows, columns, batch, tile_rows=tile_rows, width=width)


def _value_vectors(columns: Size, lanes: int) -> int:
    """Return how many vectors of a row of results are computed at a time."""
    if not isinstance(columns, int):
        return 2
    return max(1, min(2, -(-columns // lanes)))


def _up(size: Size, step: int) -> Size:
    """Return how many steps cover a size."""
    return (size + (step - 1)) // step


def _count(sizes: Sequence[Size]) -> Size:
    return math.prod(sizes, start=1)


def _operations(nest: Nest) -> int:
    return sum(type(step).__name__ in {"Apply", "Fold"} for step in nest.steps)
