"""The loops of nests: pointwise loops, folds along the inner axis, and folds along other axes.

A job of a pointwise nest is a block of its inner axis. A job of a nest with folds along the inner axis is a
row: all elements with one index along each axis that is not reduced. The row is computed in passes: a fold
that depends on another fold needs another pass. Expensive values of an earlier pass are kept in scratch
memory, which stays in the cache for rows of usual length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.compilation.backends.cpu.elementwise.repeats import repeating
from sabir.compilation.backends.cpu.elementwise.transposes import axis_of_reads, transposing
from sabir.compilation.backends.cpu.emit.arguments import Arguments
from sabir.compilation.backends.cpu.emit.body import Body, Point, from_memory, memory_kind
from sabir.compilation.backends.cpu.emit.emitter import INDEX, Emitter, Register
from sabir.compilation.backends.cpu.emit.folds import ADDITIONS, Accumulator, Blocks
from sabir.compilation.backends.cpu.emit.jobs import along, at, at_lanes, jobs, mask_of, product_of
from sabir.compilation.backends.cpu.emit.nest import Apply, Fold, TakeStep
from sabir.compilation.backends.cpu.emit.row_passes import Passes, passes_of
from sabir.loops import element_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.compilation.backends.cpu.emit.nest import Nest

BLOCK = 4096  # elements of the inner axis that one job computes


def nest_text(nest: Nest) -> str:
    """Return the LLVM module of a nest's kernel."""
    across = axis_of_reads(nest)
    by_rows = any(isinstance(step, Fold) for step in nest.steps) and nest.reduced[nest.inner]
    e = Emitter(opaque_loops=across is not None or by_rows)  # the code of other loops is short
    body = Body(nest, Arguments(e, nest.signature))
    if nest.repeats:
        repeating(body)
    elif across is not None:
        transposing(body, across)
    elif nest.unless_same:
        with e.when(e.compare("icmp ne", body.start(0), body.start(1))):
            _pointwise(body)
    elif not any(isinstance(step, Fold) for step in nest.steps):
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
        with e.when(e.compare("icmp eq", Register("%share", INDEX), e.index(0))):
            _store(body, nest.stores, Point([]))
        return
    inner = nest.inner
    chunks = e.binary("udiv", e.add(body.sizes[inner], BLOCK - 1), e.index(BLOCK))
    outer = [axis for axis in range(nest.axes) if axis != inner]
    if not outer:
        low, high = e.share(chunks)
        with e.loop(low, high) as chunk:
            _row(body, Point([chunk]), chunk)
        return
    _short_rows(body, outer, chunks)


def _short_rows(body: Body, outer: Sequence[int], chunks: Register) -> None:
    """Emit jobs of several rows along the last outer axis; a job computes its other indices once."""
    e, inner = body.e, body.nest.inner
    *others, second = outer
    rows = e.binary("udiv", e.index(BLOCK), e.binary("or", body.sizes[inner], e.index(1)))
    rows = e.add(rows, 1)
    groups = e.binary("udiv", e.add(e.add(body.sizes[second], rows), -1), rows)
    with jobs(body, others, groups, chunks) as (indices, (group, chunk)):
        first = e.mul(group, rows)
        last = e.least(e.add(first, rows), body.sizes[second])
        with e.loop(first, last) as place:
            _row(body, Point(at(indices, second, place)), chunk)


def _row(body: Body, around: Point, chunk: Register) -> None:
    """Emit the loop over a chunk of a row along the inner axis."""
    e, size = body.e, body.sizes[body.nest.inner]
    stores, start = body.nest.stores, e.mul(chunk, BLOCK)
    _hoist(body, [number for _, number in stores], around)
    along(body, around, start, e.least(e.add(start, BLOCK), size), lambda point: _store(body, stores, point))


def _store(body: Body, stores: Sequence[tuple[int, int]], point: Point) -> None:
    for access, number in stores:
        body.write(access, body.value(number, point), point)


def _hoist(body: Body, roots: Sequence[int], point: Point) -> None:
    """Emit, before a loop, the loop-invariant steps that the steps `roots` depend on."""
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
        pending += (
            step.operands if isinstance(step, Apply) else [step.place] if isinstance(step, TakeStep) else []
        )


def _waits(body: Body, number: int) -> bool:
    """Return whether a step depends on a fold; such a step is not hoisted."""
    step = body.nest.steps[number]
    if isinstance(step, Fold):
        return True
    return isinstance(step, Apply) and any(_waits(body, o) for o in step.operands)


# ---------------------------------------------------------------- folds along the inner axis


def _rows(body: Body, passes: Passes) -> None:
    nest = body.nest
    kept = [axis for axis in range(nest.axes) if not nest.reduced[axis]]
    scratch = Scratch(body, passes)
    with jobs(body, kept) as (indices, _):
        row = Point(indices)
        for number, roots in enumerate(passes.roots):
            row_pass(body, passes, scratch, number, roots, row)
        _store(body, passes.after(), row)


