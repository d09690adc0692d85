"""The loops of nests: pointwise ones, folds along the inner axis, and folds beside it.

A pointwise nest shares out blocks of its inner axis. A nest with folds shares out its rows: a row is one place of
the axes that stay. It goes over a row in passes, one more for each fold that another one depends on. What an
earlier pass computed at some cost is kept in scratch memory, which lies in the cache for rows of usual length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.kernels._body import Body, Point, element_bytes, kind_of
from sabir.compilation.kernels._emitter import INDEX, Emitter, Register
from sabir.compilation.kernels._folds import Accumulator
from sabir.compilation.kernels._nest import Apply, Fold, Take
from sabir.compilation.kernels._passes import Passes, passes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.kernels._nest import Nest

BLOCK = 4096  # elements of the inner axis that one job computes


def nest_text(nest: Nest) -> str:
    """Return the LLVM module of a nest's kernel."""
    e = Emitter()
    body = Body(e, nest)
    if not any(isinstance(step, Fold) for step in nest.steps):
        _pointwise(body)
    elif body.column:
        _columns(body, passes_of(nest, keep=False))
    else:
        _rows(body, passes_of(nest, keep=True))
    return e.text()


# ---------------------------------------------------------------- pointwise


def _pointwise(body: Body) -> None:
    e, nest = body.e, body.nest
    if not nest.axes:
        with e.when(e.compare("icmp eq", Register("%thread", INDEX), e.index(0))):
            _store(body, nest.stores, Point([]))
        return
    inner = nest.inner
    chunks = e.binary("udiv", e.add(body.sizes[inner], BLOCK - 1), e.index(BLOCK))
    outer = [axis for axis in range(nest.axes) if axis != inner]
    low, high = e.share(_product(e, [*(body.sizes[a] for a in outer), chunks]))
    with e.loop(low, high) as job:
        chunk = e.binary("urem", job, chunks)
        indices = _decoded(body, e.binary("udiv", job, chunks), outer)
        start = e.mul(chunk, BLOCK)
        stop = e.least(e.add(start, BLOCK), body.sizes[inner])
        around = Point(indices)
        _hoist(body, [number for _, number in nest.stores], around)

        def store(point: Point) -> None:
            _store(body, nest.stores, point)

        _along(body, around, start, stop, store)


def _store(body: Body, stores: Sequence[tuple[int, int]], point: Point) -> None:
    for access, number in stores:
        body.write(access, body.value(number, point), point)


def _hoist(body: Body, roots: Sequence[int], point: Point) -> None:
    """Emit before a loop what does not vary in it, as far as these steps need it."""
    pending, seen = list(roots), set[int]()
    while pending:
        number = pending.pop()
        step = body.nest.steps[number]
        if number in seen or isinstance(step, Fold):
            continue
        seen.add(number)
        if not body.spans[number]:
            if not _waits(body, number):
                body.value(number, point)
            continue
        pending += step.operands if isinstance(step, Apply) else [step.index] if isinstance(step, Take) else []


def _waits(body: Body, number: int) -> bool:
    """Return whether a step depends on a fold, or on an axis whose loop is yet to come."""
    step = body.nest.steps[number]
    if isinstance(step, Fold):
        return True
    return isinstance(step, Apply) and any(_waits(body, o) for o in step.operands)


def _along(
    body: Body, around: Point, start: Register, stop: Register, each: Callable[[Point], None]
) -> None:
    """Loop along the inner axis in vectors, then once under a mask for the rest."""
    e, lanes, inner = body.e, body.nest.lanes, body.nest.inner
    whole = e.add(start, e.binary("and", e.binary("sub", stop, start), e.index(-lanes)))
    with e.loop(start, whole, lanes) as place:
        each(_at(around, inner, place, lanes, None))
    with e.when(e.compare("icmp slt", whole, stop)):
        each(_at(around, inner, whole, lanes, _mask(body, whole, stop)))


def _at(around: Point, axis: int, place: Register, lanes: int, mask: Register | None) -> Point:
    indices = [*around.indices]
    indices[axis] = place
    return Point(indices, lanes, mask, outer=around)


