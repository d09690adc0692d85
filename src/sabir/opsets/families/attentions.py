"""Scaled dot-product attention on arrays of the shape (batch, heads, sequence, size), block by block.

Fewer heads of keys and values than of queries serve groups of consecutive query heads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, spend_work
from sabir.elements import element
from sabir.opsets.families.arithmetic import widened
from sabir.opsets.families.sizes import allotted
from sabir.schema import BFLOAT16, FLOATS, element_types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.elements import ElementType
    from sabir.opsets.typing import Array

RAW, CAPPED, BIASED, PROBABILITIES = range(4)  # the stages of the scores, of which one may be asked for
_RANK = 4  # (batch, heads, length, size)
_BLOCK = 1 << 22  # scores that are held at once, unless one row has more
PRECISIONS = element_types(FLOATS | BFLOAT16)  # of a softmax


class Masks(NamedTuple):
    """What is added to the scores, and which keys each query may see; each broadcasts to the scores."""

    bias: Array | None = None
    allowed: Array | None = None

    @classmethod
    def of(cls, mask: Array | None, seen: Array | None) -> Masks:
        """Tell a mask of truth values from one to be added; `seen` says which keys a query may see anyway."""
        if mask is None:
            return cls(None, seen)
        mask = np.atleast_1d(mask)
        return cls(None, both(seen, mask)) if mask.dtype == np.bool_ else cls(widened(mask), seen)


class Stages(NamedTuple):
    """What happens to the scores."""

    scale: float
    softcap: float = 0.0
    precision: ElementType | None = None  # what the softmax is computed in, where not as the scores
    asked: int | None = None  # the stage to be returned


def softmax_precision(number: int | None) -> ElementType | None:
    """Return the element type that the attribute names."""
    return None if number is None else element(number)


def seen(queries: int, keys: int, before: Array, window: tuple[int, int]) -> Array | None:
    """Return which keys lie in the window around each query's own place; None for all.

    `before` is how many keys come before the first query's, and broadcasts; a side of -1 is open.
    """
    left, right = window
    if max(left, right) < 0:
        return None
    distance = np.arange(keys) - (np.arange(queries)[:, None] + before)
    near = distance <= right if right >= 0 else None
    return both(near, distance >= -left) if left >= 0 else near


def counted(keys: int, filled: Array) -> Array:
    """Return which of the keys come before the end that is told for each item."""
    return np.less(np.arange(keys), filled[:, None, None, None])


def whole(mask: Array, keys: int) -> Array:
    """Return a mask that hides the keys beyond its end."""
    lacking = keys - mask.shape[-1] if mask.ndim else 0
    if lacking <= 0:
        return mask
    if mask.dtype != np.bool_:
        mask = mask.astype(np.result_type(widened(mask).dtype, np.float32), copy=False)
    hidden = np.full((*mask.shape[:-1], lacking), False if mask.dtype == np.bool_ else -np.inf, mask.dtype)
    return np.concatenate([mask, hidden], axis=-1)


def both(first: Array | None, second: Array) -> Array:
    """Return where both hold; one that is missing holds everywhere."""
    return second if first is None else first & second


def split(x: Array, heads: int) -> Array:
    """Return a tensor (batch, sequence, heads * size) with the heads apart, before the sequence."""
    if heads < 1 or x.shape[2] % heads:
        raise ValueError(f"a dimension of {x.shape[2]} cannot be split into {heads} heads")
    return x.reshape(*x.shape[:2], heads, x.shape[2] // heads).swapaxes(1, 2)


def joined(x: Array) -> Array:
    """Return heads side by side in the last dimension again."""
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
    """Normalise the last dimension, in place."""
    x -= x.max(axis=-1, keepdims=True, initial=-np.inf)
    np.exp(x, out=x)
    x /= x.sum(axis=-1, keepdims=True)
    return x


def softmax_as(x: Array, precision: ElementType | None) -> Array:
    """Normalise the last dimension in another precision, in the type of `x`, which may be overwritten."""
    if precision is None or precision.dtype == x.dtype:
        return softmax(x)
    return softmax(widened(x.astype(precision.dtype))).astype(precision.dtype).astype(x.dtype)


def attend(q: Array, k: Array, v: Array, masks: Masks, stages: Stages) -> tuple[Array, Array | None]:
    """Return what each query attends to, and the scores at the stage asked for; in the type of `q`."""
    check(q.shape, k.shape, v.shape)
    kind, shape = q.dtype, (*q.shape[:3], k.shape[2])
    wide = np.result_type(*(widened(x).dtype for x in (q, k, v)))
    k, v = k.astype(wide, copy=False), v.astype(wide, copy=False)
    q = np.multiply(q, wide.type(stages.scale), dtype=wide)
    every = [
        None if m is None else np.broadcast_to(m, (*shape[:3], m.shape[-1])) for m in (*masks, _dead(masks))
    ]
    y = np.empty((*shape[:3], v.shape[3]), kind)
    spend_work(math.prod(shape) * (16 + (q.shape[3] + v.shape[3]) // 16))
    asked = None if stages.asked is None else np.empty(allotted(shape, kind), kind)
    if not y.size and not math.prod(shape):  # there may be very many places with nothing at them
        return y, asked
    for queries, keys in _blocks(q.shape, k.shape):
        bias, allowed, dead, kept = (None if m is None else m[queries] for m in (*every, asked))
        x = _probabilities(scores(q[queries], k[keys]), Masks(bias, allowed), dead, stages, kept)
        y[queries] = weighted(x, v[keys])
    return y, asked


def check(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> None:
    """Raise InferenceError unless the shapes of queries, keys and values belong together."""
    if not len(q) == len(k) == len(v) == _RANK or not _match(q, k, v):
        shapes = ", ".join(str(list(s)) for s in (q, k, v))
        raise InferenceError(f"queries, keys and values of the shapes {shapes} do not belong together")


def _match(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> bool:
    return q[0] == k[0] == v[0] and q[3] == k[3] and k[1:3] == v[1:3] and k[1] > 0 and q[1] % k[1] == 0


def _probabilities(x: Array, masks: Masks, dead: Array | None, stages: Stages, asked: Array | None) -> Array:
    """Take a block of scores through the stages, in place."""

    def keep(stage: int) -> None:
        if asked is not None and stages.asked == stage:
            asked[...] = x

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


def _dead(masks: Masks) -> Array | None:
    """Return which queries see no key at all, if there are any: these attend to nothing, and get zeros."""
    bias, allowed = masks
    if bias is not None:
        seen = bias != -np.inf
        allowed = seen if allowed is None else seen & allowed
    if allowed is None:
        return None
    dead = np.logical_not(np.any(allowed, axis=-1, keepdims=True))
    return dead if np.any(dead) else None


def _blocks(q: tuple[int, ...], k: tuple[int, ...]) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...]]]:
    """Cut the scores into blocks, and yield which queries and which keys make each."""
    batch, heads, length, _ = q
    group = heads // k[1]
    row = max(1, k[2])
    rows = max(1, min(length, _BLOCK // (row * group)))
    shared = max(1, min(k[1], _BLOCK // (row * group * rows))) if rows == length else 1
    items = max(1, min(batch, _BLOCK // (row * heads * rows))) if shared == k[1] else 1
    for b in range(0, batch, items):
        for h in range(0, k[1], shared):
            for r in range(0, length, rows):
                several = slice(b, b + items)
                yield (
                    (several, slice(h * group, (h + shared) * group), slice(r, r + rows)),
                    (several, slice(h, h + shared)),
                )


def default_scale(size: int) -> float:
    """Return `1 / sqrt(size)`."""
    return 1 / math.sqrt(size) if size else 1.0
