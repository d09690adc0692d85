"""Depthwise convolutions of 8-bit integers with exact int32 accumulators; vector lanes are channels.

The elements of a window with the same index along its last axis are a column. A lane packs `group` elements
of a column into 32 bits; one instruction multiplies them by weights and adds the products to the accumulator,
as in integer products. Neighbouring windows share columns. A panel of weights is, for `lanes` channels, their
sums as int32, `[lanes]`, and then the weights, `[taps along the last axis][groups][lanes][group]`.
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
    """The panels of weights: the address, the bytes of a panel, and the zero points.

    `zero` is subtracted from the operand, `weights_zero` from the packed weights.
    """

    base: Register
    size: Register
    zero: Register
    weights_zero: Register


class ByteWindows:
    """Emits the sums of several windows of shape `taps`; `strides` are the strides of the taps in bytes.

    Neighbouring windows are `step` elements apart along the last axis of a window; 0 if unknown.
    """

    def __init__(
        self, e: Emitter, dot: Dot, lanes: int, taps: Sequence[int], strides: Sequence[Register],
        step: int,
    ) -> None:  # fmt: skip
        if len(taps) == 1:  # a one-dimensional window is one column
            taps, strides, step = (*taps, 1), (*strides, e.index(0)), 0
        self._terms, group = Integers(e, dot, lanes), GROUPS[dot]
        self._e, self._group, self._lanes, self._step = e, group, lanes, step
        self._count, self._last = math.prod(taps), taps[-1]
        self._groups = -(-math.prod(taps[:-1]) // group)
        self._rows = list(self._offsets(taps[:-1], strides[:-1]))
        self._stride = strides[-1]

    def _offsets(self, taps: Sequence[int], strides: Sequence[Register]) -> Iterator[Register]:
        """Yield the offset in bytes of each row of a window from the first row."""
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
        """Emit the sums of the windows at addresses `bases`, for a vector of channels from `channel` on."""
        e = self._e
        number = e.binary("udiv", channel, e.index(self._lanes))
        weights = e.offset(panel.base, e.mul(number, panel.size))
        start = self._start(weights, panel)
        weights_zero = self._weights_zero(panel.weights_zero)
        found = [e.variable(start) for _ in bases]
        for group in range(self._groups):
            factors = [
                self._weights(weights, tap * self._groups + group, weights_zero) for tap in range(self._last)
            ]
            for base, readers in self._columns(bases):
                x = self._column(base, group, mask)
                for window, tap in readers:
                    total = found[window]
                    e.assign(total, self._terms.add(x, factors[tap], e.get(total)))
        return found

    def _start(self, weights: Register, panel: Panel) -> Register:
        """Emit the initial accumulators: `(taken - zero) * sum(weights - weights_zero)` for each channel.

        `taken` is the offset that the instruction needs subtracted from the operand, 0 or 128.
        """
        e, lanes = self._e, self._lanes
        sums = e.load(weights, Kind("i32", lanes), align=4)
        zero, weights_zero = (e.convert("trunc", x, "i32") for x in (panel.zero, panel.weights_zero))
        all_zeros = e.binary("mul", weights_zero, e.constant(weights_zero.kind, self._count))
        sums = e.binary("sub", sums, e.splat(all_zeros, lanes))
        times = e.binary("sub", e.constant(zero.kind, self._terms.taken), zero)
        return e.binary("mul", sums, e.splat(times, lanes))

    def _weights_zero(self, weights_zero: Register) -> Register | None:
        """Emit a vector of the zero point of 16-bit weights; None for 8-bit weights, which have none."""
        if self._group != 2:  # ruff: ignore[magic-value-comparison]  pairs
            return None
        return self._e.splat(self._e.convert("trunc", weights_zero, "i16"), self._lanes * self._group)

    def _weights(self, base: Register, number: int, weights_zero: Register | None) -> Register:
        """Emit the load of the weights of one group of each channel."""
        e = self._e
        place = self._lanes * (4 + number * self._group)
        x = self._terms.column(e.offset(base, e.index(place)))
        return x if weights_zero is None else e.binary("sub", x, weights_zero)

    def _columns(self, bases: Sequence[Register]) -> Iterator[tuple[Register, list[tuple[int, int]]]]:
        """Yield the address of each column, and the (window, tap) pairs that read it."""
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
        """Emit the load of one group of a column for each channel, padded with 0 past the last row."""
        e, bits = self._e, 32 // self._group
        found: Register | None = None
        for place, row in enumerate(self._rows[group * self._group : (group + 1) * self._group]):
            x = e.convert("zext", e.load(e.offset(base, row), Kind("i8", self._lanes), mask), "i32")
            x = x if not place else e.binary("shl", x, e.constant(x.kind, place * bits))
            found = x if found is None else e.binary("or", found, x)
        if found is None:
            raise AssertionError("a group has rows")
        return self._terms.groups(found)
