"""Caches that drop the keys before the window, as `sliding_caches` defines them, in graphs of opset 18."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.attention.sliding_caches import NO_KEY
from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from sabir.ir import Builder, Value


class SlidingCache(NamedTuple):
    """The rows of a cache, followed by those of new keys, and the rows of the cache after the call."""

    b: Builder
    positions: Value  # (batch, capacity + new): the position of each row
    sources: Value  # (batch, capacity): the row that each row of the next cache is, capacity + new for none

    @classmethod
    def of(cls, b: Builder, starts: Value, ends: Value, sizes: tuple[Value, int], new: Value) -> SlidingCache:
        """Emit the rows of a call; `sizes` are the capacity, a vector of one element, and the window."""
        capacity, _ = sizes
        places = graphs.indices(b, capacity)
        start, end = (b.Unsqueeze(t, ints(b, 1)) for t in (starts, ends))
        kept, count = (_resident(b, t, *sizes) for t in (start, end))
        first = b.Sub(start, kept)  # the position of row 0
        old = b.Where(b.Less(places, kept), b.Add(first, places), ints(b, NO_KEY))
        added = b.Add(start, graphs.indices(b, new))
        wanted = b.Add(b.Sub(end, count), places)
        later = b.Add(capacity, b.Sub(wanted, start))
        sources = b.Where(b.Less(wanted, start), b.Sub(wanted, first), later)
        sources = b.Where(b.Less(places, count), sources, b.Add(capacity, new))
        return cls(b, b.Concat(old, added, axis=1), sources)

    def allowed(self, own: Value, window: int) -> Value:
        """Emit which rows queries at the positions `own`, (batch, 1, queries, 1), attend to."""
        b, places = self.b, _over_keys(self.b, self.positions)
        near = b.And(b.LessOrEqual(places, own), b.Greater(places, b.Sub(own, ints(b, window))))
        return b.And(b.GreaterOrEqual(places, ints(b, 0)), near)

    def of_rows(self, bias: Value) -> Value:
        """Emit the bias of each row from that of each position, which is the last axis."""
        b = self.b
        front = b.Concat(b.Shape(self.positions, end=1), b.Shape(bias, start=1, end=3), axis=0)
        places = _over_keys(b, b.Max(self.positions, ints(b, 0)))
        wide, at = (_expanded(b, t, front) for t in (bias, places))
        return b.GatherElements(wide, at, axis=3)

    def next(self, rows: Value) -> Value:
        """Emit the next cache of all rows, (batch, heads, capacity + new, size), with zeros for no key."""
        b = self.b
        front, size = b.Shape(rows, end=2), graphs.size(b, rows, 3)
        zeros = b.Expand(Numbers.like(b, rows)(0), b.Concat(front, ints(b, 1), size, axis=0))
        shape = b.Concat(front, graphs.size(b, self.sources, 1), size, axis=0)
        at = b.Expand(b.Unsqueeze(self.sources, ints(b, 1, 3)), shape)
        return b.GatherElements(b.Concat(rows, zeros, axis=2), at, axis=2)


def _over_keys(b: Builder, positions: Value) -> Value:
    """Return (batch, rows) as (batch, 1, 1, rows)."""
    return b.Unsqueeze(positions, ints(b, 1, 2))


def _expanded(b: Builder, x: Value, front: Value) -> Value:
    """Expand the first three axes."""
    return b.Expand(x, b.Concat(front, graphs.size(b, x, 3), axis=0))


def _resident(b: Builder, keys: Value, capacity: Value, window: int) -> Value:
    """Emit how many rows of a cache have a key after this many keys."""
    step = b.Sub(capacity, ints(b, window - 1))
    excess = b.Max(b.Sub(keys, capacity), ints(b, 0))
    return b.Sub(keys, b.Mul(step, b.Div(b.Add(excess, b.Sub(step, ints(b, 1))), step)))
