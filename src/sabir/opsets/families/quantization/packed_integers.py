"""Unsigned integers of 2, 4 or 8 bits, packed into bytes along the last axis: the lowest bits come first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.extents import unsqueezed

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

BYTE = 8  # bits
WIDTHS = (2, 4, 8)  # bits of an integer


def unpacked(x: Array, bits: int) -> Array:
    """Return the integers of bytes `[..., n]` as uint8 `[..., n * 8 / bits]`."""
    if bits == BYTE:
        return x
    shifts = np.arange(0, BYTE, bits, dtype=np.uint8)
    fields = (x[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return fields.reshape(*x.shape[:-1], x.shape[-1] * len(shifts))


def unpacked_value(b: Builder, x: Value, rank: int, bits: int) -> Value:
    """Emit `unpacked` of bytes with `rank` axes."""
    if bits == BYTE:
        return x
    byte = element_of(x).dtype
    mask = b.initializer("mask", np.array((1 << bits) - 1, byte))
    fields: list[Value] = []
    for shift in range(0, BYTE, bits):
        moved = (
            b.BitShift(x, b.initializer("shift", np.array(shift, byte)), direction="RIGHT") if shift else x
        )
        fields.append(unsqueezed(b, b.BitwiseAnd(moved, mask), [rank]))
    joined = b.Concat(*fields, axis=rank)
    return b.Reshape(joined, b.initializer("shape", np.array([0] * (rank - 1) + [-1], np.int64)))
