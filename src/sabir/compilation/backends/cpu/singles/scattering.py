"""Updates written at indices along an axis, each after those before it along that axis.

The other axes are independent: a job has a row of updates, or a strip of rows side by side. So two threads
never write to one element, and of several updates of one element the order is that of their index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.elementwise.kernel import along
from sabir.compilation.backends.cpu.emit.body import Body, Point
from sabir.compilation.backends.cpu.emit.emitter import BOOL, Emitter
from sabir.compilation.backends.cpu.emit.jobs import at, jobs, strips
from sabir.compilation.backends.cpu.emit.nest import TakeStep

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.backends.cpu.emit.emitter import Register
    from sabir.compilation.backends.cpu.emit.nest import Nest

_COLUMNS = 1024  # side by side that one job updates at most


@dataclass(frozen=True, slots=True)
class Scattering:
    """A nest over updates: its store goes to the access that a Take moves by indices along the reduced axis.

    The arguments after those of the nest are `checks` pairs, a number of updates and the size that must be as
    large: else the run has an error, and nothing is written.
    """

    nest: Nest
    checks: int

    def __str__(self) -> str:
        return f"scatter with {self.checks} checks\n{self.nest}"


def scattering_text(scattering: Scattering) -> str:
    """Return the LLVM module of a scattering; its arguments are those of the nest."""
    return _ScatterEmitter(scattering).text()


class _ScatterEmitter:
    def __init__(self, scattering: Scattering) -> None:
        self.spec, self.e = scattering, Emitter()
        nest = self.nest = scattering.nest
        self.body = Body(self.e, nest)
        ((self.target, self.new),) = nest.stores
        ((self.old, self.take),) = [
            (n, s) for n, s in enumerate(nest.steps) if isinstance(s, TakeStep) and s.access == self.target
        ]
        self.along = [axis for axis in range(nest.axes) if nest.reduced[axis]]
        self.kept = [axis for axis in range(nest.axes) if not nest.reduced[axis]]

    def text(self) -> str:
        e, place = self.e, self.body.layout.end
        fits = e.constant(BOOL, 1)
        for first in range(place, place + 2 * self.spec.checks, 2):
            fits = e.binary("and", fits, e.compare("icmp sle", e.argument(first), e.argument(first + 1)))
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
        """Emit the loop along the axis of the indices, where it has more than one."""
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
        if self.new > self.old:  # it combines both
            point.values[self.old] = self.body.read_at(self.target, offsets, point)
        self.body.write_at(self.target, self.body.value(self.new, point), offsets, point)
