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


class CacheEntry(NamedTuple):
    """One tensor of a cache: the input that takes it, and the output that is its next value.

    `shape` has the sizes of the tensor for a batch of one row and no position. `batch` and `positions` are axes;
    `positions` is None for a state that each run replaces. A `fixed` entry is computed by the first run (or by
    the encoder, where there is no `present`), and then stays.
    """

    past: str
    present: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    batch: int
    positions: int | None
    fixed: bool = False


class Cache:
    """The tensors of one or more rows, with the tokens whose positions they contain.

    Arrays are never written: forks, selections and rows share them where they can. `feeds`, `take`,
    `truncate`, `select`, `fork`, `row` and `stack` are all that the rest of the package needs.

    `context` has further inputs of each run that have one item for each row on axis 0: what an encoder
    computed.
    """

    def __init__(
        self, entries: Sequence[CacheEntry], rows: int = 1, context: Mapping[str, Array] | None = None
    ) -> None:
        self.tokens: list[list[int]] = [[] for _ in range(rows)]
        self.context: dict[str, Array] = dict(context or {})
        self.padding: Padding = "left"
        self.width = 0  # positions in the arrays: those of the longest row
        self._entries = tuple(entries)
        self._arrays: dict[str, Array] = {}

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
        return all(e.fixed or e.positions is not None for e in self._entries)

    def mask(self, new: int) -> npt.NDArray[np.bool_]:
        """Return which positions exist, of those in the arrays and `new` further ones: [rows, width + new]."""
        place = np.arange(self.width + new)
        lengths = self.lengths[:, None]
        if self.padding == "left":
            return place >= self.width - lengths
        return place < lengths + new

    def feeds(self) -> dict[str, Array]:
        """Return the inputs of the next run that the cache provides, by name."""
        empty = {e.past: self._empty(e) for e in self._entries if e.past not in self._arrays}
        return {**self.context, **empty, **self._arrays}

    def take(self, results: Mapping[str, Array], tokens: Sequence[Sequence[int]]) -> None:
        """Take the outputs of a run with these new tokens, equally many for each row."""
        for entry in self._entries:
            if not (entry.fixed and entry.past in self._arrays) and entry.present in results:
                self._arrays[entry.past] = results[entry.present]
        self.tokens = [[*old, *new] for old, new in zip(self.tokens, tokens, strict=True)]
        self.width += len(tokens[0])

    def truncate(self, length: int) -> None:
        """Remove the positions from `length` on; the rows must have the same length."""
        self.tokens = [t[:length] for t in self.tokens]
        if length < self.width:
            self._slice_positions(0, length)

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows, in this order; one may come several times."""
        if list(rows) == list(range(self.rows)):
            return
        for entry in self._entries:
            if entry.past in self._arrays:
                self._arrays[entry.past] = self._arrays[entry.past].take(rows, axis=entry.batch)
        self.context = {name: array.take(rows, axis=0) for name, array in self.context.items()}
        self.tokens = [list(self.tokens[r]) for r in rows]
        excess = self.width - max(map(len, self.tokens))
        if excess and self.padding == "left":
            self._slice_positions(excess, self.width)
        elif excess:
            self._slice_positions(0, self.width - excess)

    def fork(self) -> Self:
        """Return another cache of the same contents; each goes on alone."""
        copy = type(self)(self._entries, self.rows, self.context)
        copy.tokens = [list(t) for t in self.tokens]
        copy.padding, copy.width = self.padding, self.width
        copy._arrays = dict(self._arrays)  # ruff: ignore[private-member-access]  of the same class
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
        if len(caches) == 1:
            return first
        stacked = cls(first._entries)  # ruff: ignore[private-member-access]  of the same class
        stacked.tokens = [list(t) for c in caches for t in c.tokens]
        stacked.padding, stacked.width = padding, max(c.width for c in caches)
        stacked.context = {
            name: np.concatenate([c.context[name] for c in caches]) for name in first.context
        }
        stacked._arrays = {  # ruff: ignore[private-member-access]  of the same class
            e.past: np.concatenate([c._padded(e, stacked.width, padding) for c in caches], axis=e.batch)
            for e in first._entries  # ruff: ignore[private-member-access]  of the same class
            if e.past in first._arrays  # ruff: ignore[private-member-access]  of the same class
        }
        return stacked

    def _empty(self, entry: CacheEntry) -> Array:
        shape = list(entry.shape)
        shape[entry.batch] = self.rows
        if entry.fixed and entry.positions is not None and "states" in self.context:
            # nothing reads these, but they are declared with as many positions as the encoder has
            shape[entry.positions] = self.context["states"].shape[1]
        return np.zeros(shape, entry.dtype)

    def _slice_positions(self, start: int, stop: int) -> None:
        for entry in self._entries:
            if entry.positions is not None and not entry.fixed and entry.past in self._arrays:
                index = (slice(None),) * entry.positions + (slice(start, stop),)
                self._arrays[entry.past] = self._arrays[entry.past][index]
        self.width = stop - start

    def _padded(self, entry: CacheEntry, width: int, padding: Padding) -> Array:
        array = self._arrays[entry.past]
        missing = width - self.width
        if missing == 0 or entry.fixed or entry.positions is None:
            return array
        pads = [(0, 0)] * array.ndim
        pads[entry.positions] = (missing, 0) if padding == "left" else (0, missing)
        return np.pad(array, pads)
