"""Non-maximum suppression: boxes by descending score, without those that overlap a selected one.

The scores of a class are a heap of the complements of records (`emit.sort_keys`): the greatest is that of the
best box. Boxes leave the heap in order until enough are selected, so few are sorted. A box is compared with
all selected boxes of its class, a vector of them at once; their edges and areas are rows in scratch memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import function_of
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import lanes_before
from sabir.compilation.backends.cpu.emit.lanes import Lanes
from sabir.compilation.backends.cpu.emit.sort_keys import SortRecords, record_bytes
from sabir.compilation.backends.cpu.singles.heaps import Heap
from sabir.compilation.plan.signature import SCRATCH_MEMORY, KernelSignature, declared, of_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.compilation.backends.cpu.emit.emitter import Variable
    from sabir.loops import Size

SIZES = ("batches", "classes", "boxes", "bound")
_FLOAT = Kind("float")
_WIDTH, _RECORD = 4, record_bytes("float")  # bytes of a float, and of a record
_CORNERS = 4
_FIELDS = _CORNERS + 1  # the edges of a selected box, and its area
_ROW = 3  # numbers of a result


@dataclass(frozen=True, slots=True)
class Suppression:
    """The selected boxes of each class; see `Suppress`. Without a `threshold` all scores are admitted."""

    lanes: int
    centred: bool
    threshold: bool

    @property
    def tensors(self) -> tuple[str, ...]:
        """The tensors among the arguments."""
        found = "results", "all_boxes", "all_scores", "most", "overlap"
        return (*found, "threshold") if self.threshold else found

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the sizes, the tensors and scratch memory."""
        return declared(**of_kind("size", SIZES), **of_kind("tensor", self.tensors), scratch=SCRATCH_MEMORY)

    def __str__(self) -> str:
        return f"suppression of {'centred ' if self.centred else ''}boxes by {self.lanes}"


def scratch_bytes(boxes: Size, bound: Size, lanes: int) -> Size:
    """Return the scratch memory of a thread: the records of a class, and the rows of its selected boxes."""
    return boxes * _RECORD + (bound + lanes) * (_FIELDS * _WIDTH)


def suppression_text(suppression: Suppression) -> str:
    """Return the LLVM module of a suppression."""
    return _SuppressionEmitter(suppression).text()


class _Class(NamedTuple):
    """One class of a batch: their indices, and the addresses of the boxes and of the scores."""

    batch: Register
    number: Register
    boxes: Register
    scores: Register


