"""Sliding windows: where the kernels of convolutions and poolings lie along each spatial axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.ir import add, ceil_div, dim_min, floor_div, mul, sub
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_COUNTED = 32  # bytes, about, of a window while its taps are counted
LEAST_RANK = 3  # a batch, channels, one spatial axis
AUTO_PADS = one_of("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", aliases={"": "NOTSET"})


class Run(NamedTuple):
    """The windows `start` to `stop`, and the elements of the input that one tap of theirs reads."""

    start: int
    stop: int
    source: slice


class Axis(NamedTuple):
    """A window's way along one axis of a given input: as many `windows`, the first at `-begin`."""

    length: int
    windows: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int

    @property
    def is_trivial(self) -> bool:
        """Whether every window is one element, and every element a window."""
        return self.kernel == self.stride == 1 and self.begin == self.end == 0

    @property
    def taps(self) -> range:
        """The taps of the kernel that may lie in the input, whatever the window: no kernel is too large."""
        first = -((self.windows - 1) * self.stride - self.begin) // self.dilation
        past = (self.length + self.begin - 1) // self.dilation + 1
        return range(max(0, first), max(0, first, min(self.kernel, past)))

    def run(self, tap: int, start: int = 0, stop: int | None = None) -> Run:
        """Return which of the windows `start` to `stop` have this tap of the kernel inside the input."""
        offset, stride = tap * self.dilation - self.begin, self.stride
        first = max(start, -(offset // stride))
        last = min(self.windows if stop is None else stop, -((offset - self.length) // stride))
        last = max(first, last)
        begin = first * stride + offset
        return Run(first, last, slice(begin, max(begin, begin + (last - first - 1) * stride + 1), stride))

    def covered(self, *, padding: bool) -> Array:
        """Return how many taps of each window lie in the input, or in the input with its padding."""
        check_elements(self.windows, self.windows, what="the counts", width=_COUNTED)
        low, high = (-self.begin, self.length + self.end) if padding else (0, self.length)
        first = np.arange(self.windows) * self.stride - self.begin
        past = np.clip(-((first - high) // self.dilation), 0, self.kernel)
        return past - np.clip(-((first - low) // self.dilation), 0, self.kernel)


@dataclass(frozen=True, slots=True)
class Window:
    """A kernel's size, step, spread and padding along each spatial axis, as the attributes tell them."""

    kernel: tuple[Dim, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    same: str = ""  # "UPPER" or "LOWER": padded so that the stride alone decides the output size
    ceil: bool = False  # a last window that passes the end counts, unless it starts there

    @classmethod
    def of(
        cls, kernel: Sequence[Dim], *, strides: Sequence[int] | None, pads: Sequence[int] | None,
        auto_pad: str, dilations: Sequence[int] | None = None, ceil_mode: int = 0,
    ) -> Window:  # fmt: skip
        """Read the attributes; raises InferenceError for a wrong number of values, or an empty window."""
        rank = len(kernel)
        steps = _values("strides", strides or (1,) * rank, rank)
        spread = _values("dilations", dilations or (1,) * rank, rank)
        edges = _values("pads", pads or (0,) * 2 * rank, 2 * rank)
        if any(isinstance(k, int) and k < 1 for k in kernel):  # weights may have no elements
            raise InferenceError(f"a window of {list(kernel)} must have 1 or more elements along each axis")
        if auto_pad not in {"", "NOTSET"}:
            edges = (0,) * 2 * rank
        both = tuple(zip(edges[:rank], edges[rank:], strict=True))
        same = auto_pad.removeprefix("SAME_") if auto_pad.startswith("SAME_") else ""
        return cls(tuple(kernel), steps, spread, both, same, bool(ceil_mode))

    def outputs(self, lengths: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the number of windows along each axis; raises InferenceError where none fits by far."""
        if len(lengths) != len(self.kernel):
            raise InferenceError(f"a window over {len(self.kernel)} axes cannot slide along {len(lengths)}")
        return tuple(starmap(self._count, enumerate(lengths)))

    def axes(self, lengths: Sequence[int]) -> tuple[Axis, ...]:
        """Lay the window over an input of this size."""
        counts = [c for c in self.outputs(lengths) if isinstance(c, int)]
        if len(counts) < len(lengths):  # sizes past 64 bits are none
            told = f"kernel {list(self.kernel)}, dilations {list(self.dilations)}"
            raise InferenceError(f"a window of {told} does not fit into {list(lengths)}")
        kernel = [k for k in self.kernel if isinstance(k, int)]
        sides = zip(lengths, counts, kernel, self.strides, self.dilations, self.pads, strict=True)
        return tuple(self._padded(Axis(*side, *pads)) for *side, pads in sides)

    def _padded(self, axis: Axis) -> Axis:
        if not self.same:
            return axis
        reach = (axis.kernel - 1) * axis.dilation + 1
        lacking = max(0, (axis.windows - 1) * axis.stride + reach - axis.length)
        less, more = lacking // 2, lacking - lacking // 2
        begin, end = (less, more) if self.same == "UPPER" else (more, less)
        return axis._replace(begin=begin, end=end)

    def _count(self, i: int, length: Dim) -> Dim:
        stride, (begin, end) = self.strides[i], self.pads[i]
        if self.same:
            return ceil_div(length, stride)
        reach = add(mul(sub(self.kernel[i], 1), self.dilations[i]), 1)
        room = sub(add(length, begin + end), reach)
        if not self.ceil:
            count = add(floor_div(room, stride), 1)
        else:
            count = add(ceil_div(room, stride), 1)
            starts_inside = isinstance(reach, int) and end + stride <= reach  # at all sizes, the last one
            if not starts_inside:
                count = dim_min(count, ceil_div(add(length, begin), stride))
        if isinstance(count, int) and count < 0:
            raise InferenceError(
                f"a window of {reach} does not fit into {length} padded by {begin} and {end}"
            )
        return count


def _values(name: str, given: Sequence[int], count: int) -> tuple[int, ...]:
    if len(given) != count:
        raise InferenceError(f"{name} {list(given)} must have {count} values")
    return tuple(given)