def _mask(body: Body, place: Register, stop: Register) -> Register:
    """Return which lanes from a place on lie before the end."""
    e, lanes = body.e, body.nest.lanes
    left = e.splat(e.convert("trunc", e.binary("sub", stop, place), "i32"), lanes)
    numbers = Register(f"<{', '.join(f'i32 {n}' for n in range(lanes))}>", left.kind)
    return e.compare("icmp slt", numbers, left)


def _product(e: Emitter, sizes: Sequence[Register]) -> Register:
    found = e.index(1)
    for size in sizes:
        found = size if found.name == "1" else e.mul(found, size)
    return found


def _decoded(body: Body, job: Register, axes: Sequence[int]) -> list[Register]:
    """Return the index along each axis for the number of a job; 0 for axes that it does not count."""
    e = body.e
    indices = [e.index(0)] * body.nest.axes
    for axis in reversed(axes[1:]):
        indices[axis] = e.binary("urem", job, body.sizes[axis])
        job = e.binary("udiv", job, body.sizes[axis])
    if axes:
        indices[axes[0]] = job
    return indices


# ---------------------------------------------------------------- folds along the inner axis


def _rows(body: Body, passes: Passes) -> None:
    e, nest = body.e, body.nest
    kept = [axis for axis in range(nest.axes) if not nest.reduced[axis]]
    low, high = e.share(_product(e, [body.sizes[a] for a in kept]))
    scratch = Scratch(body, passes)
    with e.loop(low, high) as job:
        row = Point(_decoded(body, job, kept))
        for number, roots in enumerate(passes.roots):
            row_pass(body, passes, scratch, number, roots, row)
        _store(body, passes.after(), row)


def row_pass(  # ruff: ignore[too-many-arguments]  the state of one pass
    body: Body, passes: Passes, scratch: Scratch, number: int, roots: Sequence[int], row: Point
) -> None:
    """Emit one pass over a row: its folds, what it stores, and what it keeps for later passes."""
    nest = body.nest
    folds = [n for n in roots if isinstance(nest.steps[n], Fold)]
    stored = [n for n in roots if not isinstance(nest.steps[n], Fold)]
    copies = 1 if passes.costly else 4
    accumulators = {n: Accumulator(body, n, nest.lanes, copies) for n in folds}
    roots_of_loops = [passes.operand(n) for n in folds] + stored

    def each(point: Point, copy: int) -> None:
        scratch.fetch(number, point)
        for n in folds:
            accumulators[n].add(copy, body.wide(passes.operand(n), point), point)
        _store(body, passes.inside(number), point)
        scratch.keep(number, point)

    _over_reduced(body, row, each, copies, roots_of_loops)
    for n in folds:
        row.values[n] = accumulators[n].combined()


def _over_reduced(
    body: Body, row: Point, each: Callable[[Point, int], None], copies: int, wanted: Sequence[int]
) -> None:
    """Loop over the axes of folds; the inner one in vectors, several at a time.

    Before the inner loop comes what the `wanted` steps need and does not vary in it.
    """
    outer = [a for a in range(body.nest.axes) if body.nest.reduced[a] and a != body.nest.inner]

    def inside(point: Point, remaining: Sequence[int]) -> None:
        if not remaining:
            _hoist(body, wanted, point)
            _vectors(body, point, each, copies)
            return
        axis = remaining[0]
        with body.e.loop(body.e.index(0), body.sizes[axis]) as place:
            inside(Point([*point.indices[:axis], place, *point.indices[axis + 1 :]], outer=row), remaining[1:])

    inside(row, outer)


def _vectors(body: Body, row: Point, each: Callable[[Point, int], None], copies: int) -> None:
    e, lanes, inner = body.e, body.nest.lanes, body.nest.inner
    size, start = body.sizes[inner], e.index(0)
    if copies > 1:
        step = lanes * copies
        start = e.binary("mul", e.binary("udiv", size, e.index(step)), e.index(step))
        with e.loop(e.index(0), start, step) as place:
            for copy in range(copies):
                each(_at(row, inner, e.add(place, lanes * copy), lanes, None), copy)
    whole = e.binary("and", size, e.index(-lanes))
    with e.loop(start, whole, lanes) as place:
        each(_at(row, inner, place, lanes, None), 0)
    with e.when(e.compare("icmp slt", whole, size)):
        each(_at(row, inner, whole, lanes, _mask(body, whole, size)), 0)


