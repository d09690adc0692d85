"""Windows of integers of 8 bits times the weights of each channel, in int32, all of it exact.

The rows of a window above each other make a column: a group of them is one lane, as in products of integers,
and its products are added up by one instruction. Windows next to each other share columns. The weights lie
`[channels / lanes][sums | taps along the last axis][groups][lanes][group]`, the sums of each channel first.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.emit.emitter import Kind, Register
from sabir.compilation.backends.cpu.emit.terms import GROUPS, Integers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.compilation.backends.cpu.emit.emitter import Emitter, Variable
    from sabir.compilation.backends.cpu.emit.terms import Dot


class Panel(NamedTuple):
    """The weights: where they begin, the bytes of a panel, and both zero points."""

    base: Register
    size: Register
    zero: Register
    less: Register


class ByteWindows:
    """The sums of some windows of `taps`; `strides` are those of their axes in bytes."""

    def __init__(
        self, e: Emitter, dot: Dot, lanes: int, taps: Sequence[int], strides: Sequence[Register],
        step: int,
    ) -> None:  # fmt: skip
        if len(taps) == 1:  # a line: the groups are along it
            taps, strides, step = (*taps, 1), (*strides, e.index(0)), 0
        self._terms, group = Integers(e, dot, lanes), GROUPS[dot]
        self._e, self._group, self._lanes, self._step = e, group, lanes, step
        self._count, self._last = math.prod(taps), taps[-1]
        self._groups = -(-math.prod(taps[:-1]) // group)
        self._rows = list(self._offsets(taps[:-1], strides[:-1]))
        self._stride = strides[-1]

    def _offsets(self, taps: Sequence[int], strides: Sequence[Register]) -> Iterator[Register]:
        """Yield how many bytes each row of a window lies behind the first one."""
        e = self._e
        for place in itertools.product(*map(range, taps)):
            found = e.index(0)
            for index, stride in zip(place, strides, strict=True):
                if index:
                    found = e.add(found, e.mul(stride, index))
            yield found

    def sums(
        self, bases: Sequence[Register], panel: Panel, channel: Register, mask: Register | None
    ) -> list[Variable]:
        """Emit the sums of the windows that begin at `bases`, of the channels from `channel` on."""
        e = self._e
        number = e.binary("udiv", channel, e.index(self._lanes))
        weights = e.offset(panel.base, e.mul(number, panel.size))
        start = self._start(weights, panel)
        less = self._less(panel.less)
        found = [e.variable(start) for _ in bases]
        for group in range(self._groups):
            factors = [self._weights(weights, tap * self._groups + group, less) for tap in range(self._last)]
            for base, readers in self._columns(bases):
                x = self._column(base, group, mask)
                for window, tap in readers:
                    total = found[window]
                    e.assign(total, self._terms.add(x, factors[tap], e.get(total)))
        return found

    def _start(self, weights: Register, panel: Panel) -> Register:
        """Return where sums begin: the sums of the weights times what windows lack to their numbers."""
        e, lanes = self._e, self._lanes
        sums = e.load(weights, Kind("i32", lanes), align=4)
        zero, less = (e.convert("trunc", x, "i32") for x in (panel.zero, panel.less))
        all_less = e.binary("mul", less, e.constant(less.kind, self._count))
        sums = e.binary("sub", sums, e.splat(all_less, lanes))
        times = e.binary("sub", e.constant(zero.kind, self._terms.taken), zero)
        return e.binary("mul", sums, e.splat(times, lanes))

    def _less(self, less: Register) -> Register | None:
        """Return what is subtracted from weights of 16 bits; bytes have no room for it."""
        if self._group != 2:  # ruff: ignore[magic-value-comparison]  pairs
            return None
        return self._e.splat(self._e.convert("trunc", less, "i16"), self._lanes * self._group)

    def _weights(self, base: Register, number: int, less: Register | None) -> Register:
        """Return the weights of a group in all channels."""
        e = self._e
        place = self._lanes * (4 + number * self._group)
        x = self._terms.column(e.offset(base, e.index(place)))
        return x if less is None else e.binary("sub", x, less)

    def _columns(self, bases: Sequence[Register]) -> Iterator[tuple[Register, list[tuple[int, int]]]]:
        """Yield where columns begin, and the windows that read them, with the number of the tap in each."""
        e = self._e
        if not self._step:
            for (window, base), tap in itertools.product(enumerate(bases), range(self._last)):
                yield e.offset(base, e.mul(self._stride, tap)), [(window, tap)]
            return
        readers: dict[int, list[tuple[int, int]]] = {}
        for window, tap in itertools.product(range(len(bases)), range(self._last)):
            readers.setdefault(window * self._step + tap, []).append((window, tap))
        for place, found in sorted(readers.items()):
            yield e.offset(bases[0], e.mul(self._stride, place)), found

    def _column(self, base: Register, group: int, mask: Register | None) -> Register:
        """Return the rows of a group above each other, 0 where there are none, in all channels."""
        e, bits = self._e, 32 // self._group
        found: Register | None = None
        for place, row in enumerate(self._rows[group * self._group : (group + 1) * self._group]):
            x = e.convert("zext", e.load(e.offset(base, row), Kind("i8", self._lanes), mask), "i32")
            x = x if not place else e.binary("shl", x, e.constant(x.kind, place * bits))
            found = x if found is None else e.binary("or", found, x)
        if found is None:
            raise AssertionError("a group has rows")
        return self._terms.groups(found)
