"""Attention as onnxruntime's operators for encoders define it: padding lowers scores, and excludes no keys.

Queries, keys and values have the shape (batch, heads, length, size). The scores of keys that are padding are
lowered by `filtered`; a bias is added; causal attention excludes the keys after the position of each query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import loops
from sabir.elements import FLOAT
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attention_kernels, attentions, key_cache_graphs, key_caches
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_LOWEST = float(np.finfo(np.float32).min)
_FILTERED = -10000.0


class ScoreOptions(NamedTuple):
    """The scale of the scores (0: 1 / sqrt(size)), what padding adds to them, whether attention is causal."""

    scale: float
    filtered: float
    causal: bool

    @classmethod
    def of(cls, scale: float | None, filtered: float | None, unidirectional: int) -> ScoreOptions:
        """Read the attributes of a call."""
        return cls(scale or 0.0, _FILTERED if filtered is None else filtered, bool(unidirectional))


# ------------------------------------------------------------ arrays


def attend(
    q: Array, k: Array, v: Array, kept: Array | None, bias: Array | None, options: ScoreOptions,
    *, before: int = 0, shown: bool = False,
) -> tuple[Array, Array | None]:  # fmt: skip
    """Return the weighted values of each query, and the scores before the softmax if they are `shown`.

    `kept` is which keys are no padding; `before` keys are before the first query.
    """
    total = None if bias is None else widened(bias)
    if kept is not None:
        padding = np.where(kept, np.float32(0), np.float32(options.filtered))
        total = padding if total is None else padding + total
    window = (-1, 0 if options.causal else -1)
    near = attentions.visible(q.shape[2], k.shape[2], np.asarray(before), window)
    stages = attentions.ScoreStages(
        options.scale or attentions.default_scale(q.shape[3]), requested=attentions.BIASED if shown else None
    )
    y, scores = attentions.attend(q, k, v, attentions.ScoreMasks(total, near), stages)
    return y, None if scores is None else np.maximum(scores, _LOWEST)


def appended(past: Array | None, new: Array, filled: int | None) -> tuple[Array, Array]:
    """Return all rows of keys or values, and the cache after the call.

    With `filled`, the number of rows of `past` in use, the new rows are written after them.
    """
    if past is None:
        return new, new
    if filled is None:
        rows = np.concatenate([past, new], axis=2)
        return rows, rows
    cache = key_caches.written(past, new, np.full(len(new), filled), past.shape[2])
    return cache[:, :, : filled + new.shape[2]], cache


def appended_both(
    past: Array | None, new: tuple[Array, Array], filled: int | None, dtype: np.dtype[Any]
) -> tuple[Array, Array, tuple[Array, Array]]:
    """Return all keys, all values, and the caches of both, in a type."""
    pasts = (None, None) if past is None else past
    (k, keys), (v, values) = (
        appended(old, x.astype(dtype, copy=False), filled) for old, x in zip(pasts, new, strict=True)
    )
    return k, v, (keys, values)


# ------------------------------------------------------------ graphs


def emitted(
    b: Builder, q: Value, k: Value, v: Value, kept: Value | None, bias: Value | None, options: ScoreOptions,
    *, before: Value | None = None,
) -> tuple[Value, Value]:  # fmt: skip
    """Emit `attend` on floats; `before` is a vector of one element, or None for 0."""
    numbers = Numbers(b, FLOAT)
    scores = graphs.scores(b, graphs.scaled(b, q, options.scale or None, FLOAT), k)
    if kept is not None:
        scores = b.Add(scores, b.Where(kept, numbers(0), numbers(options.filtered)))
    if bias is not None:
        scores = b.Add(scores, calls.typed(b, bias, FLOAT))
    if options.causal:
        own = b.Unsqueeze(graphs.indices(b, graphs.size(b, q, 2)), ints(b, 1))
        own = own if before is None else b.Add(own, before)
        near = b.LessOrEqual(graphs.indices(b, graphs.size(b, k, 2)), own)
        scores = b.Where(near, scores, numbers(_LOWEST))
    return graphs.weighted(b, b.Softmax(scores, axis=-1), v, q), scores


def emitted_cache(b: Builder, past: Value | None, new: Value, filled: Value | None) -> tuple[Value, Value]:
    """Emit `appended`; `filled` is a vector of one element of int64."""
    if past is None:
        return new, new
    if filled is None:
        rows = b.Concat(past, new, axis=2)
        return rows, rows
    batch, length = graphs.size(b, new, 0), graphs.size(b, past, 2)
    cache = key_cache_graphs.written(b, past, new, b.Expand(filled, batch), length)
    return b.Slice(cache, ints(b, 0), b.Add(filled, graphs.size(b, new, 2)), ints(b, 2)), cache


def emitted_both(
    b: Builder, past: Value | None, new: tuple[Value, Value], filled: Value | None, kind: ElementType
) -> tuple[Value, Value, Sequence[Value]]:
    """Emit all keys and all values in float, and the caches of both in the type `kind`."""
    pasts: Sequence[Value | None] = (None, None)
    if past is not None:
        halves = b.Split(past, num_outputs=2, axis=0, outputs=2)
        pasts = [b.Squeeze(t, ints(b, 0)) for t in halves]
    kept = [emitted_cache(b, old, calls.typed(b, x, kind), filled) for old, x in zip(pasts, new, strict=True)]
    k, v = (calls.typed(b, rows, FLOAT) for rows, _ in kept)
    return k, v, [cache for _, cache in kept]


def stacked(b: Builder, caches: Sequence[Value]) -> Value:
    """Emit the cache of keys and values as one tensor, (2, batch, heads, length, size)."""
    return b.Concat(*(b.Unsqueeze(t, ints(b, 0)) for t in caches), axis=0)


# ------------------------------------------------------------ expressions


def lowered(
    q: Expression, k: Expression, v: Expression, kept: Expression | None, bias: Expression | None,
    options: ScoreOptions, *, before: Size = 0,
) -> tuple[Expression, Expression]:  # fmt: skip
    """Return `attend` as expressions, with the results as (batch, queries, heads * size)."""
    wide = "float" if q.element in {"float16", "bfloat16"} else q.element
    heads = attention_kernels.Heads(*(loops.cast(t, wide) for t in (q, k, v)))
    masks = heads.visible(before, (-1, 0 if options.causal else -1), None)
    if bias is not None:
        masks = heads.masked(masks, bias, padded=False)
    if kept is not None:
        padding = heads.of_queries(loops.where(kept, loops.number("float", 0), options.filtered))
        total = padding if masks.bias is None else loops.apply("add", padding, masks.bias)
        masks = masks._replace(bias=total)
    scale = options.scale or heads.default_scale()
    stages = attention_kernels.ScoreStages(scale, 0.0, heads.q.element)
    _, _, biased, p = heads.scores(masks, stages)
    scores = heads.apart(loops.apply("max", biased, _LOWEST))
    return heads.packed(loops.cast(heads.weighted(p), q.element)), scores
