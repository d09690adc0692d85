"""Batches without padding: the rows of all items in turn, and their places in a batch with padding.

`offsets` has the shape (batch, length); its first elements are the places of the rows, then of padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.elements import FLOAT, INT64
from sabir.ir import add
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attentions
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.ranks import check_broadcast, check_rank, check_shape

if TYPE_CHECKING:
    from sabir.ir import Builder, Dim, TensorType, Value
    from sabir.opsets.typing import Array

_LOWEST = float(np.finfo(np.float32).min)


def check_places(offsets: TensorType, rows: Dim) -> None:
    """Raise InferenceError where there are fewer places than rows."""
    check_rank("token_offset", offsets, 2)
    if isinstance(rows, int) and isinstance(offsets.size, int) and rows > offsets.size:
        raise InferenceError(f"`token_offset` must have {rows} places or more, and is {offsets}")


def check(offsets: TensorType, sums: TensorType, bias: TensorType | None, rows: Dim, heads: int) -> None:
    """Raise InferenceError where the places, the starts or a bias of the scores have other shapes."""
    check_places(offsets, rows)
    batch, length = offsets.shape or (None, None)
    check_shape("cumulative_sequence_length", sums, add(batch, 1))
    check_broadcast("attention_bias", bias, (batch, heads, length, length))
    check_shape("attention_bias", bias, None, None, length, length)


def restored(x: Array, offsets: Array) -> Array:
    """Return (rows, width) as (batch, length, width), with zeros for padding."""
    places = offsets.reshape(-1)[: len(x)].astype(np.int64)
    if len(places) < len(x) or np.any((places < 0) | (places >= offsets.size)):
        raise EvaluationError(f"`token_offset` must have {len(x)} places from 0 to {offsets.size - 1}")
    full = np.zeros((offsets.size, x.shape[1]), x.dtype)
    full[places] = x
    return full.reshape(*offsets.shape, x.shape[1])


def attend(
    parts: tuple[Array, Array, Array], offsets: Array, sums: Array, bias: Array | None, heads: int,
    scale: float | None,
) -> Array:  # fmt: skip
    """Return the results of the rows of queries, keys and values, (rows, heads * size), of one length.

    `sums` has the shape (batch + 1): the row at which each item starts.
    """
    q, k, v = (attentions.split(restored(x, offsets), heads) for x in parts)
    ends = np.diff(sums.astype(np.int64))
    kept = attentions.before_end(k.shape[2], ends)
    masks = attentions.ScoreMasks(None if bias is None else widened(bias), kept)
    stages = attentions.ScoreStages(scale or attentions.default_scale(q.shape[3]))
    y = attentions.joined(attentions.attend(q, k, v, masks, stages)[0])
    return y.reshape(offsets.size, -1)[offsets.reshape(-1)[: len(parts[0])]]


def _places(b: Builder, rows: Value, offsets: Value) -> Value:
    """Return the places of the rows."""
    flat = b.Reshape(b.Cast(offsets, to=INT64.number), ints(b, -1))
    return b.Slice(flat, ints(b, 0), graphs.size(b, rows, 0))


def emitted_restored(b: Builder, x: Value, offsets: Value) -> Value:
    """Emit `restored` of floats."""
    count, width = b.Reshape(b.Size(offsets), ints(b, 1)), graphs.size(b, x, 1)
    full = b.Expand(Numbers(b, FLOAT)(0), b.Concat(count, width, axis=0))
    full = b.ScatterND(full, b.Unsqueeze(_places(b, x, offsets), ints(b, 1)), x)
    return graphs.reshaped(b, full, b.Shape(offsets), width)


def emitted(
    b: Builder, parts: tuple[Value, Value, Value], offsets: Value, sums: Value, bias: Value | None,
    heads: int, scale: float | None,
) -> Value:  # fmt: skip
    """Emit `attend` of floats."""
    numbers = Numbers(b, FLOAT)
    q, k, v = (graphs.split(b, emitted_restored(b, x, offsets), heads) for x in parts)
    sums = b.Cast(sums, to=INT64.number)
    items = graphs.size(b, offsets, 0)
    starts = b.Slice(sums, ints(b, 0), items)
    ends = b.Unsqueeze(b.Sub(b.Slice(sums, ints(b, 1), b.Add(items, ints(b, 1))), starts), ints(b, 1, 2, 3))
    scores = graphs.scores(b, graphs.scaled(b, q, scale or None, FLOAT), k)
    scores = scores if bias is None else b.Add(scores, calls.typed(b, bias, FLOAT))
    kept = b.Less(graphs.indices(b, graphs.size(b, k, 2)), ends)
    p = b.Softmax(b.Where(kept, scores, numbers(_LOWEST)), axis=-1)
    y = graphs.weighted(b, b.Where(kept, p, numbers(0)), v, q)
    rows = b.Flatten(graphs.joined(b, y, offsets, heads), axis=2)
    return b.Gather(rows, _places(b, parts[0], offsets))