def row_pass(
    body: Body, passes: Passes, scratch: Scratch, number: int, roots: Sequence[int], row: Point
) -> None:
    """Emit one pass over a row: its folds, its stores, and the values that it keeps for later passes."""
    nest = body.nest
    folds = [n for n in roots if isinstance(nest.steps[n], Fold)]
    stored = [n for n in roots if not isinstance(nest.steps[n], Fold)]
    copies = _copies(passes)
    accumulators = {n: Accumulator(body, n, nest.lanes, copies) for n in folds}
    blocks = Blocks(body, accumulators.values(), nest.lanes * copies)
    roots_of_loops = [passes.operand(n) for n in folds] + stored

    def each(point: Point, copy: int) -> None:
        scratch.fetch(number, point)
        for n in folds:
            accumulators[n].add(copy, body.wide(passes.operand(n), point), point)
        _store(body, passes.inside(number), point)
        scratch.keep(number, point)

    _over_reduced(body, row, _Terms(each, copies, blocks), roots_of_loops)
    for n in folds:
        row.values[n] = accumulators[n].combined(blocks)


def _copies(passes: Passes) -> int:
    """Return the number of independent accumulators of a fold."""
    return 1 if passes.costly else 4


def block_of_rows(nest: Nest, passes: Passes) -> int:
    """Return the elements of a block of a row, a power of two: passes over a part of a row begin at one."""
    return nest.lanes * _copies(passes) * ADDITIONS


class _Terms(NamedTuple):
    """The body of a pass: `each` emits it for a vector and the number of one of the `copies` of accumulators.

    `blocks` are the blocks of the sums.
    """

    each: Callable[[Point, int], None]
    copies: int
    blocks: Blocks


def _over_reduced(body: Body, row: Point, terms: _Terms, wanted: Sequence[int]) -> None:
    """Emit the loops over the reduced axes; the inner one is vectorized, and unrolled `copies` times.

    Loop-invariant steps that the steps `wanted` depend on are hoisted out of the inner loop.
    """
    outer = [a for a in range(body.nest.axes) if body.nest.reduced[a] and a != body.nest.inner]

    def inside(point: Point, remaining: Sequence[int]) -> None:
        if not remaining:
            _hoist(body, wanted, point)
            _vectors(body, point, terms)
            return
        axis = remaining[0]
        with body.e.loop(body.e.index(0), body.sizes[axis]) as place:
            inside(Point(at(point.indices, axis, place), outer=row), remaining[1:])

    inside(row, outer)


def _vectors(body: Body, row: Point, terms: _Terms) -> None:
    e, lanes, inner = body.e, body.nest.lanes, body.nest.inner
    each, copies, blocks = terms
    size, step = body.sizes[inner], lanes * copies
    whole = e.binary("and", size, e.index(-lanes))
    start = e.binary("mul", e.binary("udiv", size, e.index(step)), e.index(step)) if copies > 1 else whole
    with e.loop(body.begin, start, step) as place:
        for copy in range(copies):
            each(at_lanes(row, inner, e.add(place, lanes * copy), lanes, None), copy)
        blocks.end_if_full(place)
    if copies > 1:
        with e.loop(start, whole, lanes) as place:
            each(at_lanes(row, inner, place, lanes, None), 0)
    with e.when(e.compare("icmp slt", whole, size)):
        each(at_lanes(row, inner, whole, lanes, mask_of(body, whole, size)), 0)
    blocks.count(e.binary("udiv", e.add(e.binary("sub", size, start), lanes - 1), e.index(lanes)))


class Scratch:
    """The values of a row that later passes read, in the scratch memory of this thread."""

    def __init__(self, body: Body, passes: Passes) -> None:
        e, nest = body.e, body.nest
        self._body, self._passes = body, passes
        self._bases: dict[int, Register] = {}
        if not passes.kept:
            return
        base = body.own_scratch()
        length = product_of(e, [body.sizes[a] for a in range(nest.axes) if nest.reduced[a]])
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
        """Emit the stores of the values that this pass computes and later passes read."""
        for number, made in self._passes.kept.items():
            if made == current:
                x = self._body.wide(number, point)
                x = self._body.e.convert("zext", x, "i8") if x.kind.scalar == "i1" else x
                self._body.e.store(x, self._address(number, point))

    def fetch(self, current: int, point: Point) -> None:
        """Emit the loads of the values that an earlier pass kept and this pass reads."""
        for number in self._passes.fetched[current]:
            element = self._body.nest.steps[number].element
            x = self._body.e.load(self._address(number, point), memory_kind(element, point.lanes))
            point.values[number] = from_memory(self._body.e, x, element)


# ---------------------------------------------------------------- folds along other axes


