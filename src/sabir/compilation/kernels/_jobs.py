"""Jobs, the parts of a kernel's work, and the places and lanes that they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.kernels._emitter import Register

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.kernels._body import Body
    from sabir.compilation.kernels._emitter import Emitter


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


def mask_of(body: Body, place: Register, stop: Register) -> Register:
    """Return which lanes from a place on lie before the end."""
    return lanes_before(body.e, place, stop, body.nest.lanes)


def lanes_before(e: Emitter, place: Register, end: Register, lanes: int) -> Register:
    """Emit which of so many lanes from a place on lie before the end."""
    count = e.least(e.binary("sub", end, place), e.index(lanes))
    left = e.splat(e.convert("trunc", count, "i32"), lanes)
    numbers = Register(f"<{', '.join(f'i32 {n}' for n in range(lanes))}>", left.kind)
    return e.compare("icmp slt", numbers, left)


def at(indices: Sequence[Register], axis: int, place: Register) -> list[Register]:
    """Return indices with another one along an axis."""
    return [*indices[:axis], place, *indices[axis + 1 :]]
