"""Top-k: the indices of the largest or smallest elements of each row, in order.

Records (`emit.sort_keys`) compare in the order of the results: the best is the least, and no two are equal. A
heap holds the best records of a row so far, with the worst at its root. A vector of elements is skipped if
none is better than the root, so few elements of a long row touch the heap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import at, jobs, mask_of
from sabir.compilation.backends.cpu.emit.sort_keys import SortRecords
from sabir.compilation.backends.cpu.singles.heaps import Heap
from sabir.compilation.plan.signature import KernelSignature, declared

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.nest import Nest


@dataclass(frozen=True, slots=True)
class Selection:
    """The indices of the largest or smallest values of a nest along its reduced axis, the inner axis.

    Equal values are in the order of their index, and NaN is greater than any number.
    """

    nest: Nest
    largest: bool

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the arguments of the nest, and the number of selected indices."""
        return declared(nest=self.nest.signature, count="size")

    def __str__(self) -> str:
        return f"places of the {'largest' if self.largest else 'smallest'}\n{self.nest}"


def selection_text(selection: Selection) -> str:
    """Return the LLVM module of a selection; the scratch memory of a thread holds the heap of one row."""
    return _SelectionEmitter(selection).text()


class _SelectionEmitter:
    def __init__(self, selection: Selection) -> None:
        self.spec, self.e = selection, Emitter()
        e = self.e
        arguments = Arguments(e, selection.signature)
        self.body = Body(selection.nest, arguments.group("nest"))
        ((self.target, self.step),) = selection.nest.stores
        self.element = selection.nest.steps[self.step].element
        self.along = selection.nest.inner
        self.size, self.count = self.body.sizes[self.along], arguments.number("count")
        self.records = SortRecords(e, self.element)
        self.heap = Heap(e, self.body.own_scratch(), self.records.kind, self.count)

    def text(self) -> str:
        e, body = self.e, self.body
        kept = [axis for axis in range(body.nest.axes) if axis != self.along]
        too_many = e.compare("icmp sgt", self.count, self.size)
        body.fail_where(too_many)
        none = e.binary("or", too_many, e.compare("icmp sle", self.count, e.index(0)))
        some = e.select(none, e.index(0), e.index(1))
        with jobs(body, kept, some) as (indices, _):
            self._row(indices)
        return e.text()

    def _row(self, indices: list[Register]) -> None:
        e, heap = self.e, self.heap
        with e.loop(e.index(0), self.count) as place:
            key = self._keys(Point(at(indices, self.along, place)))
            heap.store(self.records.record(key, place), place)
        heap.build()
        with e.loop(self.count, self.size, self.body.nest.lanes) as place:
            self._some(indices, place)
        heap.sort()
        with e.loop(e.index(0), self.count) as place:
            point = Point(at(indices, self.along, place))
            self.body.write(self.target, self.records.index_in(heap.load(place)), point)

    def _some(self, indices: list[Register], start: Register) -> None:
        """Emit the comparison of a vector with the root of the heap, and the insertion of better elements."""
        e, lanes = self.e, self.body.nest.lanes
        mask = mask_of(self.body, start, self.size)
        keys = e.splat(self._keys(Point(at(indices, self.along, start), lanes, mask)), lanes)
        worst = e.splat(self.records.key_in(self.heap.greatest), lanes)
        better = e.binary("and", e.compare("icmp slt", keys, worst), mask)
        with e.when(e.any(better)):
            key_kind = self.records.key
            stack = e.stack(lanes * key_kind.bits // 8)
            e.store(keys, stack)
            marks = e.value(INDEX, f"zext i{lanes} {self._marks(better)} to i64")
            remaining = e.variable(marks)

            def exchange() -> Register:
                bits = e.get(remaining)
                lane = e.call("llvm.cttz.i64", INDEX, bits, Register("true", Kind("i1")))
                e.assign(remaining, e.binary("and", bits, e.add(bits, -1)))
                key = e.load(e.offset(stack, lane, key_kind.scalar), key_kind)
                record = self.records.record(key, e.add(start, lane))
                with e.when(e.compare("icmp slt", record, self.heap.greatest)):
                    self.heap.sink(record, e.index(0), self.count)
                return e.compare("icmp ne", e.get(remaining), e.index(0))

            e.repeat(exchange)

    def _marks(self, lanes: Register) -> str:
        """Emit the bits of a mask as one integer; return its name."""
        kind = Kind(f"i{lanes.kind.lanes}")
        return self.e.value(kind, f"bitcast {lanes} to {kind}").name

    def _keys(self, point: Point) -> Register:
        """Emit the keys of elements, signed integers: a better element has a smaller key."""
        x = self.records.key_of(self.body.value(self.step, point))
        return (~x if self.spec.largest else x).register
