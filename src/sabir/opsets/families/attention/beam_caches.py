"""Caches that the beams of a search share: which beam has the past key of each position.

Each search has its beams as consecutive items of the batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.elements import INT64
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention.attention_graphs import ints

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array


def of_beams(x: Array, beams: Array, filled: int) -> Array:
    """Return the rows of each item, (items, heads, rows, size), the first `filled` from other beams.

    `beams` has the shape (searches, beams, longest). Raises EvaluationError for one that does not fit.
    """
    items, width = len(x), beams.shape[1]
    if beams.shape[0] * width != items or beams.shape[2] < filled:
        raise EvaluationError(f"`cache_indirection` of the shape {list(beams.shape)} has not {items} items")
    chosen = beams[:, :, :filled].astype(np.int64)
    if np.any((chosen < 0) | (chosen >= width)):
        raise EvaluationError(f"`cache_indirection` must name beams from 0 to {width - 1}")
    sources = np.broadcast_to(np.arange(items)[:, None], (items, x.shape[2])).copy()
    sources[:, :filled] = chosen.reshape(items, filled) + np.arange(items)[:, None] // width * width
    return np.take_along_axis(x, sources[:, None, :, None], axis=0)


def emitted(b: Builder, x: Value, beams: Value, filled: Value) -> Value:
    """Emit `of_beams`; `filled` is a vector of one element."""
    items, width = graphs.size(b, x, 0), graphs.size(b, beams, 1)
    own = b.Unsqueeze(graphs.indices(b, items), ints(b, 1))
    first = b.Mul(b.Div(own, width), width)  # the first item of the same search
    places = graphs.indices(b, graphs.size(b, x, 2))
    chosen = b.Reshape(b.Cast(beams, to=INT64.number), b.Concat(items, ints(b, -1), axis=0))
    chosen = b.Gather(chosen, b.Min(places, b.Sub(graphs.size(b, beams, 2), ints(b, 1))), axis=1)
    sources = b.Where(b.Less(places, filled), b.Add(chosen, first), own)
    return b.GatherElements(x, b.Expand(b.Unsqueeze(sources, ints(b, 1, 3)), b.Shape(x)), axis=0)
