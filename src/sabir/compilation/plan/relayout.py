"""A layout that follows the sizes of runs: the numbers in its blocks change, and all else stays.

A decoder that reads a cache runs with one more row each time. Its memory is laid out for somewhat larger
sizes, and each run only evaluates the sizes in the blocks of arguments (`SizeTable`), and compares them with
the bounds that a new layout would check.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import ALIGNMENT
from sabir.compilation.plan.bounds import MOST_ELEMENTS, Needs
from sabir.compilation.plan.entries import Computed, Entry, Mismatch, Offset
from sabir.compilation.plan.layout import RunSizes, choice_of, lay_out
from sabir.compilation.plan.rows import FINE
from sabir.compilation.plan.size_table import SizeTable
from sabir.ir import Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sabir.compilation.plan.bounds import ComputedTensor, Reach
    from sabir.compilation.plan.entries import Argument, Buffer, KernelPlan
    from sabir.compilation.plan.layout import PartLayout, PlanPart
    from sabir.ir import Array
    from sabir.loops import Size


_FLAGS = 2  # the column of rows with flags


class Outgrown(Mismatch):
    """A run needs another layout of the plan."""


class Condition(NamedTuple):
    """A condition on sizes: `chosen` is the `min` or `max` of itself and the `others`, or `equal` to them."""

    op: str
    chosen: Size
    others: Sequence[Size]


class LayoutState(NamedTuple):
    """The blocks of arguments and the flags of the rows of a layout, for some sizes."""

    blocks: Array
    flags: Array

    @property
    def nbytes(self) -> int:
        """The bytes that it takes."""
        return self.blocks.nbytes + self.flags.nbytes


class _Words(NamedTuple):
    """Words of the blocks: their places, the rows of their sizes, and offsets to add."""

    places: Array
    rows: Array
    offsets: Array


class _ComputedWord(NamedTuple):
    place: int
    function: Callable[..., int]
    rows: list[int]


class MovingLayout:
    """A layout of a plan of one part, for sizes up to some `room`: `move` changes it for those of a run.

    `layout` has the rows and blocks, which are this object's own, so one run at a time may use it.
    """

    def __init__(
        self, plan: KernelPlan, part: PlanPart, sizes: Mapping[str, int], room: Mapping[str, int],
        conditions: Iterable[Condition], addresses: Mapping[object, int], threads: int,
    ) -> None:  # fmt: skip
        """Lay a plan out.

        Raises Mismatch if there is no layout for these sizes, or the plan has entries that cannot follow
        them: loops over entries, and bands.
        """
        entries = [e for e in plan.entries if isinstance(e, Entry)]
        if any(e.loop is not None or e.bands is not None for e in entries):
            raise Mismatch("a loop over kernels is laid out anew for other sizes")
        if any(
            _is_empty(e, RunSizes(sizes)) and any(isinstance(b.size, Expr) for b in e.writes) for e in entries
        ):
            raise Mismatch("results are empty, and would not be for other sizes")
        found, self._memory = RunSizes(sizes), RunSizes(room)
        self.layout = layout = lay_out(plan, part, found, addresses, {}, threads, self._memory)
        self.table = SizeTable()
        self._words, self._computed = self._arguments(entries, found, layout.offsets)
        self._last_arguments: Array = np.empty(0, np.int64)
        self._choices = _Choices(self.table, entries, found)
        shared = [
            (number, e)
            for number, e in enumerate(plan.entries)
            if isinstance(e, Entry) and not (e.alone or e.whole)
        ]
        self._fineness = _Fineness(self.table, shared, layout, plan.fine_work * threads)
        self._memories = _Memories(self.table, entries, part, layout, self._memory)
        self._reaches = _Reaches(self.table, [r for e in entries for r in e.reaches])
        self._tensors = _Tensors(self.table, part.values)
        self._conditions = _Conditions(self.table, conditions)

    def move(self, symbols: Mapping[str, int]) -> Array:
        """Change the layout for the sizes of a run; return the numbers of all rows of `table`.

        Raises Outgrown if these sizes need another layout, and Mismatch if none is valid; the layout is then
        undefined.
        """
        values = self.table.values(symbols)
        for each in (self._conditions, self._choices, self._memories, self._reaches, self._tensors):
            each.check(values)
        blocks, words = self.layout.blocks, self._words
        blocks[words.places] = values[words.rows] + words.offsets
        for word in self._computed:
            blocks[word.place] = word.function(*values[word.rows].tolist())
        self._fineness.write(values)
        return values

    def needs(self, values: Array) -> Needs:
        """Return what limits bound, for the numbers that `move` has returned."""
        return self._tensors.needs(values)

    def state(self) -> LayoutState:
        """Return what `move` has changed, for `restore`."""
        return LayoutState(self.layout.blocks.copy(), self.layout.rows[:, _FLAGS].copy())

    def restore(self, state: LayoutState) -> None:
        """Change the layout to a state that it had before."""
        self.layout.blocks[:] = state.blocks
        self.layout.rows[:, _FLAGS] = state.flags

    def _arguments(
        self, entries: Sequence[Entry], sizes: RunSizes, offsets: Mapping[Buffer, int]
    ) -> tuple[_Words, list[_ComputedWord]]:
        """Return the words that follow sizes."""
        words: list[tuple[int, int, int]] = []
        computed: list[_ComputedWord] = []
        blocks = [choice_of(entry, sizes)[3] for entry in entries]
        starts = accumulate(map(len, blocks), initial=0)
        for entry, block, start in zip(entries, blocks, starts, strict=False):
            empty = range(*entry.loops) if _is_empty(entry, sizes) else range(0)
            for place, argument in enumerate(block):
                if place in empty or not _moves(argument):
                    continue
                if isinstance(argument, Computed):
                    computed.append(
                        _ComputedWord(start + place, argument.function, self.table.rows(argument.sizes))
                    )
                    continue
                is_offset = isinstance(argument, Offset)
                size: Any = argument.bytes if is_offset else argument
                offset = offsets.get(argument.buffer, 0) if is_offset else 0
                words.append((start + place, self.table.add(size), offset))
        return _Words(*np.array(words, np.int64).reshape(-1, 3).T), computed


def _is_empty(entry: Entry, sizes: RunSizes) -> bool:
    return bool(entry.writes) and not any(sizes(b.size) for b in entry.writes)


def _moves(argument: Argument) -> bool:
    if isinstance(argument, Offset):
        return isinstance(argument.bytes, Expr)
    if isinstance(argument, Computed):
        return any(isinstance(size, Expr) for size in argument.sizes)
    return isinstance(argument, Expr)


class _Conditions:
    """The guards of a plan."""

    def __init__(self, table: SizeTable, conditions: Iterable[Condition]) -> None:
        rows: dict[str, list[tuple[int, int]]] = {"min": [], "max": [], "equal": []}
        for op, chosen, others in conditions:
            rows[op] += [(table.add(chosen), table.add(other)) for other in others]
        self._low = _pairs([*rows["min"], *((b, a) for a, b in rows["max"])])
        self._equal = _pairs(rows["equal"])

    def check(self, values: Array) -> None:
        (low, high), (a, b) = self._low, self._equal
        if (values[low] > values[high]).any() or (values[a] != values[b]).any():
            raise Mismatch("the sizes violate a guard of the plan")


def _pairs(pairs: Sequence[tuple[int, int]]) -> Array:
    return np.array(pairs, np.int64).reshape(-1, 2).T


class _Choices:
    """The kernels that entries choose by a size: each size stays between two limits."""

    def __init__(self, table: SizeTable, entries: Iterable[Entry], sizes: RunSizes) -> None:
        most, least = list[tuple[int, int]](), list[tuple[int, int]]()
        for entry in entries:
            for size, limit, _, _ in entry.choices[:-1]:
                if size is None:
                    continue
                if sizes(size) <= limit:
                    most.append((table.add(size), limit))
                    break
                least.append((table.add(size), limit))
        self._most, self._least = _pairs(most), _pairs(least)

    def check(self, values: Array) -> None:
        (size, most), (other, least) = self._most, self._least
        if (values[size] > most).any() or (values[other] <= least).any():
            raise Outgrown("other kernels compute these sizes")


class _Fineness:
    """The flag of each row whose entry may have several shares for each thread.

    `shared` are these entries with their numbers.
    """

    def __init__(
        self, table: SizeTable, shared: Sequence[tuple[int, Entry]], layout: PartLayout, fine: int
    ) -> None:
        self._rows = np.searchsorted(layout.owners, np.array([n for n, _ in shared], np.int64))
        self._flops = np.array(table.rows(entry.flops for _, entry in shared), np.int64)
        self._flags, self._fine = layout.rows[:, _FLAGS], fine

    def write(self, values: Array) -> None:
        self._flags[self._rows] = np.where(values[self._flops] >= self._fine, FINE, 0)


class _Memories:
    """The bytes of buffers and scratch memory: no more than the layout has, and as many buffers empty."""

    def __init__(
        self, table: SizeTable, entries: Iterable[Entry], part: PlanPart, layout: PartLayout, room: RunSizes
    ) -> None:  # fmt: skip
        owned = {b: -(-max(room(b.size), 1) // ALIGNMENT) * ALIGNMENT for b in part.owned}
        limits = [(table.add(b.size), most) for b, most in owned.items() if isinstance(b.size, Expr)]
        scratch = {e.scratch for e in entries if isinstance(e.scratch, Expr)}
        self._most = _pairs([*limits, *((table.add(size), layout.scratch_bytes) for size in scratch)])
        written = [[b.size for b in e.writes] for e in entries if e.writes]
        moving = [sizes for sizes in written if any(isinstance(size, Expr) for size in sizes)]
        self._written = table.padded(moving, 0)

    def check(self, values: Array) -> None:
        rows, most = self._most
        if (values[rows] > most).any():
            raise Outgrown("the run needs more memory than the layout has")
        if not (values[self._written] > 0).any(axis=1).all():
            raise Outgrown("results are empty")


class _Reaches:
    """The memory that kernels touch, as `bounds.check_reaches` compares it."""

    def __init__(self, table: SizeTable, reaches: Sequence[Reach]) -> None:
        different = {
            (r.width, r.offset, r.buffer.size, tuple(r.extents), tuple(r.takes)): r
            for r in reaches
            if _reach_moves(r)
        }
        moving = [*different.values()]  # the layers of a network have equal ones
        self._offsets = np.array(table.rows(r.offset for r in moving), np.int64)
        self._bytes = np.array(table.rows(r.buffer.size for r in moving), np.int64)
        self._widths = np.array([r.width for r in moving], np.int64)
        self._counts = table.padded([[n for n, _ in r.extents] for r in moving], 1)
        self._strides = table.padded([[n for _, n in r.extents] for r in moving], 0)
        self._takes = table.padded([[n for n, _ in r.takes] for r in moving], 1)
        self._steps = table.padded([[n for _, n in r.takes] for r in moving], 0)

    def check(self, values: Array) -> None:
        counts, strides, takes = values[self._counts], values[self._strides], values[self._takes]
        if (counts < 0).any():
            raise Mismatch("a loop has a negative size")
        empty = ((counts == 0) & (strides != 0)).any(axis=1)
        if ((takes < 1).any(axis=1) & ~empty).any():
            raise Mismatch("indices choose from an axis without elements")
        spans = np.maximum(counts - 1, 0) * strides
        jumps = (takes - 1) * (values[self._steps] // self._widths[:, None])
        low = np.minimum(spans, 0).sum(axis=1) + np.minimum(jumps, 0).sum(axis=1)
        high = np.maximum(spans, 0).sum(axis=1) + np.maximum(jumps, 0).sum(axis=1)
        low, high = low + values[self._offsets], high + values[self._offsets]
        outside = (low < 0) | ((high + 1) * self._widths > values[self._bytes])
        if (outside & ~empty).any():
            raise Mismatch("a kernel would touch memory outside of a tensor")


def _reach_moves(reach: Reach) -> bool:
    sizes = [reach.offset, reach.buffer.size, *(n for pair in (*reach.extents, *reach.takes) for n in pair)]
    return any(isinstance(size, Expr) for size in sizes)


class _Tensors:
    """The tensors that kernels compute: none has a negative size, and limits count their elements."""

    def __init__(self, table: SizeTable, tensors: Sequence[ComputedTensor]) -> None:
        work: dict[tuple[Size, ...], int] = {}
        for tensor in tensors:  # the layers of a network have tensors of equal shapes
            shape = tuple(tensor.shape)
            work[shape] = work.get(shape, 0) + tensor.width + tensor.work
        self._shapes = table.padded([*work], 1)
        self._work = np.array([*work.values()], np.float64)

    def check(self, values: Array) -> None:
        if (values[self._shapes] < 0).any() or self._counts(values).max(initial=0) > MOST_ELEMENTS:
            raise Mismatch("a tensor has a shape that no memory holds")

    def needs(self, values: Array) -> Needs:
        counts = self._counts(values)
        return Needs(int(counts.max(initial=0)), int(counts @ self._work))

    def _counts(self, values: Array) -> Array:
        return values[self._shapes].astype(np.float64).prod(axis=1)


__all__ = ["Condition", "LayoutState", "MovingLayout", "Outgrown"]
