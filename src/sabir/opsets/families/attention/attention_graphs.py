"""Attention as a graph of other operators: products of grouped heads, masks, and windows around a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import BOOL, DOUBLE, FLOAT
from sabir.ir import TensorType
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.shapes.size_vectors import padded_along

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value

_LAST = -1


class ScoreMaskValues(NamedTuple):
    """A bias to add to the scores, and which keys each query attends to; both broadcast to the scores."""

    bias: Value | None = None
    allowed: Value | None = None


class AttentionInputs(NamedTuple):
    """The operands of a call of Attention; `keys` is the number of keys, as a tensor."""

    b: Builder
    q: Value
    keys: Value
    mask: Value | None
    past_key: Value | None
    past_value: Value | None
    filled: Value | None

    @classmethod
    def of(cls, b: Builder, q: Value, k: Value, _v: Value, *rest: Value | None) -> AttentionInputs:
        """Read the operands; the sequence is the second last dimension in both layouts."""
        mask, past_key, past_value, filled = (*rest, *(None,) * 4)[:4]
        keys = b.Shape(k, start=-2, end=-1)
        keys = keys if past_key is None else b.Add(size(b, past_key, 2), keys)
        return cls(b, q, keys, mask, past_key, past_value, filled)

    def visible(self, window: tuple[int, int]) -> Value | None:
        """Return which keys each query attends to by its position and the end of the cache; None for all."""
        b, (left, right) = self.b, window
        near: Value | None = None
        if max(left, right) >= 0:
            distance = self._distance()
            near = b.LessOrEqual(distance, ints(b, right)) if right >= 0 else None
            far = b.GreaterOrEqual(distance, ints(b, -left)) if left >= 0 else None
            near = combined(b, near, far)
        if self.filled is None:
            return near
        return combined(b, near, b.Less(indices(b, self.keys), self._per_item(self.filled)))

    def typed_mask(self, *, padded: bool) -> tuple[Value | None, ElementType]:
        """Return the mask, boolean or in the type of Q; `padded` excludes the keys after its end."""
        b, mask, kind = self.b, self.mask, element_of(self.q)
        if mask is None:
            return None, BOOL
        of_mask = element_of(mask)
        if of_mask is BOOL:
            kind = BOOL
        elif of_mask is not kind:
            mask = b.Cast(mask, to=kind.number)
        if not padded:
            return mask, kind
        missing, never = b.Sub(self.keys, size(b, mask, _LAST)), False if kind is BOOL else -np.inf
        return padded_along(b, mask, [_LAST], (0,), missing, Numbers(b, kind)(never)), kind

    def _distance(self) -> Value:
        """Return the position of each key minus that of each query."""
        b = self.b
        queries = b.Shape(self.q, start=-2, end=-1)
        own = b.Unsqueeze(indices(b, queries), ints(b, 1))
        if self.past_key is not None:
            own = b.Add(own, size(b, self.past_key, 2))
        elif self.filled is not None:
            own = b.Add(own, self._per_item(b.Sub(self.filled, queries)))
        return b.Sub(indices(b, self.keys), own)

    def _per_item(self, x: Value) -> Value:
        """Return a vector over the batch, ready to broadcast to the scores."""
        return self.b.Unsqueeze(x, ints(self.b, 1, 2, 3))


def size(b: Builder, x: Value, axis: int) -> Value:
    """Return a dimension, as a tensor of one element."""
    return b.Shape(x, start=axis) if axis == _LAST else b.Shape(x, start=axis, end=axis + 1)


def ints(b: Builder, *values: int) -> Value:
    """Return a vector of integers."""
    return b.initializer("ints", np.array(values, np.int64))


def indices(b: Builder, count: Value) -> Value:
    """Return `0, 1, ..., count - 1` for a vector of one element."""
    zero, one = (b.initializer("index", np.array(i)) for i in range(2))
    return b.Range(zero, b.Squeeze(count, ints(b, 0)), one)


def reshaped(b: Builder, x: Value, *dims: Value) -> Value:
    """Return `x` with the shape that is the concatenation of several vectors."""
    return b.Reshape(x, b.Concat(*dims, axis=0))


def split(b: Builder, x: Value, heads: int) -> Value:
    """Return (batch, sequence, heads * size) as (batch, heads, sequence, size)."""
    return b.Transpose(b.Reshape(x, ints(b, 0, 0, heads, -1)), perm=[0, 2, 1, 3])


def joined(b: Builder, x: Value, like: Value, heads: int) -> Value:
    """Return (batch, heads, sequence, size) as (batch, sequence, heads * size); `like` starts the same."""
    wide = b.Mul(size(b, x, _LAST), ints(b, heads))
    return reshaped(b, b.Transpose(x, perm=[0, 2, 1, 3]), b.Shape(like, start=0, end=2), wide)


def scores(b: Builder, q: Value, k: Value) -> Value:
    """Return the product of each query with each key of its head; groups of heads become rows of one."""
    keys = b.Transpose(k, perm=[0, 1, 3, 2])
    return reshaped(b, b.MatMul(grouped(b, q, k), keys), b.Shape(q, start=0, end=3), size(b, k, 2))


def weighted(b: Builder, p: Value, v: Value, q: Value) -> Value:
    """Return the sums of values, weighted by the probabilities of each query."""
    return reshaped(b, b.MatMul(grouped(b, p, v), v), b.Shape(q, start=0, end=3), size(b, v, 3))


def scaled(b: Builder, q: Value, scale: float | None, kind: ElementType) -> Value:
    """Return the queries times a factor, by default one over the root of their size."""
    if scale is not None:
        return Numbers(b, kind).op("Mul", q, scale)
    wide = DOUBLE if kind is DOUBLE else FLOAT
    root = b.Sqrt(b.Cast(size(b, q, 3), to=wide.number))
    return b.Div(q, root if kind is wide else b.Cast(root, to=kind.number))


def capped(b: Builder, x: Value, softcap: float, kind: ElementType) -> Value:
    """Return `softcap * tanh(x / softcap)`, or `x` for 0."""
    if not softcap:
        return x
    numbers = Numbers(b, kind)
    return numbers.op("Mul", b.Tanh(numbers.op("Div", x, softcap)), softcap)


def combined(b: Builder, first: Value | None, second: Value | None) -> Value | None:
    """Return `first and second`; None is True everywhere."""
    if first is None or second is None:
        return first if second is None else second
    return b.And(first, second)


def restricted(b: Builder, mask: Value | None, allowed: Value | None, kind: ElementType) -> Value | None:
    """Return a mask of this element type that also excludes the keys that are not allowed."""
    if mask is None or allowed is None or kind is BOOL:
        return combined(b, mask, allowed)
    return b.Where(allowed, mask, Numbers(b, kind)(-np.inf))


def probabilities(
    b: Builder, x: Value, masks: ScoreMaskValues, precision: int | None, kind: ElementType
) -> tuple[Value, Value]:
    """Return the masked scores, and their softmax; a query without keys has zeros."""
    number, allowed = Numbers(b, kind), masks.allowed
    if masks.bias is not None:
        x = b.Add(x, masks.bias)
        allowed = combined(b, masks.allowed, b.Not(b.Equal(masks.bias, number(-np.inf))))
    x = x if masks.allowed is None else b.Where(masks.allowed, x, number(-np.inf))
    y = b.Softmax(x if precision is None else b.Cast(x, to=precision), axis=-1)
    y = y if precision is None else b.Cast(y, to=kind.number)
    if allowed is not None:
        y = b.Where(b.ReduceMax(allowed, ints(b, -1), keepdims=1), y, number(0))
    return x, y


def is_packed(values: Sequence[Value], heads: int | None) -> bool:
    """Whether the heads are in the last dimension; if no rank is known, whether the attribute is set."""
    ranks = [v.type.rank for v in values if isinstance(v.type, TensorType) and v.type.rank is not None]
    return ranks[0] == 3 if ranks else heads is not None  # ruff: ignore[magic-value-comparison]  (batch, sequence, width)


def grouped(b: Builder, x: Value, k: Value) -> Value:
    """Return (batch, heads, queries, ...) with the queries that share a head of `k` as rows of one matrix.

    Where the heads are no multiple of those of `k`, there are too few rows for the elements: an error.
    """
    rows = b.Mul(b.Div(size(b, x, 1), size(b, k, 1)), size(b, x, 2))
    return reshaped(b, x, b.Shape(k, start=0, end=2), rows, size(b, x, 3))
