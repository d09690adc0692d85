"""Caches of keys and values as arrays: rows that are written at a position, quantised rows, attention sinks.

A cache has the shape (batch, heads, capacity, size). Rows of a batch item after its last key are unspecified.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.opsets.families.attention.attentions import ScoreMasks
from sabir.opsets.families.numbers.arithmetic import widened

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_HALF_BYTE = 4  # bits
_GREATEST_FLOAT8 = 448
_NIBBLE_OFFSET = 8  # four-bit numbers are stored without sign


def written(past: Array | None, new: Array, starts: Array, length: int) -> Array:
    """Return a cache of `length` rows: those of `past` with `new` written at the start of each batch item.

    Rows that neither has are zeros; `starts` has the shape (batch).
    """
    cache = np.zeros((*new.shape[:2], length, new.shape[3]), new.dtype)
    if past is not None:
        cache[:, :, : past.shape[2]] = past
    for item, start in enumerate(starts):
        cache[item, :, start : start + new.shape[2]] = new[item]
    return cache


class Quantisation(NamedTuple):
    """The storage of keys or values as int8, float8, or pairs of four bits in uint8; `scale` broadcasts."""

    scale: Array
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, scale: Array, kind: str, dtype: np.dtype[Any], heads: int) -> Quantisation:
        """Return the storage with one scale (`PER_TENSOR`), or one for each head and element."""
        return cls(scale.reshape(-1)[0] if kind == "PER_TENSOR" else scale.reshape(1, heads, 1, -1), dtype)

    def stored(self, x: Array) -> Array:
        """Return stored floats; two of four bits are a byte, the first in its lower half."""
        steps = widened(x) / self.scale
        if self.dtype == np.int8:
            return np.clip(np.rint(steps), -128, 127).astype(np.int8)
        if self.dtype != np.uint8:
            return np.clip(steps, -_GREATEST_FLOAT8, _GREATEST_FLOAT8).astype(self.dtype)
        nibbles = (np.clip(np.rint(steps), -8, 7) + _NIBBLE_OFFSET).astype(np.uint8)
        return nibbles[..., 0::2] | nibbles[..., 1::2] << _HALF_BYTE

    def restored(self, x: Array) -> Array:
        """Return what was stored as float32."""
        if self.dtype == np.uint8:
            nibbles = np.stack([x & (1 << _HALF_BYTE) - 1, x >> _HALF_BYTE], axis=-1)
            x = nibbles.reshape(*x.shape[:-1], -1).astype(np.int8) - _NIBBLE_OFFSET
        return x.astype(np.float32) * self.scale


def with_sink(k: Array, v: Array, masks: ScoreMasks, sink: Array) -> tuple[Array, Array, ScoreMasks]:
    """Append a key whose score in each head is `sink`, of the shape (heads), and whose value is zero.

    The masks must have four axes, the keys last.
    """
    k, v = (np.concatenate([x, np.zeros((*x.shape[:2], 1, x.shape[3]), x.dtype)], axis=2) for x in (k, v))
    sink = widened(sink)[None, :, None, None]
    bias = np.zeros((1, 1, 1, k.shape[2] - 1), np.float32) if masks.bias is None else widened(masks.bias)
    shape = np.broadcast_shapes(bias.shape[:3], sink.shape[:3])
    bias = np.concatenate(
        [np.broadcast_to(bias, (*shape, bias.shape[3])), np.broadcast_to(sink, (*shape, 1))], -1
    )
    allowed = masks.allowed
    if allowed is not None:
        allowed = np.concatenate([allowed, np.ones((*allowed.shape[:3], 1), np.bool_)], axis=-1)
    return k, v, ScoreMasks(bias, allowed)


def normalized(x: Array, weight: Array, epsilon: float) -> Array:
    """Return each head over the root of its mean square, times `weight` of the shape (size); as float32."""
    x = widened(x)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + np.float32(epsilon)) * widened(weight)
