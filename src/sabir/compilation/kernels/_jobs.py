"""Jobs, the parts of a kernel's work, and the places and lanes that they stand for."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sabir.compilation.kernels._emitter import INDEX, Register

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from sabir.compilation.kernels._body import Body
    from sabir.compilation.kernels._emitter import Emitter

_STEP = 64  # of the width of strips


def product_of(e: Emitter, sizes: Sequence[Register]) -> Register:
    """Emit the product of sizes."""
    found = e.index(1)
    for size in sizes:
        found = size if found.name == "1" else e.mul(found, size)
    return found


def decoded(body: Body, job: Register, axes: Sequence[int]) -> list[Register]:
    """Return the index along each axis for the number of a job; 0 for axes that it does not count."""
    e = body.e
    indices = [e.index(0)] * body.nest.axes
    for axis in reversed(axes[1:]):
        indices[axis] = e.binary("urem", job, body.sizes[axis])
        job = e.binary("udiv", job, body.sizes[axis])
    if axes:
        indices[axes[0]] = job
    return indices


@contextlib.contextmanager
def strips(
    body: Body, outer: Sequence[int], most: int
) -> Generator[tuple[list[Register], Register, Register]]:
    """Emit jobs over outer axes and strips of the inner one: indices, the first of the strip and its end.

    A strip is as wide as a thread's part of the axis, up to `most`: wide rows are read fast from memory.
    """
    e, inner = body.e, body.nest.inner
    a_thread = e.binary("udiv", body.sizes[inner], Register("%threads", INDEX))
    width = e.least(e.binary("and", e.add(a_thread, _STEP), e.index(-_STEP)), e.index(most))
    blocks = e.binary("udiv", e.add(e.add(body.sizes[inner], width), -1), width)
    low, high = e.share(product_of(e, [*(body.sizes[axis] for axis in outer), blocks]))
    with e.loop(low, high) as job:
        start = e.mul(e.binary("urem", job, blocks), width)
        stop = e.least(e.add(start, width), body.sizes[inner])
        yield decoded(body, e.binary("udiv", job, blocks), outer), start, stop


def mask_of(body: Body, place: Register, stop: Register) -> Register:
    """Return which lanes from a place on lie before the end."""
    e, lanes = body.e, body.nest.lanes
    count = e.least(e.binary("sub", stop, place), e.index(lanes))
    left = e.splat(e.convert("trunc", count, "i32"), lanes)
    numbers = Register(f"<{', '.join(f'i32 {n}' for n in range(lanes))}>", left.kind)
    return e.compare("icmp slt", numbers, left)


def at(indices: Sequence[Register], axis: int, place: Register) -> list[Register]:
    """Return indices with another one along an axis."""
    return [*indices[:axis], place, *indices[axis + 1 :]]
