"""The scales and zero points of blockwise quantized weights.

Zero points are subtracted from vectors of packed panels. The sums of the products of a block are multiplied
by its scales, once for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.compilation.backends.cpu.products.spec import INTEGER_BITS
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.arguments import Arguments
    from sabir.compilation.backends.cpu.emit.emitter import Register, Variable
    from sabir.compilation.backends.cpu.products.spec import Product


class _OfRow(NamedTuple):
    """The scale of a block of a row, its sum, and that times the middle of the integers, if they have one."""

    scale: Register
    total: Register
    shift: Register | None


class Parameters:
    """Panels of scales and zero points, `[panel][block][width]`, as a product reads them."""

    def __init__(self, product: Product, arguments: Arguments) -> None:
        self.e, self.product = arguments.e, product
        groups = [(arguments.group(name), element) for name, element in product.parameters.items()]
        self.sources = [
            (panels.pointer("tensor"), panels.number("bytes"), element) for panels, element in groups
        ]
        self.bases: list[list[Register]] = []
        self.zeros: list[list[Register]] = []
        self.block = self.e.index(0)
        of_rows = [arguments.group(name) for name in ("row_scale", "row_sum")] if product.rounded else []
        self.of_rows = [(x.pointer("tensor"), x.number("row"), x.number("block")) for x in of_rows]
        self.rows: list[list[Register]] = []

    def begin(self, panel: Register) -> None:
        """Emit the addresses of the panels of scales and zero points of a tile, from `panel` on."""
        e, count = self.e, self.product.panels
        self.bases = [
            [e.offset(start, e.mul(e.add(panel, p), size)) for p in range(count)]
            for start, size, _ in self.sources
        ]

    def load(self, block: Register) -> None:
        """Emit the loads of the zero points of a block; `folded` loads its scales."""
        self.block = block
        self.zeros = [self._of_block(number) for number in range(1, len(self.sources))]

    def _of_block(self, number: int) -> list[Register]:
        _, _, element = self.sources[number]
        return [x for base in self.bases[number] for x in self._line(base, self.block, element)]

    def _line(self, base: Register, block: Register, element: str) -> list[Register]:
        e, product = self.e, self.product
        lanes, size = product.nest.lanes, element_bytes(element)
        stored = element if element.startswith(("float", "bfloat")) else "int8"  # as packed
        line = e.offset(base, e.mul(block, product.width * size))
        found = [
            e.load(e.offset(line, e.index(v * lanes * size)), kind_of(stored, lanes), align=lanes * size)
            for v in range(product.vectors)
        ]
        return [x if stored == product.element else cast(e, x, stored, product.element) for x in found]

    def centred(self, columns: Sequence[Register]) -> list[Register]:
        """Emit `columns - zero points` for the vectors of all panels."""
        if not self.zeros:
            return list(columns)
        return [self.e.binary("fsub", x, y) for x, y in zip(columns, self.zeros[0], strict=True)]

    def begin_rows(self, places: Sequence[Register]) -> None:
        """Emit the addresses of the scales and sums of the rows of a tile, if their blocks have any."""
        e = self.e
        self.rows = [
            [e.offset(start, e.mul(place, step)) for start, step, _ in self.of_rows] for place in places
        ]

    def folded(self, rows: Sequence[Sequence[Variable]], totals: Register, first: Register) -> None:
        """Emit the totals of a tile after a block: its sums times the scales, added to those at an address.

        If it is the `first` block, the totals are 0. Sums of floats become the totals, which stay in memory.
        """
        e, scales = self.e, self._of_block(0)
        size = self.product.nest.lanes * element_bytes(self.product.element)
        for m, row in enumerate(rows):
            of_row = self._of_row(m) if self.product.rounded else None
            for v, (slot, scale) in enumerate(zip(row, scales, strict=True)):
                place = e.offset(totals, e.index((m * len(row) + v) * size))
                x, factor = e.get(slot), scale
                if of_row is not None:
                    x, factor = self._centred_sum(x, v, of_row), e.binary("fmul", scale, of_row.scale)
                before = e.select(first, e.constant(factor.kind, 0), e.load(place, factor.kind))
                total = e.fma(x, factor, before)
                if of_row is None:
                    e.assign(slot, total)
                e.store(total, place)

    def _of_row(self, number: int) -> _OfRow:
        """Emit what a block of row `number` of the tile has, in all lanes."""
        e, lanes = self.e, self.product.nest.lanes
        scale, total = (
            e.splat(e.load(e.offset(base, e.mul(self.block, step)), kind_of("float")), lanes)
            for base, (_, _, step) in zip(self.rows[number], self.of_rows, strict=True)
        )
        middle = 1 << (INTEGER_BITS[self.product.narrow] - 1)
        shift = e.binary("fmul", total, e.constant(total.kind, middle)) if self.product.centred else None
        return _OfRow(scale, total, shift)

    def _centred_sum(self, x: Register, vector: int, row: _OfRow) -> Register:
        """Emit the sum of a block as floats, minus the zero points times the sum of the row."""
        e = self.e
        x = e.convert("sitofp", x, "float") if self.product.dotted else x
        x = e.binary("fsub", x, row.shift) if row.shift is not None else x
        if not self.zeros:
            return x
        return e.binary("fsub", x, e.binary("fmul", self.zeros[0][vector], row.total))

    def totals(self, rows: Sequence[Sequence[Variable]], address: Register) -> Sequence[Sequence[Variable]]:
        """Return the totals of all blocks: the sums themselves, or those at an address."""
        if not self.product.rounded:
            return rows
        e, kind = self.e, kind_of("float", self.product.nest.lanes)
        size = kind.lanes * element_bytes("float")
        return [
            [
                e.variable(e.load(e.offset(address, e.index((m * len(row) + v) * size)), kind))
                for v in range(len(row))
            ]
            for m, row in enumerate(rows)
        ]
