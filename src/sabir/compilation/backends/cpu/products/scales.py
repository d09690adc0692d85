"""The scales and zero points of blockwise quantized weights, applied to vectors of packed panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.body import kind_of
from sabir.compilation.backends.cpu.emit.casts import cast
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.arguments import Arguments
    from sabir.compilation.backends.cpu.emit.emitter import Register
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
        self.values: list[list[Register]] = []

    def begin(self, panel: Register) -> None:
        """Emit the addresses of the panels of scales and zero points of a tile, from `panel` on."""
        e, count = self.e, self.product.panels
        self.bases = [
            [e.offset(start, e.mul(e.add(panel, p), size)) for p in range(count)]
            for start, size, _ in self.sources
        ]

    def load(self, block: Register) -> None:
        """Emit the loads of the scales and zero points of a block."""
        self.values = [
            [x for base in bases for x in self._line(base, block, element)]
            for bases, (_, _, element) in zip(self.bases, self.sources, strict=True)
        ]

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

    def applied(self, columns: Sequence[Register]) -> list[Register]:
        """Emit `(columns - zero points) * scales` for the vectors of all panels."""
        e, (scales, *less) = self.e, self.values
        low = [e.binary("fsub", x, y) for x, y in zip(columns, less[0], strict=True)] if less else columns
        return [e.binary("fmul", x, y) for x, y in zip(low, scales, strict=True)]
