"""Pairwise coupling: the class probabilities of a row from those of pairs of classes, by iteration.

Each lane computes a different row. The iteration ends when all rows of a vector have converged. A row that
has converged earlier does not change any more, so its bits do not depend on its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Kind, Register
from sabir.compilation.backends.cpu.emit.jobs import at, mask_of
from sabir.compilation.backends.cpu.emit.lanes import Lanes, where
from sabir.compilation.plan.signature import KernelSignature, declared

if TYPE_CHECKING:
    from sabir.compilation.backends.cpu.emit.nest import Nest

_WIDTH = 8  # bytes of a double


@dataclass(frozen=True, slots=True)
class Coupling:
    """The class probabilities from the probabilities of pairs that a nest computes along its reduced axis.

    A row has converged when its residual is below `tolerance / classes`; there are at most `iterations`
    iterations.
    """

    nest: Nest
    iterations: int
    tolerance: float

    @property
    def signature(self) -> KernelSignature:
        """The arguments: the arguments of the nest, and the number of classes."""
        return declared(nest=self.nest.signature, classes="size")

    def __str__(self) -> str:
        return f"coupling {self.iterations} times to {self.tolerance}\n{self.nest}"


def coupled_vectors(classes: int) -> int:
    """Return the number of vectors of doubles in the scratch memory of a thread."""
    return classes * (classes + 2)


def coupling_text(coupling: Coupling) -> str:
    """Return the LLVM module of a coupling."""
    return _CouplingEmitter(coupling).text()


class _CouplingEmitter:
    def __init__(self, coupling: Coupling) -> None:
        self.spec, self.e = coupling, Emitter()
        e, nest = self.e, coupling.nest
        arguments = Arguments(e, coupling.signature)
        self.body = Body(nest, arguments.group("nest"))
        ((self.target, self.step),) = nest.stores
        self.along = nest.reduced.index(True)
        self.kind = Kind("double", nest.lanes if nest.axes > 1 else 1)
        self.classes = arguments.number("classes")
        self.pairs = e.binary("udiv", self.body.sizes[self.along], e.index(2))
        self.number = Lanes(e, e.value(Kind("double"), f"sitofp {self.classes} to double"))
        self.products = self.body.own_scratch()
        line = e.mul(self.classes, self.kind.lanes * _WIDTH)
        self.shares = e.offset(self.products, e.mul(self.classes, line))
        self.rests = e.offset(self.shares, line)

    def text(self) -> str:
        e, body, lanes = self.e, self.body, self.kind.lanes
        start = [e.index(0)] * body.nest.axes
        if len(start) == 1:
            with e.when(e.compare("icmp eq", Register("%share", INDEX), e.index(0))):
                self._rows(Point(start))
            return e.text()
        size = body.sizes[body.nest.inner]
        low, high = e.share(e.binary("udiv", e.add(size, lanes - 1), e.index(lanes)))
        with e.loop(low, high) as block:
            place = e.mul(block, lanes)
            self._rows(Point(at(start, body.nest.inner, place), lanes, mask_of(body, place, size)))
        return e.text()

    def _rows(self, point: Point) -> None:
        self._begin(point)
        e = self.e
        turns = e.variable(e.index(0))

        def turn() -> Register:
            far, total = self._residual()
            some, again = e.any(far.register), e.add(e.get(turns), 1)
            e.assign(turns, again)
            with e.when(some):
                self._improve(far, total)
            return e.binary("and", some, e.compare("icmp slt", again, e.index(self.spec.iterations)))

        e.repeat(turn)
        with e.loop(e.index(0), self.classes) as t:
            self.body.write(self.target, self._load(self.shares, t).register, self._at(point, t))

    # ------------------------------------------------------------ memory

    def _at(self, point: Point, place: Register) -> Point:
        return Point(at(point.indices, self.along, place), point.lanes, point.mask)

    def _address(self, base: Register, place: Register) -> Register:
        return self.e.offset(base, self.e.mul(place, self.kind.lanes * _WIDTH))

    def _load(self, base: Register, place: Register) -> Lanes:
        return Lanes(self.e, self.e.load(self._address(base, place), self.kind))

    def _store(self, x: Lanes, base: Register, place: Register) -> None:
        self.e.store(x.register, self._address(base, place))

    def _product(self, i: Register, j: Register) -> Register:
        """Emit the index of entry (i, j) of the matrix of products."""
        return self.e.add(self.e.mul(i, self.classes), j)

    def _splat(self, x: Lanes | float) -> Lanes:
        if isinstance(x, Lanes):
            return Lanes(self.e, self.e.splat(x.register, self.kind.lanes))
        return Lanes(self.e, self.e.constant(self.kind, x))

    # ------------------------------------------------------------ steps

    def _begin(self, point: Point) -> None:
        """Emit equal shares, and the products: -r(i, j) * r(j, i), on the diagonal the sum of r(j, i)**2."""
        e, zero = self.e, self.e.index(0)
        with e.loop(zero, self.classes) as t:
            self._store(self._splat(0.0), self.products, self._product(t, t))
            self._store(self._splat(1.0 / self.number), self.shares, t)
        pair = e.variable(zero)
        with e.loop(zero, self.classes) as i, e.loop(e.add(i, 1), self.classes) as j:
            place = e.get(pair)
            e.assign(pair, e.add(place, 1))
            first = Lanes(e, self.body.wide(self.step, self._at(point, place)))
            other = Lanes(e, self.body.wide(self.step, self._at(point, e.add(place, self.pairs))))
            both = -(first * other)
            for row, column in ((i, j), (j, i)):
                self._store(both, self.products, self._product(row, column))
            for own, x in ((i, other), (j, first)):
                at_own = self._product(own, own)
                self._store(self._load(self.products, at_own) + x * x, self.products, at_own)

    def _residual(self) -> tuple[Lanes, Lanes]:
        """Emit `rests = products @ shares`; return which rows have not converged, and `shares @ rests`."""
        e, zero = self.e, self.e.index(0)
        total = e.variable(self._splat(0.0).register)
        with e.loop(zero, self.classes) as t:
            rest = e.variable(self._splat(0.0).register)
            with e.loop(zero, self.classes) as j:
                more = self._load(self.products, self._product(t, j)) * self._load(self.shares, j)
                e.assign(rest, (Lanes(e, e.get(rest)) + more).register)
            found = Lanes(e, e.get(rest))
            self._store(found, self.rests, t)
            e.assign(total, (Lanes(e, e.get(total)) + self._load(self.shares, t) * found).register)
        whole, worst = Lanes(e, e.get(total)), e.variable(self._splat(0.0).register)
        with e.loop(zero, self.classes) as t:
            away, most = abs(self._load(self.rests, t) - whole), Lanes(e, e.get(worst))
            e.assign(worst, where(away > most, away, most).register)
        return Lanes(e, e.get(worst)) >= self._splat(self.spec.tolerance / self.number), whole

    def _improve(self, far: Lanes, total: Lanes) -> None:
        """Emit an update of the share of each class; rows that have converged do not change."""
        e, zero = self.e, self.e.index(0)
        whole = e.variable(total.register)
        with e.loop(zero, self.classes) as t:
            own, rest = self._load(self.products, self._product(t, t)), self._load(self.rests, t)
            now = Lanes(e, e.get(whole))
            step = where(far, (now - rest) / own, 0.0)
            inverse = 1.0 / (step + 1.0)
            after = (now + step * (step * own + rest * 2.0)) * inverse * inverse
            e.assign(whole, after.register)
            self._store(self._load(self.shares, t) + step, self.shares, t)
            with e.loop(zero, self.classes) as j:
                moved = self._load(self.rests, j) + step * self._load(self.products, self._product(t, j))
                self._store(moved * inverse, self.rests, j)
                self._store(self._load(self.shares, j) * inverse, self.shares, j)