class _SuppressionEmitter:
    def __init__(self, suppression: Suppression) -> None:
        self.spec, self.e = suppression, Emitter()
        e, arguments = self.e, Arguments(self.e, suppression.signature)
        self.batches, self.classes, self.boxes, self.bound = map(arguments.number, SIZES)
        pointers = {name: arguments.pointer(name) for name in suppression.tensors}
        self.results = e.offset(pointers["results"], e.index(1), "i64")
        self.all_boxes, self.all_scores = pointers["all_boxes"], pointers["all_scores"]
        self.most = e.least(e.load(pointers["most"], INDEX), self.bound)
        self.overlap = e.load(pointers["overlap"], _FLOAT)
        self.threshold = e.load(pointers["threshold"], _FLOAT) if suppression.threshold else None
        self.total = e.variable(e.index(0))
        self.number = pointers["results"]
        self.order, self.records = SortRecords(e, "float"), arguments.own_scratch()
        self.rows = e.offset(self.records, e.mul(self.boxes, _RECORD))
        self.row_bytes = e.mul(e.add(self.bound, suppression.lanes), _WIDTH)

    def text(self) -> str:
        e = self.e
        classes = e.select(e.compare("icmp sgt", self.most, e.index(0)), self.classes, e.index(0))
        with e.loop(e.index(0), self.batches) as batch, e.loop(e.index(0), classes) as number:
            place = e.add(e.mul(batch, self.classes), number)
            boxes = e.offset(self.all_boxes, e.mul(batch, e.mul(self.boxes, _CORNERS)), "float")
            scores = e.offset(self.all_scores, e.mul(place, self.boxes), "float")
            self._class(_Class(batch, number, boxes, scores))
        e.store(e.get(self.total), self.number)
        return e.text()

    def _class(self, one: _Class) -> None:
        """Emit the selection of the boxes of a class."""
        e = self.e
        left = self._candidates(one)
        heap = Heap(e, self.records, INDEX, e.get(left))
        kept = e.variable(e.index(0))
        with e.when(e.compare("icmp sgt", e.get(left), e.index(0))):
            heap.build()

            def next_box() -> Register:
                best, last = heap.greatest, e.add(e.get(left), -1)
                e.assign(left, last)
                some = e.compare("icmp sgt", last, e.index(0))
                with e.when(some):
                    heap.sink(heap.load(last), e.index(0), last)
                self._box(one, self.order.index_in(e.binary("xor", best, e.index(-1))), kept)
                more = e.compare("icmp slt", e.get(kept), self.most)
                return e.binary("and", some, more)

            e.repeat(next_box)

    def _candidates(self, one: _Class) -> Variable:
        """Emit the complements of the records of the boxes whose score is admitted; return their number."""
        e = self.e
        count = e.variable(e.index(0))
        with e.loop(e.index(0), self.boxes) as place:
            score = e.load(e.offset(one.scores, place, "float"), _FLOAT)
            number = e.get(count)
            record = self.order.record(self.order.key_of((-Lanes(e, score)).register).register, place)
            e.store(e.binary("xor", record, e.index(-1)), e.offset(self.records, number, "i64"))
            after = e.add(number, 1)
            if self.threshold is not None:
                admitted = e.compare("fcmp oge", score, self.threshold)
                after = e.select(admitted, after, number)
            e.assign(count, after)
        return count

    def _box(self, one: _Class, index: Register, kept: Variable) -> None:
        """Emit the comparison of a box with the selected ones, and its result if it is selected."""
        e = self.e
        edges = self._edges(one, index)
        area = self._product(edges)
        stays = e.variable(e.constant(Kind("i1"), 1))
        before = e.get(kept)
        with e.loop(e.index(0), before, self.spec.lanes) as first:
            overlaps = e.any(self._overlapping(edges, area, first, before))
            e.assign(
                stays, e.binary("and", e.get(stays), e.binary("xor", overlaps, e.constant(overlaps.kind, 1)))
            )
        with e.when(e.get(stays)):
            for field, x in enumerate((*edges, area)):
                e.store(x, e.offset(self._row(field), before, "float"))
            e.assign(kept, e.add(before, 1))
            total = e.get(self.total)
            e.assign(self.total, e.add(total, 1))
            for place, x in enumerate((one.batch, one.number, index)):
                e.store(x, e.offset(self.results, e.add(e.mul(total, _ROW), place), "i64"))

    def _row(self, field: int) -> Register:
        return self.e.offset(self.rows, self.e.mul(self.row_bytes, field))

    def _edges(self, one: _Class, index: Register) -> tuple[Register, ...]:
        """Emit the least and the greatest coordinates of a box."""
        e = self.e
        box = e.offset(one.boxes, e.mul(index, _CORNERS), "float")
        a, b, c, d = (e.load(e.offset(box, e.index(n), "float"), _FLOAT) for n in range(_CORNERS))
        if not self.spec.centred:
            return *(self._both("min", *pair) for pair in ((a, c), (b, d))), *(
                self._both("max", *pair) for pair in ((a, c), (b, d))
            )
        half = e.constant(_FLOAT, 0.5)
        sides = [(centre, e.binary("fmul", side, half)) for centre, side in ((a, c), (b, d))]
        return *(e.binary("fsub", *pair) for pair in sides), *(e.binary("fadd", *pair) for pair in sides)

    def _both(self, op: str, a: Register, b: Register) -> Register:
        return function_of(op, "float")(self.e, (a, b))

    def _product(self, edges: tuple[Register, ...]) -> Register:
        """Emit the area of a box."""
        e, (low, left, high, right) = self.e, edges
        return e.binary("fmul", e.binary("fsub", high, low), e.binary("fsub", right, left))

    def _overlapping(
        self, edges: tuple[Register, ...], area: Register, first: Register, count: Register
    ) -> Register:
        """Emit which of a vector of selected boxes overlap a box too much."""
        e, lanes = self.e, self.spec.lanes
        zero = e.constant(Kind("float", lanes), 0.0)
        low, left, high, right, own = self._selected(first)
        ours = [e.splat(x, lanes) for x in (*edges, area)]
        common = e.binary(
            "fmul",
            self._shared((ours[0], ours[2]), (low, high)),
            self._shared((ours[1], ours[3]), (left, right)),
        )
        union = e.binary("fsub", e.binary("fadd", own, ours[4]), common)
        some = e.binary("and", e.compare("fcmp ogt", common, zero), e.compare("fcmp ogt", union, zero))
        part = e.select(some, e.binary("fdiv", common, union), zero)
        far = e.compare("fcmp ogt", part, e.splat(self.overlap, lanes))
        return e.binary("and", far, lanes_before(e, first, count, lanes))

    def _shared(self, own: tuple[Register, Register], other: tuple[Register, Register]) -> Register:
        """Emit the length that two ranges share, 0 for ranges that are apart."""
        length = self.e.binary(
            "fsub", self._both("min", own[1], other[1]), self._both("max", own[0], other[0])
        )
        return self._both("max", length, self.e.constant(length.kind, 0.0))

    def _selected(self, first: Register) -> Iterator[Register]:
        """Emit the loads of a vector of selected boxes; lanes past the last one are scratch memory."""
        e, kind = self.e, Kind("float", self.spec.lanes)
        return (e.load(e.offset(self._row(n), first, "float"), kind) for n in range(_FIELDS))