def _columns(body: Body, passes: Passes) -> None:
    e, nest, inner = body.e, body.nest, body.nest.inner
    lanes = nest.lanes
    outer = [axis for axis in range(nest.axes) if not nest.reduced[axis] and axis != inner]
    blocks = e.binary("udiv", e.add(body.sizes[inner], lanes - 1), e.index(lanes))
    if nest.together:
        _columns_together(body, passes, [axis for axis in outer if axis != nest.together[0]], blocks)
        return
    with jobs(body, outer, blocks) as (indices, (block,)):
        place = e.mul(block, lanes)
        column = Point(at(indices, inner, place), lanes, mask_of(body, place, body.sizes[inner]))
        for number in range(len(passes.roots)):
            _column_pass(body, passes, number, column, [column])
        _store(body, passes.after(), column)


def _columns_together(body: Body, passes: Passes, outer: Sequence[int], blocks: Register) -> None:
    """Emit jobs of several columns at adjacent places along an axis, which share what does not vary there."""
    e, nest = body.e, body.nest
    axis, count = nest.together
    if axis == nest.inner:
        _vectors_together(body, passes, outer, blocks)
        return
    groups = e.binary("udiv", body.sizes[axis], e.index(count))
    with jobs(body, outer, groups, blocks) as (indices, (group, block)):
        place, first = e.mul(block, nest.lanes), e.mul(group, count)
        mask = mask_of(body, place, body.sizes[nest.inner])
        shared = Point(at(at(indices, nest.inner, place), axis, first), nest.lanes, mask)
        columns = [
            Point(at(shared.indices, axis, e.add(first, n)), nest.lanes, mask, outer=shared)
            for n in range(count)
        ]
        _column_pass(body, passes, 0, shared, columns)
        for column in columns:
            _store(body, passes.after(), column)


def _vectors_together(body: Body, passes: Passes, outer: Sequence[int], blocks: Register) -> None:
    """Emit jobs of several vectors of columns side by side; those past the end are masked."""
    e, nest = body.e, body.nest
    axis, count = nest.together
    groups = e.binary("udiv", e.add(blocks, count - 1), e.index(count))
    with jobs(body, outer, groups) as (indices, (group,)):
        first = e.mul(group, count * nest.lanes)
        places = [e.add(first, n * nest.lanes) for n in range(count)]
        shared = Point(at(indices, axis, first), nest.lanes)
        columns = [
            Point(at(indices, axis, place), nest.lanes, mask_of(body, place, body.sizes[axis]), outer=shared)
            for place in places
        ]
        _column_pass(body, passes, 0, shared, columns)
        for column in columns:
            _store(body, passes.after(), column)


def _column_pass(body: Body, passes: Passes, number: int, shared: Point, columns: Sequence[Point]) -> None:
    """Emit one pass over columns of the same rows; values that they share are values of a point `shared`."""
    nest = body.nest
    folds = [n for n in passes.roots[number] if isinstance(nest.steps[n], Fold)]
    accumulators = [{n: Accumulator(body, n, nest.lanes, 1, columns=True) for n in folds} for _ in columns]
    blocks = Blocks(body, [a for found in accumulators for a in found.values()], 1)
    axes = [axis for axis in range(nest.axes) if nest.reduced[axis]]
    common = _shared_steps(nest, [passes.operand(n) for n in folds]) if len(columns) > 1 else []

    def inside(point: Point, remaining: Sequence[int]) -> None:
        if remaining:
            with body.e.loop(body.e.index(0), body.sizes[remaining[0]]) as place:
                indices = at(point.indices, remaining[0], place)
                inside(Point(indices, point.lanes, point.mask, outer=shared), remaining[1:])
                if len(remaining) == 1:
                    blocks.end_if_full(place)
            return
        here = Point(point.indices, point.lanes, point.mask, outer=shared)
        for n in common:
            body.value(n, here)
        for column, found in zip(columns, accumulators, strict=True):
            each = here
            if nest.together:
                axis = nest.together[0]
                each = Point(
                    at(here.indices, axis, column.indices[axis]), here.lanes, column.mask, outer=here
                )
            for n in folds:
                found[n].add(0, body.wide(passes.operand(n), each), each)
        _store(body, passes.inside(number), here)

    inside(shared, axes)
    for column, found in zip(columns, accumulators, strict=True):
        for n in folds:
            column.values[n] = found[n].combined(blocks)


def _shared_steps(nest: Nest, roots: Sequence[int]) -> list[int]:
    """Return the steps that several columns share of those that the steps `roots` depend on, in order."""
    varies = nest.varying(nest.together[0])
    pending, found = list(roots), set[int]()
    while pending:
        number = pending.pop()
        step = nest.steps[number]
        if not varies[number]:
            found.add(number)
        elif isinstance(step, Apply):
            pending += step.operands
    return sorted(found)
