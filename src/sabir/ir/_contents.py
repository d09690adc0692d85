"""Equality of tensors: the element type, the shape, and the bits of the contents.

Contents are compared block by block, so that two large tensors in mapped files take little memory. Bits and
not numbers are compared: a NaN equals one with the same bits, and 0.0 differs from -0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import BOOL, STRING

if TYPE_CHECKING:
    from sabir.elements import ElementType
    from sabir.ir._tensors import Tensor

_BLOCK = 1 << 20


def same_contents(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors of one element type and shape have the same elements, bit by bit.

    Raises as `Tensor.raw` does for data that cannot be read.
    """
    if a.element is STRING:
        return a.array().tolist() == b.array().tolist()
    first, second = (np.frombuffer(t.raw(), np.uint8) for t in (a, b))
    if len(first) != len(second):
        return False
    spare = _spare_bits(a.element, a.size) if len(first) else 0
    end = len(first) - bool(spare)
    for start in range(0, end, _BLOCK):
        one, two = (x[start : min(start + _BLOCK, end)] for x in (first, second))
        if not np.array_equal(*((one != 0, two != 0) if a.element is BOOL else (one, two))):
            return False
    return not spare or (int(first[-1]) ^ int(second[-1])) & (0xFF >> spare) == 0


def _spare_bits(element: ElementType, count: int) -> int:
    """Return how many bits of the last byte belong to no element."""
    return -count * element.bits % 8 if element.is_packed else 0
