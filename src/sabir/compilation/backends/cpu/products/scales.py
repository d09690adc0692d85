"""The scales and zero points of blockwise quantized weights.

Zero points are subtracted from vectors of packed panels. The sums of the products of a block are multiplied
by its scales, once for each column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.arguments import Arguments
    from sabir.compilation.backends.cpu.emit.emitter import Register, Variable
    from sabir.compilation.backends.cpu.products.spec import Product


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

    def folded(self, rows: Sequence[Sequence[Variable]], totals: Register, first: Register) -> None:
        """Emit the totals of a tile after a block: its sums times the scales, added to those at an address.

        If it is the `first` block, the totals are 0. The sums become the totals; they remain in memory too.
        """
        e, scales = self.e, self._of_block(0)
        size = self.product.nest.lanes * element_bytes(self.product.element)
        slots = [(slot, scale) for row in rows for slot, scale in zip(row, scales, strict=True)]
        for number, (slot, scale) in enumerate(slots):
            place = e.offset(totals, e.index(number * size))
            before = e.select(first, e.constant(slot.kind, 0), e.load(place, slot.kind))
            e.assign(slot, e.fma(e.get(slot), scale, before))
            e.store(e.get(slot), place)
