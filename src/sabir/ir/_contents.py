"""Equality of tensors: the element type, the shape, and the bits of the contents.

Contents are compared block by block, so that two large tensors in mapped files take little memory. Bits and
not numbers are compared: a NaN equals one with the same bits, and 0.0 differs from -0.0.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sabir.elements import BOOL, STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.elements import ElementType
    from sabir.ir._tensors import Tensor

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
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
    pairs = zip(blocks_of(first, a), blocks_of(second, b), strict=True)
    return all(starmap(np.array_equal, pairs))


def blocks_of(data: Bytes, tensor: Tensor) -> Iterator[Bytes]:
    """Yield the packed elements in blocks, without the differences that no element has.

    Every byte of a bool but zero is true, and the spare bits of the last byte belong to no element.
    """
    spare = _spare_bits(tensor.element, tensor.size) if len(data) else 0
    for start in range(0, len(data), _BLOCK):
        block = data[start : start + _BLOCK]
        if tensor.element is BOOL:
            block = block != 0
        elif spare and start + len(block) == len(data):
            block = block.copy()
            block[-1] &= 0xFF >> spare
        yield block


def _spare_bits(element: ElementType, count: int) -> int:
    """Return how many bits of the last byte belong to no element."""
    return -count * element.bits % 8 if element.is_packed else 0
