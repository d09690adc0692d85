"""Packing: the second operand of a product, copied into panels in the order in which a product reads it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from sabir.compilation.kernels._body import element_bytes, kind_of, pointer_at
from sabir.compilation.kernels._emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.kernels._jobs import lanes_before, product_of


@dataclass(frozen=True, slots=True)
class Packing:
    """The copy of matrices `[batch..., k..., n]` into panels; with `next_column` columns lie side by side.

    `depth_axes` are the axes of `k`.
    """

    element: str
    batch: int
    width: int
    lanes: int
    next_column: bool
    depth_axes: int = 1

    def __str__(self) -> str:
        order = "rows" if self.next_column else "columns"
        depth = f" depth {self.depth_axes}" if self.depth_axes > 1 else ""
        panels = f"width {self.width} lanes {self.lanes} batch {self.batch}{depth}"
        return f"pack {self.element} {panels} from {order}"


def packing_text(packing: Packing) -> str:
    """Return the LLVM module of a packing kernel.

    Arguments: the sizes of the batch axes, of `k`, `n`; source buffer and offset, its strides in bytes along
    the batch axes, `k` and `n`; target buffer and offset, the bytes of a batch item of the target.
    """
    return _PackingEmission(packing).text()


class _PackingEmission:
    def __init__(self, packing: Packing) -> None:
        self.packing, self.e = packing, Emitter()
        e, count, depth = self.e, packing.batch, packing.depth_axes
        self.sizes = [e.argument(axis) for axis in range(count)]
        self.depths = [e.argument(count + axis) for axis in range(depth)]
        self.columns = e.argument(count + depth)
        self.source = pointer_at(e, count + depth + 1)
        place = count + depth + 3
        self.strides = [e.argument(place + axis) for axis in range(count)]
        self.down = [e.argument(place + count + axis) for axis in range(depth)]
        self.across = e.argument(place + count + depth)
        self.target = pointer_at(e, place + count + depth + 1)
        self.item = e.argument(place + count + depth + 3)
        self.depth = product_of(e, self.depths)
        self.element_bytes = element_bytes(packing.element)

    def text(self) -> str:
        """Return the module: every job packs one panel."""
        e, width = self.e, self.packing.width
        panels = e.binary("udiv", e.add(self.columns, width - 1), e.index(width))
        jobs = panels
        for count in self.sizes:
            jobs = e.mul(jobs, count)
        low, high = e.share(jobs)
        with e.loop(low, high) as job:
            panel, batch = e.binary("urem", job, panels), e.binary("udiv", job, panels)
            to = e.offset(self.target, e.mul(batch, self.item))
            to = e.offset(to, e.mul(e.mul(panel, width * self.element_bytes), self.depth))
            self._panel(self._matrix(batch), e.mul(panel, width), to)
        return e.text()

    def _matrix(self, batch: Register) -> Register:
        """Return where the matrix of one item of the batch begins."""
        e, base = self.e, self.source
        for count, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            base = e.offset(base, e.mul(e.binary("urem", batch, count), stride))
            batch = e.binary("udiv", batch, count)
        return base

    def _panel(self, matrix: Register, column: Register, to: Register) -> None:
        e, packing = self.e, self.packing
        with contextlib.ExitStack() as loops:
            row, k = matrix, e.index(0)
            for number, (size, stride) in enumerate(zip(self.depths, self.down, strict=True)):
                place = loops.enter_context(e.loop(e.index(0), size))
                row = e.offset(row, e.mul(place, stride))
                k = e.add(e.mul(k, size), place) if number else place
            line = e.offset(to, e.mul(k, packing.width * self.element_bytes))
            for v in range(0, packing.width, packing.lanes):
                x = self._vector(row, e.add(column, v))
                e.store(x, e.offset(line, e.index(v * self.element_bytes)), align=64)

    def _vector(self, row: Register, column: Register) -> Register:
        """Return some columns of a row; those past the end are 0."""
        e, lanes = self.e, self.packing.lanes
        kind = kind_of(self.packing.element, lanes)
        mask = lanes_before(e, column, self.columns, lanes)
        start = e.offset(row, e.mul(column, self.across))
        if self.packing.next_column:
            return e.load(start, kind, mask)
        steps = Register(f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", INDEX._replace(lanes=lanes))
        offsets = e.binary("mul", e.splat(self.across, lanes), steps)
        return e.gather(e.value(Kind("ptr", lanes), f"getelementptr i8, {start}, {offsets}"), kind, mask)
