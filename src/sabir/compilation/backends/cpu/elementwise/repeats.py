"""Loops that store each element several times in adjacent places, such as nearest-neighbour upsampling.

With n repetitions, a vector is computed once, and shuffles spread it over n vectors. Along other axes along
which all reads have stride 0, such as repeated rows of an image, these vectors are stored again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.body import Point
from sabir.compilation.backends.cpu.emit.jobs import along, at, jobs, lanes_before
from sabir.compilation.backends.cpu.emit.nest import STILL
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.backends.cpu.emit.body import Body
    from sabir.compilation.backends.cpu.emit.emitter import Register

_BLOCK = 2048  # elements of the inner axis that one job reads


def repeating(body: Body) -> None:
    """Emit the loops of a nest with `repeats`, which are the repeated axis and its size."""
    e, nest = body.e, body.nest
    outer = [axis for axis in range(nest.axes) if axis not in {nest.inner, nest.repeats[0]}]
    stored = {access for access, _ in nest.stores}
    read = [access for number, access in enumerate(nest.accesses) if number not in stored]
    still = [axis for axis in outer if all(access.strides[axis] == STILL for access in read)]
    size = body.sizes[nest.inner]
    chunks = e.binary("udiv", e.add(size, _BLOCK - 1), e.index(_BLOCK))
    with jobs(body, [axis for axis in outer if axis not in still], chunks) as (indices, (chunk,)):
        start = e.mul(chunk, _BLOCK)
        stop = e.least(e.add(start, _BLOCK), size)
        along(body, Point(indices), start, stop, lambda point: _spread(body, point, stop, still))


def _spread(body: Body, point: Point, stop: Register, still: Sequence[int]) -> None:
    """Emit the shuffles that repeat the values of a vector, and their stores."""
    e, inner, lanes = body.e, body.nest.inner, point.lanes
    _, times = body.nest.repeats
    first, end = e.mul(point.indices[inner], times), e.mul(stop, times)
    masks = [
        None if point.mask is None else lanes_before(e, e.add(first, part * lanes), end, lanes)
        for part in range(times)
    ]
    values = [
        [_part(body, body.wide(number, point), part, times) for part in range(times)]
        for _, number in body.nest.stores
    ]
    _store(body, point, still, values, masks)


def _part(body: Body, x: Register, part: int, times: int) -> Register:
    lanes = x.kind.lanes
    places = ", ".join(f"i32 {(part * lanes + lane) // times}" for lane in range(lanes))
    return body.e.value(x.kind, f"shufflevector {x}, {x.kind} poison, <{lanes} x i32> <{places}>")


def _store(
    body: Body, point: Point, still: Sequence[int], values: Sequence[Sequence[Register]],
    masks: Sequence[Register | None],
) -> None:  # fmt: skip
    e = body.e
    if still:
        axis, *others = still
        with e.loop(e.index(0), body.sizes[axis]) as place:
            _store(body, Point(at(point.indices, axis, place), point.lanes), others, values, masks)
        return
    for (access, _), parts in zip(body.nest.stores, values, strict=True):
        address = body.address(access, point)
        width = point.lanes * element_bytes(body.nest.accesses[access].element)
        for number, (x, mask) in enumerate(zip(parts, masks, strict=True)):
            e.store(x, e.offset(address, e.index(number * width)), mask)