class Scratch:
    """The values of a row that a later pass reads again, in memory of this thread."""

    def __init__(self, body: Body, passes: Passes) -> None:
        e, nest = body.e, body.nest
        self._body, self._passes = body, passes
        self._bases: dict[int, Register] = {}
        if not passes.kept:
            return
        base = body.pointer(body.layout.scratch)
        mine = e.mul(Register("%thread", INDEX), e.argument(body.layout.scratch + 2))
        base = e.offset(base, mine)
        length = _product(e, [body.sizes[a] for a in range(nest.axes) if nest.reduced[a]])
        for number in passes.kept:
            self._bases[number] = base
            wide = e.mul(length, element_bytes(nest.steps[number].element))
            base = e.offset(base, e.binary("and", e.add(wide, 127), e.index(-64)))

    def _address(self, number: int, point: Point) -> Register:
        body, place = self._body, None
        for axis in range(body.nest.axes):
            if body.nest.reduced[axis]:
                index = point.indices[axis]
                place = index if place is None else body.e.add(body.e.mul(place, body.sizes[axis]), index)
        size = element_bytes(body.nest.steps[number].element)
        return body.e.offset(self._bases[number], body.e.mul(place or body.e.index(0), size))

    def keep(self, current: int, point: Point) -> None:
        """Emit the stores of what this pass computes and a later one reads."""
        for number, made in self._passes.kept.items():
            if made == current:
                x = self._body.wide(number, point)
                x = self._body.e.convert("zext", x, "i8") if x.kind.scalar == "i1" else x
                self._body.e.store(x, self._address(number, point))

    def fetch(self, current: int, point: Point) -> None:
        """Emit the loads of what an earlier pass kept and this one reads."""
        for number in self._passes.fetched[current]:
            element = self._body.nest.steps[number].element
            kind = kind_of(element, point.lanes)
            memory = kind.of("i8") if element == "bool" else kind
            x = self._body.e.load(self._address(number, point), memory)
            if element == "bool":
                x = self._body.e.compare("icmp ne", x, self._body.e.constant(memory, 0))
            point.values[number] = x


# ---------------------------------------------------------------- folds beside the inner axis


def _columns(body: Body, passes: Passes) -> None:
    e, nest, inner = body.e, body.nest, body.nest.inner
    lanes = nest.lanes
    outer = [axis for axis in range(nest.axes) if not nest.reduced[axis] and axis != inner]
    blocks = e.binary("udiv", e.add(body.sizes[inner], lanes - 1), e.index(lanes))
    low, high = e.share(_product(e, [*(body.sizes[a] for a in outer), blocks]))
    with e.loop(low, high) as job:
        indices = _decoded(body, e.binary("udiv", job, blocks), outer)
        place = e.mul(e.binary("urem", job, blocks), lanes)
        indices[inner] = place
        column = Point(indices, lanes, _mask(body, place, body.sizes[inner]))
        for number in range(len(passes.roots)):
            _column_pass(body, passes, number, column)
        _store(body, passes.after(), column)


def _column_pass(body: Body, passes: Passes, number: int, column: Point) -> None:
    nest = body.nest
    folds = [n for n in passes.roots[number] if isinstance(nest.steps[n], Fold)]
    accumulators = {n: Accumulator(body, n, nest.lanes, 1, columns=True) for n in folds}
    axes = [axis for axis in range(nest.axes) if nest.reduced[axis]]

    def inside(point: Point, remaining: Sequence[int]) -> None:
        if remaining:
            with body.e.loop(body.e.index(0), body.sizes[remaining[0]]) as place:
                indices = [*point.indices]
                indices[remaining[0]] = place
                inside(Point(indices, point.lanes, point.mask, outer=column), remaining[1:])
            return
        here = Point(point.indices, point.lanes, point.mask, outer=column)
        for n in folds:
            accumulators[n].add(0, body.wide(passes.operand(n), here), here)
        _store(body, passes.inside(number), here)

    inside(column, axes)
    for n in folds:
        column.values[n] = accumulators[n].combined()
