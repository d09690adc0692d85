"""Caches of keys and values in graphs of opset 18: rows that are written at a position, quantised rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.elements import FLOAT, INT8, UINT8
from sabir.opsets.families.attention.attention_graphs import indices, ints, reshaped, size
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.size_vectors import padded_along

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir import Builder, Value

_SEQUENCE = 2  # the axis of the rows of a cache
_END = np.iinfo(np.int64).max
_HALF_BYTE = 4  # bits


def written(b: Builder, past: Value, new: Value, starts: Value, length: Value) -> Value:
    """Return a cache of `length` rows: those of `past` with `new` written from `starts`, (batch), on.

    Each row is gathered from `past`, zeros and `new` in one.
    """
    rows, appended = indices(b, length), size(b, new, _SEQUENCE)
    offsets = b.Sub(rows, b.Unsqueeze(starts, ints(b, 1)))  # (batch, length)
    inside = b.And(b.GreaterOrEqual(offsets, ints(b, 0)), b.Less(offsets, appended))
    sources = b.Where(inside, b.Add(offsets, length), rows)
    missing = b.Sub(length, size(b, past, _SEQUENCE))
    zero = Numbers.like(b, past)(0)
    every = b.Concat(padded_along(b, past, [_SEQUENCE], (0,), missing, zero), new, axis=_SEQUENCE)
    shape = b.Concat(b.Shape(new, start=0, end=2), length, size(b, new, 3), axis=0)
    return b.GatherElements(every, b.Expand(b.Unsqueeze(sources, ints(b, 1, 3)), shape), axis=_SEQUENCE)


class Quantisation(NamedTuple):
    """The storage of keys or values as int8, or pairs of four bits in uint8; `scale` broadcasts."""

    b: Builder
    scale: Value
    element: ElementType

    @classmethod
    def of(cls, b: Builder, scale: Value, kind: str, element: ElementType, heads: int) -> Quantisation:
        """Return the storage with one scale (`PER_TENSOR`), or one for each head and element."""
        shape = ints(b, 1) if kind == "PER_TENSOR" else ints(b, 1, heads, 1, -1)
        return cls(b, b.Reshape(scale, shape), element)

    def stored(self, x: Value) -> Value:
        """Return stored floats; two of four bits are a byte, the first in its lower half."""
        b, number = self.b, Numbers(self.b, FLOAT)
        steps = b.Div(calls.typed(b, x, FLOAT), self.scale)
        if self.element is INT8:
            return b.Cast(number.clipped(b.Round(steps), -128, 127), to=INT8.number)
        nibbles = b.Cast(number.op("Add", number.clipped(b.Round(steps), -8, 7), 8), to=UINT8.number)
        end, last = ints(b, _END), ints(b, -1)
        low, high = (b.Slice(nibbles, ints(b, i), end, last, ints(b, 2)) for i in range(2))
        return b.BitwiseOr(low, b.BitShift(high, Numbers(b, UINT8)(_HALF_BYTE), direction="LEFT"))

    def restored(self, x: Value) -> Value:
        """Return what was stored as floats."""
        b = self.b
        if self.element is not UINT8:
            return b.Mul(b.Cast(x, to=FLOAT.number), self.scale)
        numbers = Numbers(b, UINT8)
        low = b.BitwiseAnd(x, numbers((1 << _HALF_BYTE) - 1))
        high = b.BitShift(x, numbers(_HALF_BYTE), direction="RIGHT")
        pairs = b.Concat(*(b.Unsqueeze(t, ints(b, -1)) for t in (low, high)), axis=-1)
        nibbles = reshaped(b, pairs, b.Shape(x, start=0, end=3), b.Mul(size(b, x, -1), ints(b, 2)))
        steps = Numbers(b, FLOAT).op("Sub", b.Cast(nibbles, to=FLOAT.number), 8)
        return b.Mul(steps, self.scale)
