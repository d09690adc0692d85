"""Sliding windows of convolutions and poolings: the attributes that describe them, and their positions."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, check_elements
from sabir.ir import add, ceil_div, dim_min, floor_div, mul, sub
from sabir.schema import Attribute, at_least, one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_COUNTED = 32  # temporary bytes for each window while its taps are counted, approximately
LEAST_RANK = 3  # a batch, channels, one spatial axis
AUTO_PADS = one_of("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", aliases={"": "NOTSET"})

STRIDES = Attribute(
    "strides",
    "ints",
    "The step between windows along each spatial axis; 1 by default.",
    values=at_least(1),
    implied=1,
)
DILATIONS = Attribute(
    "dilations",
    "ints",
    "The step between the elements of a window along each spatial axis; 1 by default.",
    values=at_least(1),
    implied=1,
)
PADS = Attribute(
    "pads",
    "ints",
    "Padding at the beginning of each spatial axis, then at the end of each; 0 by default.",
    values=at_least(0),
    implied=0,
)
AUTO_PAD = Attribute(
    "auto_pad",
    "string",
    "SAME_UPPER, SAME_LOWER: as much padding as makes O = ceil(D / stride), an odd element at the end or the "
    "beginning; VALID: no padding; NOTSET: `pads`.",
    default="NOTSET",
    values=AUTO_PADS,
)
KERNEL_SHAPE = Attribute(
    "kernel_shape", "ints", "The size of the window along each axis.", required=True, values=at_least(1)
)
CEIL_MODE = Attribute("ceil_mode", "int", "1: the last window may end beyond the padded input.", default=0)


class WindowRange(NamedTuple):
    """The windows `start` to `stop`, and the input elements that one of their taps reads."""

    start: int
    stop: int
    source: slice


class WindowAxis(NamedTuple):
    """The windows along one axis of an input of known `length`; the first starts at `-begin`."""

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
        """The taps that are inside the input for at least one window; the kernel may be larger."""
        first = -(((self.windows - 1) * self.stride - self.begin) // self.dilation)
        past = (self.length + self.begin - 1) // self.dilation + 1
        return range(max(0, first), max(0, first, min(self.kernel, past)))

    def run(self, tap: int, start: int = 0, stop: int | None = None) -> WindowRange:
        """Return those of the windows `start` to `stop` whose tap number `tap` is inside the input."""
        offset, stride = tap * self.dilation - self.begin, self.stride
        first = max(start, -(offset // stride))
        last = min(self.windows if stop is None else stop, -((offset - self.length) // stride))
        last = max(first, last)
        begin = first * stride + offset
        return WindowRange(
            first, last, slice(begin, max(begin, begin + (last - first - 1) * stride + 1), stride)
        )

    def covered(self, *, padding: bool) -> Array:
        """Return how many taps of each window are inside the input, or inside the padded input."""
        check_elements(self.windows, self.windows, what="the counts", width=_COUNTED)
        low, high = (-self.begin, self.length + self.end) if padding else (0, self.length)
        first = np.arange(self.windows) * self.stride - self.begin
        past = np.clip(-((first - high) // self.dilation), 0, self.kernel)
        return past - np.clip(-((first - low) // self.dilation), 0, self.kernel)


@dataclass(frozen=True, slots=True)
class Window:
    """The size, stride, dilation and padding of a window along each spatial axis."""

    kernel: tuple[Dim, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    same: str = ""  # "UPPER" or "LOWER": the padding is such that the stride alone decides the output size
    ceil: bool = False  # a last window that ends beyond the padded input counts, unless it starts there

    @classmethod
    def of(
        cls, kernel_shape: Sequence[Dim], *, strides: Sequence[int] | None = None,
        pads: Sequence[int] | None = None, auto_pad: str = "NOTSET", dilations: Sequence[int] | None = None,
        ceil_mode: int = 0,
    ) -> Window:  # fmt: skip
        """Read the attributes; raises InferenceError for a wrong number of values, or an empty window."""
        rank = len(kernel_shape)
        steps = _values("strides", strides or (1,) * rank, rank)
        distances = _values("dilations", dilations or (1,) * rank, rank)
        edges = _values("pads", pads or (0,) * 2 * rank, 2 * rank)
        if any(isinstance(k, int) and k < 1 for k in kernel_shape):  # weights may have no elements
            raise InferenceError(
                f"a window of {list(kernel_shape)} must have 1 or more elements along each axis"
            )
        if auto_pad not in {"", "NOTSET"}:
            edges = (0,) * 2 * rank
        padding = tuple(zip(edges[:rank], edges[rank:], strict=True))
        same = auto_pad.removeprefix("SAME_") if auto_pad.startswith("SAME_") else ""
        return cls(tuple(kernel_shape), steps, distances, padding, same, bool(ceil_mode))

    def outputs(self, lengths: Sequence[Dim]) -> tuple[Dim, ...]:
        """Return the number of windows along each axis; raises InferenceError if it would be negative."""
        if len(lengths) != len(self.kernel):
            raise InferenceError(f"a window over {len(self.kernel)} axes cannot slide along {len(lengths)}")
        return tuple(starmap(self._count, enumerate(lengths)))

    def axes(self, lengths: Sequence[int]) -> tuple[WindowAxis, ...]:
        """Return the windows along each axis of an input with these spatial sizes."""
        counts = [c for c in self.outputs(lengths) if isinstance(c, int)]
        if len(counts) < len(lengths):  # a size above 64 bits is None
            window = f"kernel {list(self.kernel)}, dilations {list(self.dilations)}"
            raise InferenceError(f"a window of {window} does not fit into {list(lengths)}")
        kernel = [k for k in self.kernel if isinstance(k, int)]
        sides = zip(lengths, counts, kernel, self.strides, self.dilations, self.pads, strict=True)
        return tuple(self._padded(WindowAxis(*side, *pads)) for *side, pads in sides)

    def _padded(self, axis: WindowAxis) -> WindowAxis:
        if not self.same:
            return axis
        reach = (axis.kernel - 1) * axis.dilation + 1
        missing = max(0, (axis.windows - 1) * axis.stride + reach - axis.length)
        less, more = missing // 2, missing - missing // 2
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
            starts_inside = isinstance(reach, int) and end + stride <= reach  # the last window, at all sizes
            if not starts_inside:
                count = dim_min(count, ceil_div(add(length, begin), stride))
        if isinstance(count, int) and count < 0:
            raise InferenceError(
                f"a window of {reach} does not fit into {length} padded by {begin} and {end}"
            )
        return count


def _values(name: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    if len(values) != count:
        raise InferenceError(f"{name} {list(values)} must have {count} values")
    return tuple(values)
