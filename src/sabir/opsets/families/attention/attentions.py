"""Scaled dot-product attention on arrays of the shape (batch, heads, sequence, size), block by block.

With fewer heads of keys and values than of queries, consecutive query heads share one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.elements import element
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import BFLOAT16, FLOATS, element_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.elements import ElementType
    from sabir.opsets.typing import Array

RAW, CAPPED, BIASED, PROBABILITIES = range(4)  # the stages of the scores, one of which may be an output
_RANK = 4  # (batch, heads, length, size)
_BLOCK = 1 << 22  # scores that are computed at a time, unless one row has more
PRECISIONS = element_types(FLOATS | BFLOAT16)  # the types in which a softmax can be computed


class ScoreMasks(NamedTuple):
    """A bias to add to the scores, and which keys each query attends to; both broadcast to the scores."""

    bias: Array | None = None
    allowed: Array | None = None

    @classmethod
    def of(cls, mask: Array | None, allowed: Array | None) -> ScoreMasks:
        """Combine the operand `attn_mask`, boolean or a bias, with the keys that are allowed anyway."""
        if mask is None:
            return cls(None, allowed)
        mask = np.atleast_1d(mask)
        return cls(None, combined(allowed, mask)) if mask.dtype == np.bool_ else cls(widened(mask), allowed)


class ScoreStages(NamedTuple):
    """The computation of the probabilities from the scores."""

    scale: float
    softcap: float = 0.0
    precision: ElementType | None = None  # of the softmax; by default that of the scores
    requested: int | None = None  # the stage to return


def softmax_precision(number: int | None) -> ElementType | None:
    """Return the element type with the number of the attribute."""
    return None if number is None else element(number)


def visible(queries: int, keys: int, before: Array, window: tuple[int, int]) -> Array | None:
    """Return which keys are in the window around the position of each query; None for all.

    `before` is the number of keys before the first query, and broadcasts; a side of -1 is unlimited.
    """
    left, right = window
    if max(left, right) < 0:
        return None
    distance = np.arange(keys) - (np.arange(queries)[:, None] + before)
    near = distance <= right if right >= 0 else None
    return combined(near, distance >= -left) if left >= 0 else near


def before_end(keys: int, filled: Array) -> Array:
    """Return which keys are before the end of the cache of each item of the batch."""
    return np.less(np.arange(keys), filled[:, None, None, None])


def extended(mask: Array, keys: int) -> Array:
    """Return a mask that excludes the keys after its end."""
    missing = keys - mask.shape[-1] if mask.ndim else 0
    if missing <= 0:
        return mask
    if mask.dtype != np.bool_:
        mask = mask.astype(np.result_type(widened(mask).dtype, np.float32), copy=False)
    excluded = np.full((*mask.shape[:-1], missing), False if mask.dtype == np.bool_ else -np.inf, mask.dtype)
    return np.concatenate([mask, excluded], axis=-1)


def combined(first: Array | None, second: Array) -> Array:
    """Return `first & second`; None is True everywhere."""
    return second if first is None else first & second


def split(x: Array, heads: int) -> Array:
    """Return (batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    if heads < 1 or x.shape[2] % heads:
        raise ValueError(f"a dimension of {x.shape[2]} cannot be split into {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def joined(x: Array) -> Array:
    """Return (batch, heads, sequence, size) as (batch, sequence, heads * size)."""
    batch, heads, sequence, size = x.shape
    return x.swapaxes(1, 2).reshape(batch, sequence, heads * size)


def scores(q: Array, k: Array) -> Array:
    """Return the product of each query with each key of its head."""
    batch, heads, length, size = q.shape
    grouped = q.reshape(batch, k.shape[1], heads // k.shape[1] * length, size) if heads != k.shape[1] else q
    return np.matmul(grouped, k.swapaxes(2, 3)).reshape(batch, heads, length, k.shape[2])


def weighted(p: Array, v: Array) -> Array:
    """Return the sums of values, weighted by the probabilities of each query."""
    batch, heads, length, keys = p.shape
    grouped = p.reshape(batch, v.shape[1], heads // v.shape[1] * length, keys) if heads != v.shape[1] else p
    return np.matmul(grouped, v).reshape(batch, heads, length, v.shape[3])


def softmax(x: Array) -> Array:
    """Apply the softmax to the last dimension, in place."""
    x -= x.max(axis=-1, keepdims=True, initial=-np.inf)
    np.exp(x, out=x)
    x /= summed(x, -1, keepdims=True)
    return x


def softmax_as(x: Array, precision: ElementType | None) -> Array:
    """Return the softmax of the last dimension, computed in another precision; may overwrite `x`."""
    if precision is None or precision.dtype == x.dtype:
        return softmax(x)
    return softmax(widened(x.astype(precision.dtype))).astype(precision.dtype).astype(x.dtype)


def attend(
    q: Array, k: Array, v: Array, masks: ScoreMasks, stages: ScoreStages
) -> tuple[Array, Array | None]:
    """Return the weighted values of each query, and the scores at the requested stage; in the type of `q`."""
    check(q.shape, k.shape, v.shape)
    dtype, shape = q.dtype, (*q.shape[:3], k.shape[2])
    wide = np.result_type(*(widened(x).dtype for x in (q, k, v)))
    k, v = k.astype(wide, copy=False), v.astype(wide, copy=False)
    q = np.multiply(q, wide.type(stages.scale), dtype=wide)
    broadcast = [
        None if m is None else np.broadcast_to(m, (*shape[:3], m.shape[-1])) for m in (*masks, _dead(masks))
    ]
    y = np.empty((*shape[:3], v.shape[3]), dtype)
    spend_work(math.prod(shape) * (16 + (q.shape[3] + v.shape[3]) // 16))
    requested = None if stages.requested is None else np.empty(allotted(shape, dtype), dtype)
    if not y.size and not math.prod(shape):  # there may be very many queries without keys
        return y, requested
    for queries, keys in _blocks(q.shape, k.shape):
        bias, allowed, dead, kept = (None if m is None else m[queries] for m in (*broadcast, requested))
        x = _probabilities(scores(q[queries], k[keys]), ScoreMasks(bias, allowed), dead, stages, kept)
        y[queries] = weighted(x, v[keys])
    return y, requested


def check(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    """Raise InferenceError unless the shapes of queries, keys and values match."""
    if not len(q) == len(k) == len(v) == _RANK or not _match(q, k, v):
        shapes = ", ".join(str(list(s)) for s in (q, k, v))
        raise InferenceError(f"the shapes of queries, keys and values do not match: {shapes}")


def _match(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> bool:
    return q[0] == k[0] == v[0] and q[3] == k[3] and k[1:3] == v[1:3] and k[1] > 0 and q[1] % k[1] == 0


def _probabilities(
    x: Array, masks: ScoreMasks, dead: Array | None, stages: ScoreStages, requested: Array | None
) -> Array:
    """Compute the probabilities of a block of scores, in place."""

    def keep(stage: int) -> None:
        if requested is not None and stages.requested == stage:
            requested[...] = x

    keep(RAW)
    if stages.softcap:
        x /= x.dtype.type(stages.softcap)
        np.tanh(x, out=x)
        x *= x.dtype.type(stages.softcap)
    keep(CAPPED)
    if masks.bias is not None:
        x += masks.bias
    if masks.allowed is not None:
        np.copyto(x, -np.inf, where=~masks.allowed)
    keep(BIASED)
    x = softmax_as(x, stages.precision)
    if dead is not None:
        np.copyto(x, 0, where=dead)
    keep(PROBABILITIES)
    return x


def _dead(masks: ScoreMasks) -> Array | None:
    """Return which queries attend to no key, and get zeros; None if there are none."""
    bias, allowed = masks
    if bias is not None:
        finite = bias != -np.inf
        allowed = finite if allowed is None else finite & allowed
    if allowed is None:
        return None
    dead = np.logical_not(np.any(allowed, axis=-1, keepdims=True))
    return dead if np.any(dead) else None


def _blocks(q: tuple[int, ...], k: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Divide the scores into blocks, and yield the queries and the keys of each."""
    batch, heads, length, _ = q
    group = heads // k[1]
    row = max(1, k[2])
    rows = max(1, min(length, _BLOCK // (row * group)))
    shared = max(1, min(k[1], _BLOCK // (row * group * rows))) if rows == length else 1
    items = max(1, min(batch, _BLOCK // (row * heads * rows))) if shared == k[1] else 1
    for b in range(0, batch, items):
        for h in range(0, k[1], shared):
            for r in range(0, length, rows):
                part = slice(b, b + items)
                yield (
                    (part, slice(h * group, (h + shared) * group), slice(r, r + rows)),
                    (part, slice(h, h + shared)),
                )


def default_scale(size: int) -> float:
    """Return `1 / sqrt(size)`."""
    return 1 / math.sqrt(size) if size else 1.0
