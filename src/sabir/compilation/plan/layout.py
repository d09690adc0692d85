"""The layout of a plan for the sizes of a run: blocks of arguments, and offsets of buffers in the arena.

Nothing is compiled here: kernels take sizes, strides and offsets as arguments. If evaluated calls decide
sizes, the plan has several parts: a part has its own arena, and is laid out when its sizes are known.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ALIGNMENT, UnsupportedError, aligned_start
from sabir.compilation.plan.bands import BANDS, CALLS
from sabir.compilation.plan.bounds import Needs, check_reaches, needs
from sabir.compilation.plan.entries import (
    ARENA,
    FIRST,
    SCRATCH,
    BandParts,
    Buffer,
    BufferNumber,
    Computed,
    Entry,
    EvaluatedEntry,
    KernelPlan,
    Mismatch,
    Offset,
)
from sabir.compilation.plan.rows import KernelCall, rows_of
from sabir.compilation.plan.signature import words_of
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sabir.compilation.plan.bounds import ComputedTensor
    from sabir.compilation.plan.entries import Argument
    from sabir.compilation.plan.signature import Packable
    from sabir.ir import Array
    from sabir.loops import Size

_MOST_PARTS = 1024  # of a plan: the layout of a part depends on all parts before it


class PlanPart(NamedTuple):
    """The entries from `first` to before `last`, whose sizes are known together.

    `arena` is the number of the buffer of its arena, `owned` the buffers in it. `filled` are the outputs and
    the buffers of known contents that this part uses first. `values` are the tensors whose sizes are known
    from this part on. `arenas` has the number of the arena of each buffer, in all parts.
    """

    first: int
    last: int
    arena: int
    owned: list[Buffer]
    filled: list[Buffer]
    values: list[ComputedTensor]
    arenas: Mapping[Buffer, int]


class PartLayout(NamedTuple):
    """A part laid out for the sizes of a run.

    `rows` are the rows of the native plan, which point into `blocks`; `owners` has the number of the entry of
    each row. `runs` has, in order, either the range `(first, end)` of rows of kernels that run together, or
    the number of an evaluated entry. `offsets` are the offsets of the arena buffers of this part and all
    before it. `needs` counts the tensors whose sizes are known from this part on.
    """

    rows: Array
    blocks: Array
    owners: Array
    runs: tuple[tuple[int, int] | int, ...]
    arena_bytes: int
    scratch_bytes: int
    offsets: dict[Buffer, int]
    output_bytes: int = 0
    needs: Needs = Needs(0, 0)


class RunSizes:
    """The sizes of the symbols of a run; evaluates symbolic sizes."""

    def __init__(self, symbols: Mapping[str, int]) -> None:
        self.symbols = dict(symbols)
        self._found: dict[Expr, int] = {}

    def __call__(self, size: Size) -> int:
        """Return a size as a number."""
        if type(size) is int:
            return size
        if not isinstance(size, Expr):
            return int(size)
        found = self._found.get(size)
        if found is None:
            value = size.substitute(self.symbols)
            if not isinstance(value, int):
                raise KeyError(f"the size {size} is not known")
            found = self._found[size] = value
        return found

    def get(self, size: Size) -> int | None:
        """Return a size as a number; None if only a run decides it."""
        try:
            return self(size)
        except KeyError:
            return None


def plan_parts(plan: KernelPlan, symbols: frozenset[str]) -> list[PlanPart]:
    """Return the parts of a plan; each but the first begins after an evaluated call that decides sizes.

    `symbols` are those whose sizes the feeds decide. Raises AssertionError for a plan that needs a size
    before it is decided.
    """
    spans: list[tuple[int, int]] = []
    known, first = dict.fromkeys(symbols, 0), 0  # symbols, with the first part in which they are known
    for number, entry in enumerate(plan.entries):
        open_ = _needed(entry) - known.keys()
        if open_:
            raise AssertionError(f"entry {number} needs {', '.join(sorted(open_))} before a run decides it")
        if isinstance(entry, EvaluatedEntry):
            shapes = [*(b.shape for b in entry.writes.values()), *entry.decides.values()]
            new = {s for shape in shapes for s in _symbols(shape)} - known.keys()
            if new:
                spans.append((first, number + 1))
                first = number + 1
                known |= dict.fromkeys(new, len(spans))
    spans.append((first, len(plan.entries)))
    if len(spans) > _MOST_PARTS:
        raise UnsupportedError(f"calls decide sizes {len(spans):,} times, at most {_MOST_PARTS:,}")
    return _with_facts(plan, spans, known)


def _with_facts(
    plan: KernelPlan, spans: Sequence[tuple[int, int]], known: Mapping[str, int]
) -> list[PlanPart]:
    """Return the parts of spans of entries, with their buffers and values: there may be hundreds of parts."""
    base = 1 + max([SCRATCH, *(b.number for b in plan.buffers)])
    starts = [first for first, _ in spans]
    arenas: dict[Buffer, int] = {}
    parts = [PlanPart(*span, base + number, [], [], [], arenas) for number, span in enumerate(spans)]
    for buffer in plan.buffers:
        if buffer.kind == "arena" and buffer.first >= 0:
            part = parts[bisect_right(starts, buffer.first) - 1]
            part.owned.append(buffer)
            arenas[buffer] = part.arena
        elif buffer.kind in {"output", "known"}:
            parts[bisect_right(starts, max(buffer.first, 0)) - 1].filled.append(buffer)
    for value in plan.values:
        number = max((known.get(s, len(parts)) for s in _symbols(value.shape)), default=0)
        if number < len(parts):
            parts[number].values.append(value)
    return parts


def _symbols(sizes: Iterable[object]) -> Iterator[str]:
    for size in sizes:
        if isinstance(size, Expr):
            yield from size.symbols


def _needed(entry: Entry | EvaluatedEntry) -> set[str]:
    """Return the symbols whose sizes the layout of an entry needs."""
    found: list[object] = []
    if isinstance(entry, EvaluatedEntry):
        for buffer, offset, strides, shape in entry.reads.values():
            found += [buffer.size, offset, *strides, *shape]
    else:
        found += [entry.scratch, *(b.size for b in entry.buffers)]
        found += [] if entry.bands is None else [entry.bands.items]
        for limit, _, _, arguments in entry.choices:
            found.append(limit)
            for a in arguments:
                if type(a) is not int and type(a) is not BufferNumber:  # as nearly all arguments are
                    found += (
                        [a.bytes] if isinstance(a, Offset) else a.sizes if isinstance(a, Computed) else [a]
                    )
    return set(_symbols(found))


def lay_out(
    plan: KernelPlan, part: PlanPart, sizes: RunSizes, addresses: Mapping[object, int],
    earlier: Mapping[Buffer, int], threads: int, room: RunSizes | None = None,
) -> PartLayout:  # fmt: skip
    """Return the layout of a part for the sizes of a run; raises Mismatch for sizes that violate bounds.

    `addresses` has the address of each kernel, `earlier` the offsets of the buffers of earlier parts,
    `threads` is the number of threads that run it. Arena and scratch memory are large enough for the sizes
    `room`, by default those of the run.
    """
    entries = plan.entries[part.first : part.last]
    needed = needs(part.values, sizes)
    check_reaches(entries, sizes)
    room = room or sizes
    offsets, arena = _arena(part, room)
    offsets = {**earlier, **offsets}
    outputs = sum(sizes(b.size) for b in part.filled if b.kind == "output")
    scratch = max((room(e.scratch) for e in entries if isinstance(e, Entry)), default=0)
    rows = rows_of([
        _call(number, entry, sizes, addresses, offsets, part.arenas, plan.fine_work * threads)
        for number, entry in enumerate(entries, part.first)
        if isinstance(entry, Entry)
    ])
    scratch = -(-scratch // ALIGNMENT) * ALIGNMENT
    runs = _runs(entries, part.first, rows.owners)
    return PartLayout(rows.rows, rows.memory, rows.owners, runs, arena, scratch, offsets, outputs, needed)


def _call(
    number: int, entry: Entry, sizes: RunSizes, addresses: Mapping[object, int],
    offsets: Mapping[Buffer, int], arenas: Mapping[Buffer, int], fine: int,
) -> KernelCall:  # fmt: skip
    """Return the call of an entry; from `fine` operations on, a thread may claim several shares."""
    _, _, spec, arguments = choice_of(entry, sizes)
    if entry.bands is None:
        block = [_argument(a, sizes, offsets, arenas) for a in arguments]
    else:
        block = _of_bands(entry, entry.bands, sizes, addresses, offsets, arenas)
    times = 1 if entry.loop is None else sizes(entry.loop.count)
    if entry.writes and not any(sizes(b.size) for b in entry.writes):
        first, end = entry.loops
        block[first:end] = [0] * (end - first)  # a loop over 2 ** 40 rows of no elements must not run
        times = min(times, 1)
    is_fine = entry.loop is None and not (entry.alone or entry.whole) and sizes(entry.flops) >= fine
    target = None if entry.jumps is None else entry.jumps.entry
    return KernelCall(number, addresses[spec], block, entry.loop, times, is_fine, target)


def _runs(
    entries: Sequence[Entry | EvaluatedEntry], first: int, owners: Array
) -> tuple[tuple[int, int] | int, ...]:  # fmt: skip
    """Return the ranges of rows of kernels that run together, and between them the evaluated entries."""
    found: list[tuple[int, int] | int] = []
    start = 0
    for number, entry in enumerate(entries, first):
        if isinstance(entry, Entry):
            continue
        end = int(np.searchsorted(owners, number))
        found += [(start, end), number] if start < end else [number]
        start = end
    return (*found, (start, len(owners))) if start < len(owners) else tuple(found)


def choice_of(entry: Entry, sizes: RunSizes) -> tuple[Any, int, Any, list[Any]]:
    """Return the variant of an entry for the sizes of a run."""
    for choice in entry.choices[:-1]:
        if choice[0] is not None and sizes(choice[0]) <= choice[1]:
            return choice
    return entry.choices[-1]


def _argument(a: Any, sizes: RunSizes, offsets: Mapping[Buffer, int], arenas: Mapping[Buffer, int]) -> int:
    if type(a) is int:  # there are thousands of arguments: a match takes twice as long
        return a
    if type(a) is BufferNumber:
        return arenas.get(a.buffer, a.buffer.number)
    if type(a) is Offset:
        return offsets.get(a.buffer, 0) + sizes(a.bytes)
    return a.function(*map(sizes, a.sizes)) if type(a) is Computed else sizes(a)


def _of_bands(
    entry: Entry, bands: BandParts, sizes: RunSizes, addresses: Mapping[object, int],
    offsets: Mapping[Buffer, int], arenas: Mapping[Buffer, int],
) -> list[int]:  # fmt: skip
    """Return the block of a loop over bands.

    The kernels of bands have a separate table of buffers, with the intermediate tensors in place of the
    arena.
    """
    numbers = {b: number for number, b in enumerate(entry.buffers, FIRST)} | dict.fromkeys(bands.own, ARENA)
    ends = [0, *itertools.accumulate(bands.own.values())]
    own = {**offsets, **dict(zip(bands.own, ends, strict=False))}
    tensors = [_moving(buffer, bands, arenas) for buffer in entry.buffers]
    start = BANDS.words + len(tensors) * words_of(BANDS.find("tensors")[1])
    body: list[int] = []
    lists: list[Argument] = []
    for variant in bands.variants:
        found = RunSizes({**sizes.symbols, **variant})
        parts = [part for part, rows in bands.parts if found(rows) > 0]
        check_reaches(parts, found)
        calls: list[Mapping[str, Packable]] = []
        for part in parts:
            _, _, spec, arguments = choice_of(part, found)
            calls.append({"kernel": addresses[spec], "block": start + len(body)})
            body += [_argument(a, found, own, numbers) for a in arguments]
        lists.append(start + len(body))
        body += _numbers(CALLS.pack({"count": len(calls), "calls": calls}), sizes)
    head = BANDS.pack({
        "items": bands.items, "bands": bands.count, "scratch_bytes": entry.scratch, "own_bytes": ends[-1],
        "lists": lists, "tensor_count": len(tensors), "tensors": tensors,
    })  # fmt: skip
    return [*_numbers(head, sizes), *body]


def _moving(buffer: Buffer, bands: BandParts, arenas: Mapping[Buffer, int]) -> dict[str, Packable]:
    """Return the buffer of a tensor of bands, and by how many bytes it moves."""
    item, band = bands.moves.get(buffer, (0, 0))
    return {"buffer": arenas.get(buffer, buffer.number), "item": item, "band": band}


def _numbers(block: Sequence[Argument], sizes: RunSizes) -> list[int]:
    """Return the words of a block without buffers."""
    return [_argument(a, sizes, {}, {}) for a in block]


def _arena(part: PlanPart, sizes: RunSizes) -> tuple[dict[Buffer, int], int]:
    """Return the offset of each buffer in the arena, by liveness and best fit, and the bytes of the arena."""
    offsets: dict[Buffer, int] = {}
    alive: list[tuple[int, int, int]] = []  # (offset, end, last entry)
    total = 0
    for buffer in sorted(part.owned, key=lambda b: (b.first, -sizes(b.size))):
        size = -(-max(sizes(buffer.size), 1) // ALIGNMENT) * ALIGNMENT
        alive = sorted(a for a in alive if a[2] >= buffer.first)
        best, at, low = None, 0, 0
        for offset, end, _ in alive:
            gap = offset - low
            if gap >= size and (best is None or gap < best):
                best, at = gap, low
            low = max(low, end)
        if best is None:
            at = low
        last = buffer.last if buffer.last < part.last else 1 << 60
        alive.append((at, at + size, last))
        offsets[buffer] = at
        total = max(total, at + size)
    return offsets, total


def aligned(size: int) -> Array:
    """Return memory that begins at a multiple of 64 bytes; raises Mismatch if there is not enough."""
    memory = allocated((size + ALIGNMENT,), np.dtype(np.uint8))
    start = aligned_start(memory)
    return memory[start : start + size]


def allocated(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an uninitialized array; raises Mismatch if there is not enough memory."""
    try:
        return np.empty(shape, dtype)
    except (MemoryError, ValueError, OverflowError) as error:
        raise Mismatch(f"there is no memory for {shape} of {dtype}") from error


__all__ = [
    "ARENA",
    "PartLayout",
    "PlanPart",
    "RunSizes",
    "aligned",
    "allocated",
    "choice_of",
    "lay_out",
    "plan_parts",
]
