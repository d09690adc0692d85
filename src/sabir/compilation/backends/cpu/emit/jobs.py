"""Jobs: the units of work of a kernel, and their indices and lanes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.body import Point
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Register

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sabir.compilation.backends.cpu.emit.body import Body
    from sabir.compilation.backends.cpu.emit.emitter import Emitter

_STEP = 64  # of the width of strips


def product_of(e: Emitter, sizes: Sequence[Register]) -> Register:
    """Emit the product of sizes."""
    found = e.index(1)
    for size in sizes:
        found = size if found.name == "1" else e.mul(found, size)
    return found


def decoded(body: Body, job: Register, axes: Sequence[int]) -> list[Register]:
    """Return the index along each axis from the number of a job; 0 for axes that jobs do not count."""
    e = body.e
    indices = [e.index(0)] * body.nest.axes
    for axis, digit in zip(axes, digits(e, job, [body.sizes[axis] for axis in axes]), strict=True):
        indices[axis] = digit
    return indices


@contextlib.contextmanager
def jobs(
    body: Body, axes: Sequence[int], *parts: Register
) -> Generator[tuple[list[Register], list[Register]]]:
    """Emit a loop over the jobs of this share: one for each index of some axes and number below `parts`.

    Yields the index along each axis (0 for other axes), and the numbers. Only the first job divides to find
    them; each following one increments them.
    """
    e = body.e
    sizes = [*(body.sizes[axis] for axis in axes), *parts]
    low, high = e.share(product_of(e, sizes))
    with e.when(e.compare("icmp slt", low, high)):
        counters = [e.variable(digit) for digit in digits(e, low, sizes)]
        with e.loop(low, high):
            now = [e.get(counter) for counter in counters]
            indices = [e.index(0)] * body.nest.axes
            for axis, digit in zip(axes, now, strict=False):
                indices[axis] = digit
            yield indices, now[len(axes) :]  # ruff: ignore[fallible-context-manager]  an error ends the emission
            carry = e.index(1)
            for counter, digit, size in reversed([*zip(counters, now, sizes, strict=True)]):
                after = e.add(digit, carry)
                wraps = e.compare("icmp eq", after, size)
                e.assign(counter, e.select(wraps, e.index(0), after))
                carry = e.convert("zext", wraps, "i64")


def digits(e: Emitter, number: Register, sizes: Sequence[Register]) -> list[Register]:
    """Emit the index along each of some axes from a row-major number; the first axis may have any size."""
    found: list[Register] = []
    for size in reversed(sizes[1:]):
        found.append(e.binary("urem", number, size))
        number = e.binary("udiv", number, size)
    return [number, *reversed(found)] if sizes else []


@contextlib.contextmanager
def strips(
    body: Body, outer: Sequence[int], most: int
) -> Generator[tuple[list[Register], Register, Register]]:
    """Emit jobs over outer axes and strips of the inner axis: indices, and the begin and end of the strip.

    A strip is as wide as the axis divided by the shares, at most `most`: wide rows are read fast from memory.
    """
    e, inner = body.e, body.nest.inner
    a_share = e.binary("udiv", body.sizes[inner], Register("%shares", INDEX))
    width = e.least(e.binary("and", e.add(a_share, _STEP), e.index(-_STEP)), e.index(most))
    blocks = e.binary("udiv", e.add(e.add(body.sizes[inner], width), -1), width)
    with jobs(body, outer, blocks) as (indices, (block,)):
        start = e.mul(block, width)
        yield indices, start, e.least(e.add(start, width), body.sizes[inner])


def mask_of(body: Body, place: Register, stop: Register, lanes: int = 0) -> Register:
    """Return the mask of the lanes from an index on that are before the end."""
    return lanes_before(body.e, place, stop, lanes or body.nest.lanes)


def lanes_before(e: Emitter, place: Register, end: Register, lanes: int) -> Register:
    """Emit the mask of the lanes from an index on that are before the end."""
    count = e.least(e.binary("sub", end, place), e.index(lanes))
    left = e.splat(e.convert("trunc", count, "i32"), lanes)
    numbers = Register(f"<{', '.join(f'i32 {n}' for n in range(lanes))}>", left.kind)
    return e.compare("icmp slt", numbers, left)


def at(indices: Sequence[Register], axis: int, place: Register) -> list[Register]:
    """Return indices with another index along an axis."""
    return [*indices[:axis], place, *indices[axis + 1 :]]


def along(body: Body, around: Point, start: Register, stop: Register, each: Callable[[Point], None]) -> None:
    """Emit a loop along the inner axis in vectors, and a masked remainder."""
    e, lanes, inner = body.e, body.nest.lanes, body.nest.inner
    whole = e.add(start, e.binary("and", e.binary("sub", stop, start), e.index(-lanes)))
    with e.loop(start, whole, lanes) as place:
        each(at_lanes(around, inner, place, lanes, None))
    with e.when(e.compare("icmp slt", whole, stop)):
        each(at_lanes(around, inner, whole, lanes, mask_of(body, whole, stop)))


def at_lanes(around: Point, axis: int, place: Register, lanes: int, mask: Register | None) -> Point:
    """Return a point at an index along an axis, in some lanes."""
    return Point(at(around.indices, axis, place), lanes, mask, outer=around)
