"""Steps that update matrices: each adds the outer product of a key and a value; queries read the results.

A job computes all steps for a few columns of one matrix, which depend on no other columns. They are in
scratch memory, which stays in the cache. A product with the matrix has one accumulator for each vector of
columns, and adds the rows in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.emitter import Emitter, Register
from sabir.compilation.backends.cpu.emit.jobs import digits, lanes_before, product_of
from sabir.compilation.plan.signature import SCRATCH_MEMORY, KernelSignature, declared, of_kind
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Variable

SIZES = ("batch", "heads", "steps", "queries", "keys", "columns")  # queries: their number in each step


def _operand(strides: int) -> KernelSignature:
    return declared(tensor="tensor", strides=("stride", strides))


@dataclass(frozen=True, slots=True)
class MatrixRecurrence:
    """The specification of a kernel that updates matrices [batch, heads, keys, columns].

    A job has `vectors` vectors of columns. `decays`: each step first multiplies the rows by factors.
    `corrects`: instead of the value, each step adds `(value - key @ matrix) * rate` times the key.
    """

    element: str
    lanes: int
    vectors: int
    decays: bool
    corrects: bool

    @property
    def signature(self) -> KernelSignature:
        """The arguments; the result is [batch, heads, steps * queries + keys, columns], row-major.

        Queries have strides along the axes (batch, heads, steps, queries, keys), keys and decays along
        (batch, heads, steps, keys), values and rates along (batch, heads, steps), the first matrices along
        (batch, heads, keys). The columns of values and matrices have stride 1.
        """
        operands = {name: _operand(strides) for name, strides in self.operands.items()}
        return declared(**of_kind("size", SIZES), result="tensor", **operands, scratch=SCRATCH_MEMORY)

    @property
    def operands(self) -> dict[str, int]:
        """The names of the operands, and the number of strides of each."""
        found = {"queries_read": 5, "keys_read": 4, "values": 3, "first": 3}
        found |= {"decay": 4} if self.decays else {}
        return found | ({"rate": 3} if self.corrects else {})

    def __str__(self) -> str:
        options = f"{' decays' if self.decays else ''}{' corrects' if self.corrects else ''}"
        return f"steps of matrices {self.element} {self.vectors} x {self.lanes} columns{options}"


def matrix_recurrence_text(spec: MatrixRecurrence) -> str:
    """Return the LLVM module of a kernel that updates matrices."""
    return _MatrixStepsEmitter(spec).text()


class _Operand(NamedTuple):
    start: Register
    strides: list[Register]


class _MatrixStepsEmitter:
    def __init__(self, spec: MatrixRecurrence) -> None:
        self.spec, self.e = spec, Emitter()
        self.arguments = Arguments(self.e, spec.signature)
        sizes = [self.arguments.number(name) for name in SIZES]
        self.batch, self.heads, self.steps, self.queries, self.keys, self.columns = sizes
        self.target = self.arguments.pointer("result")
        self.q, self.k, self.v = map(self._operand, ("queries_read", "keys_read", "values"))
        self.first = self._operand("first")
        self.decay = self._operand("decay") if spec.decays else None
        self.rate = self._operand("rate") if spec.corrects else None
        self.state = self.arguments.own_scratch()
        self.bytes = element_bytes(spec.element)
        self.vector, self.number = kind_of(spec.element, spec.lanes), kind_of(spec.element)
        self.masks: list[Register] = []

    def _operand(self, name: str) -> _Operand:
        operand = self.arguments.group(name)
        return _Operand(operand.pointer("tensor"), operand.numbers("strides"))

    def text(self) -> str:
        """Return the module: each job computes all steps for some columns of a matrix."""
        e, width = self.e, self.spec.vectors * self.spec.lanes
        blocks = e.binary("udiv", e.add(self.columns, width - 1), e.index(width))
        sizes = [self.batch, self.heads, blocks]
        low, high = e.share(product_of(e, sizes))
        with e.loop(low, high) as job:
            item, head, block = digits(e, job, sizes)
            self._job(item, head, e.mul(block, width))
        return e.text()

    def _job(self, item: Register, head: Register, column: Register) -> None:
        e, lanes = self.e, self.spec.lanes
        firsts = [e.add(column, v * lanes) for v in range(self.spec.vectors)]
        self.masks = [lanes_before(e, first, self.columns, lanes) for first in firsts]
        line = e.mul(self.columns, self.bytes)
        rows = e.add(e.mul(self.steps, self.queries), self.keys)
        number = e.add(e.mul(item, self.heads), head)
        target = e.offset(self.target, e.mul(e.mul(number, rows), line))
        target = e.offset(target, e.mul(column, self.bytes))
        before = self._at(self.first, item, head, None, column)
        with e.loop(e.index(0), self.keys) as row:
            self._keep(row, self._loaded(e.offset(before, e.mul(row, self.first.strides[2]))))
        with e.loop(e.index(0), self.steps) as step:
            self._step(item, head, step, column)
            q = self._at(self.q, item, head, step)
            with e.loop(e.index(0), self.queries) as query:
                read = self._product(e.offset(q, e.mul(query, self.q.strides[3])), self.q.strides[4])
                place = e.add(e.mul(step, self.queries), query)
                self._stored(read, e.offset(target, e.mul(place, line)))
        last = e.offset(target, e.mul(e.mul(self.steps, self.queries), line))
        with e.loop(e.index(0), self.keys) as row:
            self._stored(self._kept(row), e.offset(last, e.mul(row, line)))

    def _step(self, item: Register, head: Register, step: Register, column: Register) -> None:
        """Emit the update of the columns of the matrix in one step."""
        e, key = self.e, self._at(self.k, item, head, step)
        value = self._at(self.v, item, head, step, column)
        if self.decay is not None:
            decay = self._at(self.decay, item, head, step)
            with e.loop(e.index(0), self.keys) as row:
                factor = self._spread(e.offset(decay, e.mul(row, self.decay.strides[3])))
                self._keep(row, [e.binary("fmul", x, factor) for x in self._kept(row)])
        new = self._loaded(value)
        if self.rate is not None:
            rate = self._spread(self._at(self.rate, item, head, step))
            read = self._product(key, self.k.strides[3])
            new = [e.binary("fmul", e.binary("fsub", x, y), rate) for x, y in zip(new, read, strict=True)]
        with e.loop(e.index(0), self.keys) as row:
            factor = self._spread(e.offset(key, e.mul(row, self.k.strides[3])))
            self._keep(row, [e.fma(factor, x, y) for x, y in zip(new, self._kept(row), strict=True)])

    def _product(self, row: Register, stride: Register) -> list[Register]:
        """Emit the product of a row, whose elements are `stride` bytes apart, with the matrix."""
        e = self.e
        sums: list[Variable] = [e.variable(e.constant(self.vector, 0)) for _ in range(self.spec.vectors)]
        with e.loop(e.index(0), self.keys) as place:
            factor = self._spread(e.offset(row, e.mul(place, stride)))
            for total, x in zip(sums, self._kept(place), strict=True):
                e.assign(total, e.fma(factor, x, e.get(total)))
        return [e.get(total) for total in sums]

    # ------------------------------------------------------------ memory

    def _at(
        self, operand: _Operand, item: Register, head: Register, step: Register | None,
        column: Register | None = None,
    ) -> Register:  # fmt: skip
        """Emit the address of an operand for a batch item and head.

        `step` is None for an operand without that axis; `column` None is the beginning of the row.
        """
        e, found = self.e, operand.start
        for place, stride in zip((item, head, step), operand.strides, strict=False):
            if place is not None:
                found = e.offset(found, e.mul(place, stride))
        return found if column is None else e.offset(found, e.mul(column, self.bytes))

    def _spread(self, address: Register) -> Register:
        return self.e.splat(self.e.load(address, self.number, align=self.bytes), self.spec.lanes)

    def _loaded(self, address: Register) -> list[Register]:
        return [
            self.e.load(here, self.vector, mask, align=self.bytes)
            for here, mask in zip(self._lines(address), self.masks, strict=True)
        ]

    def _stored(self, vectors: Sequence[Register], address: Register) -> None:
        for x, here, mask in zip(vectors, self._lines(address), self.masks, strict=True):
            self.e.store(x, here, mask, align=self.bytes)

    def _kept(self, row: Register) -> list[Register]:
        """Emit the loads of a row of the matrix from scratch memory."""
        return [self.e.load(here, self.vector, align=self.bytes) for here in self._lines(self._waiting(row))]

    def _keep(self, row: Register, vectors: Sequence[Register]) -> None:
        for x, here in zip(vectors, self._lines(self._waiting(row)), strict=True):
            self.e.store(x, here, align=self.bytes)

    def _waiting(self, row: Register) -> Register:
        size = self.spec.vectors * self.spec.lanes * self.bytes
        return self.e.offset(self.state, self.e.mul(row, size))

    def _lines(self, address: Register) -> list[Register]:
        size = self.spec.lanes * self.bytes
        return [self.e.offset(address, self.e.index(v * size)) for v in range(self.spec.vectors)]
