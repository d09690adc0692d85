"""Bounds of a plan for the sizes of a run: the memory that kernels touch, and the limits of the run.

Kernels do not check addresses. So the addresses that each kernel may read or write are compared with the
bounds of its buffers when a plan is laid out, before anything runs. A violation raises Mismatch: the
interpreter then runs the request, and reports the error of the model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import COMPILED
from sabir.compilation.plan.entries import Buffer, Entry, Mismatch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sabir.compilation.plan.layout import RunSizes
    from sabir.loops import Size

MOST_ELEMENTS = (1 << 62) - 1
"""The elements of a tensor, at most: kernels compute addresses with 64 bits."""


class Reach(NamedTuple):
    """The elements of a buffer that a kernel may touch: from `offset` on, along each of the `extents`.

    An extent is a count and a stride. `takes` has the extents of axes along which indices choose elements,
    with strides in bytes.
    """

    buffer: Buffer
    width: int
    offset: Size
    extents: Sequence[tuple[Size, Size]]
    takes: Sequence[tuple[Size, Size]] = ()


class ComputedTensor(NamedTuple):
    """A tensor that kernels compute, in memory or only in registers: its shape, and the bytes of an element.

    `work` is the work of each element in addition to its bytes, as evaluation counts it.
    """

    shape: Sequence[Size]
    width: int
    work: int = 0


class Needs(NamedTuple):
    """The quantities that limits bound: the elements of the largest tensor, the bytes of all tensors."""

    elements: int
    work: int

    @property
    def charge(self) -> int:
        """The work that compiled code charges: a fraction of the bytes, rounded up."""
        return -(-self.work // COMPILED)


def needs(values: Iterable[ComputedTensor], sizes: RunSizes) -> Needs:
    """Return the needs of tensors for the sizes of a run; raises Mismatch for a negative size."""
    largest = work = 0
    for value in values:
        count = _count(value.shape, sizes)
        largest = max(largest, count)
        work += count * (value.width + value.work)
    return Needs(largest, work)


def check_reaches(entries: Iterable[object], sizes: RunSizes) -> None:
    """Raise Mismatch if a kernel would touch memory outside of a buffer."""
    for entry in entries:
        if isinstance(entry, Entry):
            for reach in entry.reaches:
                _check(reach, sizes)


def _check(reach: Reach, sizes: RunSizes) -> None:
    low = high = sizes(reach.offset)
    is_empty = False
    for size, step in reach.extents:  # hundreds of reaches: comprehensions take twice as long
        count, stride = sizes(size), sizes(step)
        if count < 0:
            raise Mismatch(f"a loop has the sizes {[sizes(n) for n, _ in reach.extents]}")
        if count > 1:
            span = (count - 1) * stride
            if span < 0:
                low += span
            else:
                high += span
        elif not count and stride:
            is_empty = True
    if is_empty:
        return  # the loops touch nothing
    for size, step in reach.takes:
        count, stride = sizes(size), sizes(step) // reach.width
        if count < 1:
            raise Mismatch("indices choose from an axis without elements")
        span = (count - 1) * stride
        low, high = low + min(span, 0), high + max(span, 0)
    if low < 0 or (high + 1) * reach.width > sizes(reach.buffer.size):
        raise Mismatch(
            f"elements {low} to {high} are outside of a tensor of {sizes(reach.buffer.size)} bytes"
        )


def _count(shape: Sequence[Size], sizes: RunSizes) -> int:
    found = list(map(sizes, shape))
    if any(d < 0 for d in found):
        raise Mismatch(f"a tensor has the shape {found}")
    count = math.prod(found)
    if count > MOST_ELEMENTS:
        raise Mismatch(f"a tensor has {count} elements")
    return count
