"""The cache of a decoder: what it computed for the positions so far, from one run to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    import numpy.typing as npt

    from sabir.ir import Array

Padding: TypeAlias = Literal["left", "right"]
"""Where the unused positions of the shorter rows of a batch are."""


LEAST_ROOM = 256
"""Positions for which an array that runs write into has room at first; then the room is doubled."""


class CacheEntry(NamedTuple):
    """One tensor of a cache: the input that takes it, and the output that is its next value.

    `shape` has the sizes of the tensor for a batch of one row and no position; `batch` and `positions` are
    axes. `positions` is None for a state that each run replaces. A `fixed` entry is computed by the first
    run, or by the encoder if `present` is empty, and then stays.
    """

    past: str
    present: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    batch: int
    positions: int | None
    fixed: bool = False

    @property
    def grows(self) -> bool:
        """Whether each run adds positions."""
        return self.positions is not None and not self.fixed


class Cache:
    """The tensors of one or more rows, with the tokens whose positions they contain.

    An array may have room for more positions than there are. Forks, selections and rows share arrays where
    they can; `buffers` copies a shared array before a run writes into it.

    `context` has further inputs of each run with one item for each row on axis 0: what an encoder computed.
    """

    def __init__(
        self, entries: Sequence[CacheEntry], rows: int = 1, context: Mapping[str, Array] | None = None
    ) -> None:
        self.entries = tuple(entries)
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.context: dict[str, Array] = dict(context or {})
        self.padding: Padding = "left"
        self.width = 0  # positions: those of the longest row
        self.arrays: dict[str, Array] = {}
        self._own: set[str] = set()  # inputs whose arrays no other cache has

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.tokens)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How many positions each row has."""
        return np.array([len(t) for t in self.tokens], np.int64)

    @property
    def can_truncate(self) -> bool:
        """Whether positions can be removed: a state that each run replaces cannot go back."""
        return all(e.fixed or e.grows for e in self.entries)

    def mask(self, new: int) -> npt.NDArray[np.bool_]:
        """Return which positions exist, of those in the arrays and `new` more: [rows, width + new]."""
        place = np.arange(self.width + new)
        lengths = self.lengths[:, None]
        if self.padding == "left":
            return place >= self.width - lengths
        return place < lengths + new

    def feeds(self) -> dict[str, Array]:
        """Return the inputs of the next run that the cache provides, by name."""
        return {**self.context, **{e.past: self.filled(e) for e in self.entries}}

    def buffers(self, new: int) -> dict[str, Array]:
        """Return the arrays that grow, with room for `new` more positions, which a run may write."""
        for entry in self.entries:
            if entry.grows:
                self._make_room(entry, self.width + new)
        return {e.past: self.arrays[e.past] for e in self.entries if e.grows}

    def take(self, results: Mapping[str, Array], tokens: Sequence[Sequence[int]]) -> None:
        """Take the outputs of a run with these new tokens, equally many for each row."""
        for entry in self.entries:
            if not (entry.fixed and entry.past in self.arrays) and entry.present in results:
                self.arrays[entry.past] = results[entry.present]
                self._own.add(entry.past)
        self.tokens = [[*old, *new] for old, new in zip(self.tokens, tokens, strict=True)]
        self.width += len(tokens[0])

    def truncate(self, length: int) -> None:
        """Remove the positions from `length` on; the rows must have the same length."""
        self.tokens = [t[:length] for t in self.tokens]
        self._keep_positions(0, min(length, self.width))

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; one may come several times."""
        if list(rows) == list(range(self.rows)):
            return
        for entry in self.entries:
            if entry.past in self.arrays:
                self.arrays[entry.past] = self.arrays[entry.past].take(rows, axis=entry.batch)
                self._own.add(entry.past)
        self.context = {name: array.take(rows, axis=0) for name, array in self.context.items()}
        self.tokens = [list(self.tokens[r]) for r in rows]
        longest = max(map(len, self.tokens))
        start = self.width - longest if self.padding == "left" else 0
        self._keep_positions(start, start + longest)

    def fork(self) -> Self:
        """Return another cache of the same contents; each goes on alone."""
        copy = type(self)(self.entries, self.rows, self.context)
        copy.tokens = [list(t) for t in self.tokens]
        copy.padding, copy.width = self.padding, self.width
        copy.arrays = dict(self.arrays)
        self._own.clear()
        return copy

    def row(self, row: int) -> Self:
        """Return the cache of one row, without padding."""
        result = self.fork()
        result.select([row])
        return result

    @classmethod
    def stack(cls, caches: Sequence[Self], padding: Padding) -> Self:
        """Return the rows of all caches, which have no padding, as the rows of one."""
        first = caches[0]
        stacked = cls(first.entries)
        stacked.tokens = [list(t) for c in caches for t in c.tokens]
        stacked.padding, stacked.width = padding, max(c.width for c in caches)
        stacked.context = {n: np.concatenate([c.context[n] for c in caches]) for n in first.context}
        for entry in first.entries:
            parts = [
                _padded(c.filled(entry), entry, stacked.width - c.width, padding)
                for c in caches
                if entry.past in c.arrays
            ]
            if parts:
                stacked.arrays[entry.past] = np.concatenate(parts, axis=entry.batch)
        return stacked

    def _empty(self, entry: CacheEntry) -> Array:
        shape = list(entry.shape)
        shape[entry.batch] = self.rows
        if entry.fixed and entry.positions is not None and "states" in self.context:
            # nothing reads these, but they are declared with as many positions as the encoder has
            shape[entry.positions] = self.context["states"].shape[1]
        return np.zeros(shape, entry.dtype)

    def filled(self, entry: CacheEntry) -> Array:
        """Return the tensor of an entry without room for more positions."""
        if entry.past not in self.arrays:
            return self._empty(entry)
        array = self.arrays[entry.past]
        return array[_positions(entry, 0, self.width)] if entry.grows else array

    def _make_room(self, entry: CacheEntry, positions: int) -> None:
        """Give an entry an array of its own with at least so many positions."""
        array = self._empty(entry) if entry.past not in self.arrays else self.arrays[entry.past]
        axis = entry.positions or 0
        has_room = array.shape[axis] >= positions
        if has_room and entry.past in self._own and array.flags.c_contiguous:
            return
        shape = list(array.shape)
        shape[axis] = array.shape[axis] if has_room else max(LEAST_ROOM, 2 * positions)
        buffer = np.zeros(shape, entry.dtype)
        filled = _positions(entry, 0, min(self.width, array.shape[axis]))
        buffer[filled] = array[filled]
        self.arrays[entry.past] = buffer
        self._own.add(entry.past)

    def _keep_positions(self, start: int, stop: int) -> None:
        if start > 0:
            for entry in self.entries:
                if entry.grows and entry.past in self.arrays:
                    self.arrays[entry.past] = self.arrays[entry.past][_positions(entry, start, stop)]
        self.width = stop - start


def _positions(entry: CacheEntry, start: int, stop: int) -> tuple[slice, ...]:
    """Return the index of some positions of the tensor of an entry that grows."""
    return (*(slice(None),) * (entry.positions or 0), slice(start, stop))


def _padded(array: Array, entry: CacheEntry, missing: int, padding: Padding) -> Array:
    if missing == 0 or not entry.grows:
        return array
    pads = [(0, 0)] * array.ndim
    pads[entry.positions or 0] = (missing, 0) if padding == "left" else (0, missing)
    return np.pad(array, pads)
