"""Scatter: stores of updates at indices along an axis, in the order of the updates along that axis.

The other axes are independent: a job computes one row of updates, or a strip of neighbouring rows in vectors.
So two threads never write the same element, and several updates of an element are applied in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.kernel import along
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point
from sabir.compilation.backends.cpu.emit.emitter import BOOL, Emitter
from sabir.compilation.backends.cpu.emit.jobs import at, jobs, strips
from sabir.compilation.backends.cpu.emit.nest import TakeStep
from sabir.compilation.plan.signature import KernelSignature, declared

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.backends.cpu.emit.emitter import Register
    from sabir.compilation.backends.cpu.emit.nest import Nest

_COLUMNS = 1024  # columns of a strip
_CHECK = KernelSignature(updates="size", size="size")


@dataclass(frozen=True, slots=True)
class Scattering:
    """A nest over updates; it stores to the access whose address a TakeStep computes from the indices.

    The reduced axis is the axis of the updates. There are `checks` checks that a number of updates does not
    exceed a size; if one fails, the run has an error, and nothing is written.
    """

    nest: Nest
    checks: int

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the arguments of the nest, and the number of updates and the size of each check."""
        return declared(nest=self.nest.signature, **dict.fromkeys(self.check_names, _CHECK))

    @property
    def check_names(self) -> list[str]:
        """The names of the checks among the arguments."""
        return [f"check{number}" for number in range(self.checks)]

    def __str__(self) -> str:
        return f"scatter with {self.checks} checks\n{self.nest}"


def scattering_text(scattering: Scattering) -> str:
    """Return the LLVM module of a scattering."""
    return _ScatterEmitter(scattering).text()


class _ScatterEmitter:
    def __init__(self, scattering: Scattering) -> None:
        self.spec, self.e = scattering, Emitter()
        nest = self.nest = scattering.nest
        self.arguments = Arguments(self.e, scattering.signature)
        self.body = Body(nest, self.arguments.group("nest"))
        ((self.target, self.new),) = nest.stores
        ((self.old, self.take),) = [
            (n, s) for n, s in enumerate(nest.steps) if isinstance(s, TakeStep) and s.access == self.target
        ]
        self.along = [axis for axis in range(nest.axes) if nest.reduced[axis]]
        self.kept = [axis for axis in range(nest.axes) if not nest.reduced[axis]]

    def text(self) -> str:
        e, fits = self.e, self.e.constant(BOOL, 1)
        for check in map(self.arguments.group, self.spec.check_names):
            updates, size = check.number("updates"), check.number("size")
            fits = e.binary("and", fits, e.compare("icmp sle", updates, size))
        self.body.fail_where(e.binary("xor", fits, e.constant(BOOL, 1)))
        with e.when(fits):
            self._all()
        return e.text()

    def _all(self) -> None:
        body, inner = self.body, self.nest.inner
        if body.column:
            outer = [axis for axis in self.kept if axis != inner]
            with strips(body, outer, _COLUMNS) as (indices, start, stop):
                self._updates(indices, lambda row: along(body, row, start, stop, self._update))
            return
        with jobs(body, self.kept) as (indices, _):
            self._updates(indices, self._update)

    def _updates(self, indices: list[Register], each: Callable[[Point], None]) -> None:
        """Emit the loop along the reduced axis, if there is one; `each` emits its body."""
        if not self.along:
            each(Point(indices))
            return
        (axis,) = self.along
        with self.e.loop(self.e.index(0), self.body.sizes[axis]) as place:
            each(Point(at(indices, axis, place)))

    def _update(self, point: Point) -> None:
        e = self.e
        offsets, inside = self.body.displaced(self.old, self.take, point)
        self.body.check(inside, point)
        if inside.kind.lanes == 1:
            with e.when(inside):
                self._write(point, offsets)
            return
        mask = inside if point.mask is None else e.binary("and", inside, point.mask)
        self._write(Point(point.indices, point.lanes, mask, outer=point), offsets)

    def _write(self, point: Point, offsets: Register) -> None:
        if self.new > self.old:  # the stored value depends on the old one
            point.values[self.old] = self.body.read_at(self.target, offsets, point)
        self.body.write_at(self.target, self.body.value(self.new, point), offsets, point)
