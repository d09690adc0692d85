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


_LEAST = 64  # positions of the smallest buffer


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

    `feeds`, `reserve`, `take`, `truncate`, `select`, `fork`, `row` and `stack` are all that the rest of the
    package needs. The arrays may have room for more positions than there are. Forks share arrays with the
    original, so that arrays that may be shared are copied before anything is written into them.

    `context` has further inputs of each run with one item for each row on axis 0: what an encoder computed.
    """

    def __init__(
        self, entries: Sequence[CacheEntry], rows: int = 1, context: Mapping[str, Array] | None = None
    ) -> None:
        self.entries = tuple(entries)
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.context: dict[str, Array] = dict(context or {})
        self.padding: Padding = "left"
        self.width = 0  # positions in the arrays: those of the longest row
        self.arrays: dict[str, Array] = {}
        self.owns_arrays = False  # whether nothing else has them, and they may be written

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

    def feeds(self, *, in_place: bool = False) -> dict[str, Array]:
        """Return the inputs of the next run that the cache provides, by name.

        With `in_place` they are the buffers of `reserve`, else they have the positions that there are.
        """
        stored = {e.past: self._value(e) for e in self.entries}
        return {**self.context, **stored, **(self.arrays if in_place else {})}

    def reserve(self, new: int) -> dict[str, Array]:
        """Return buffers with room for `new` more positions, by the outputs that are written into them."""
        for entry in self.entries:
            if entry.grows and not self._has_room(entry, self.width + new):
                self.arrays[entry.past] = self._buffer(entry, self.width + new)
        self.owns_arrays = True
        return {e.present: self.arrays[e.past] for e in self.entries if e.grows}

    def take(self, results: Mapping[str, Array], tokens: Sequence[Sequence[int]]) -> None:
        """Take the outputs of a run with these new tokens, equally many for each row."""
        for entry in self.entries:
            if not (entry.fixed and entry.past in self.arrays) and entry.present in results:
                self.arrays[entry.past] = results[entry.present]
        self.tokens = [[*old, *new] for old, new in zip(self.tokens, tokens, strict=True)]
        self.width += len(tokens[0])

    def truncate(self, length: int) -> None:
        """Remove the positions from `length` on; the rows must have the same length."""
        self.tokens = [t[:length] for t in self.tokens]
        self.width = min(length, self.width)

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; one may come several times."""
        if list(rows) == list(range(self.rows)):
            return
        tokens = [list(self.tokens[r]) for r in rows]
        longest = max(map(len, tokens))
        start = self.width - longest if self.padding == "left" else 0
        for entry in self.entries:
            if entry.past in self.arrays:
                array = self.arrays[entry.past]
                if entry.grows:
                    array = _positions(array, entry, start, start + longest)
                self.arrays[entry.past] = array.take(rows, axis=entry.batch)
        self.context = {name: array.take(rows, axis=0) for name, array in self.context.items()}
        self.tokens, self.width = tokens, longest

    def fork(self) -> Self:
        """Return another cache of the same contents; each goes on alone."""
        self.owns_arrays = False
        copy = type(self)(self.entries, self.rows, self.context)
        copy.tokens = [list(t) for t in self.tokens]
        copy.padding, copy.width = self.padding, self.width
        copy.arrays = dict(self.arrays)
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
            if entry.past in first.arrays:
                parts = [_padded(c._value(entry), entry, stacked.width - c.width, padding) for c in caches]  # ruff: ignore[private-member-access]  of the same class
                stacked.arrays[entry.past] = np.concatenate(parts, axis=entry.batch)
        return stacked

    def _value(self, entry: CacheEntry) -> Array:
        """Return the tensor of an entry with the positions that there are."""
        array = self.arrays.get(entry.past)
        if array is None:
            return np.zeros(self._shape(entry, 0), entry.dtype)
        return _positions(array, entry, 0, self.width) if entry.grows else array

    def _has_room(self, entry: CacheEntry, positions: int) -> bool:
        array = self.arrays.get(entry.past)
        return self.owns_arrays and array is not None and array.shape[entry.positions or 0] >= positions

    def _buffer(self, entry: CacheEntry, positions: int) -> Array:
        """Return a copy of a tensor with room for these positions, and for as many more."""
        buffer = np.zeros(self._shape(entry, max(_LEAST, 1 << positions.bit_length())), entry.dtype)
        _positions(buffer, entry, 0, self.width)[...] = self._value(entry)
        return buffer

    def _shape(self, entry: CacheEntry, positions: int) -> list[int]:
        shape = list(entry.shape)
        shape[entry.batch] = self.rows
        if entry.grows:
            shape[entry.positions or 0] = positions
        elif entry.positions is not None and "states" in self.context:
            # nothing reads these, but they are declared with as many positions as the encoder has
            shape[entry.positions] = self.context["states"].shape[1]
        return shape


def _positions(array: Array, entry: CacheEntry, start: int, stop: int) -> Array:
    """Return a range of the positions of a tensor, as a view."""
    if start == 0 and stop == array.shape[entry.positions or 0]:
        return array
    return array[*(slice(None),) * (entry.positions or 0), slice(start, stop)]


def _padded(array: Array, entry: CacheEntry, missing: int, padding: Padding) -> Array:
    if missing == 0 or not entry.grows:
        return array
    pads = [(0, 0)] * array.ndim
    pads[entry.positions or 0] = (missing, 0) if padding == "left" else (0, missing)
    return np.pad(array, pads)
