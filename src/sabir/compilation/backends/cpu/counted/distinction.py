"""The different elements of a vector: records of all elements are sorted, and equal keys follow each other.

The first record of a run of equal keys has the least index. For the order of first indices, a table has the
new number of each different element.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter
from sabir.compilation.backends.cpu.emit.sort_keys import SortRecords, record_bytes
from sabir.compilation.backends.cpu.singles.heaps import Heap
from sabir.compilation.plan.signature import SCRATCH_MEMORY, KernelSignature, declared, of_kind
from sabir.loops import ROWS_OF_DISTINCT

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.emitter import Register

PLACE = 8
"""Bytes of a place of the table of numbers."""


@dataclass(frozen=True, slots=True)
class Distinction:
    """The different elements of a vector, `ascending` or by their first index; see `Distinct`."""

    element: str
    ascending: bool

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors among the arguments."""
        return "results", "operand"

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the number of elements, the tensors and scratch memory."""
        return declared(count="size", **of_kind("tensor", self.tensors), scratch=SCRATCH_MEMORY)

    def __str__(self) -> str:
        return f"different elements {'ascending' if self.ascending else 'by first index'} ({self.element})"


def distinction_text(distinction: Distinction) -> str:
    """Return the LLVM module of a distinction."""
    return _DistinctionEmitter(distinction).text()


class _DistinctionEmitter:
    def __init__(self, distinction: Distinction) -> None:
        self.spec, self.e = distinction, Emitter()
        e, arguments = self.e, Arguments(self.e, distinction.signature)
        self.count, self.results = arguments.number("count"), arguments.pointer("results")
        self.operand, scratch = arguments.pointer("operand"), arguments.own_scratch()
        first = e.offset(self.results, e.index(1), "i64")
        rows = [e.offset(first, e.mul(self.count, number), "i64") for number in range(ROWS_OF_DISTINCT)]
        self.firsts, self.inverse, self.counts = rows
        self.records = SortRecords(e, distinction.element)
        self.heap = Heap(e, scratch, self.records.kind, self.count)
        self.table = e.offset(scratch, e.mul(self.count, record_bytes(distinction.element)))
        self.found = e.variable(e.index(0))

    def text(self) -> str:
        e = self.e
        with e.when(e.compare("icmp sgt", self.count, e.index(0))):
            self._sort()
            self._number()
            if not self.spec.ascending:
                self._in_order_of_firsts()
        e.store(e.get(self.found), self.results)
        return e.text()

    def _sort(self) -> None:
        e, kind = self.e, kind_of(self.spec.element)
        with e.loop(e.index(0), self.count) as place:
            key = self.records.key_of(e.load(e.offset(self.operand, place, kind.scalar), kind))
            self.heap.store(self.records.record(key.register, place), place)
        self.heap.build()
        self.heap.sort()

    def _number(self) -> None:
        """Emit the numbers, first indices and counts of runs of equal keys."""
        e = self.e
        before = e.variable(self.records.key_in(self.heap.load(e.index(0))))
        number = e.variable(e.index(-1))
        with e.loop(e.index(0), self.count) as place:
            record = self.heap.load(place)
            key, index = self.records.key_in(record), self.records.index_in(record)
            begins = e.binary(
                "or",
                e.compare("icmp eq", place, e.index(0)),
                e.compare("icmp ne", key, e.get(before)),
            )
            with e.when(begins):
                after = e.add(e.get(number), 1)
                e.assign(number, after)
                self._write(self.firsts, after, index)
                self._write(self.counts, after, e.index(0))
            own = e.get(number)
            self._write(self.inverse, index, own)
            self._write(self.counts, own, e.add(self._read(self.counts, own), 1))
            e.assign(before, key)
        e.assign(self.found, e.add(e.get(number), 1))

    def _in_order_of_firsts(self) -> None:
        """Emit the renumbering in the order of first indices."""
        e, zero, found = self.e, self.e.index(0), self.e.get(self.found)
        counts = self.heap.address(zero)  # the records are not needed any more
        with e.loop(zero, found) as number:
            self._write(self.table, number, e.index(-1))
            self._write(counts, number, self._read(self.counts, number))
        after = e.variable(zero)
        with e.loop(zero, self.count) as place:
            old = self._read(self.inverse, place)
            with e.when(e.compare("icmp slt", self._read(self.table, old), zero)):
                new = e.get(after)
                e.assign(after, e.add(new, 1))
                self._write(self.table, old, new)
                self._write(self.firsts, new, place)
                self._write(self.counts, new, self._read(counts, old))
            self._write(self.inverse, place, self._read(self.table, old))

    def _read(self, row: Register, place: Register) -> Register:
        return self.e.load(self.e.offset(row, place, "i64"), INDEX)

    def _write(self, row: Register, place: Register, x: Register) -> None:
        self.e.store(x, self.e.offset(row, place, "i64"))
