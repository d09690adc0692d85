"""Equal elements of a tensor: their first indices, numbers and counts; NaN equals NaN and is last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.sizes import passed_over, set_aside

if TYPE_CHECKING:
    from sabir.opsets.typing import Array

_SORTED, _COMPARED = 8, 64  # the time to sort numbers, and strings, by the time to read them
_ORDERED = 40  # bytes, about, of an element during the search
_MANY = 1 << 10  # elements from which it is faster to compute the minimum and maximum first


def check_search(x: Array) -> None:
    """Ask the budget for the time and the memory of a search for duplicates."""
    passed_over(x, _SORTED if x.dtype != object else _COMPARED)
    set_aside(x.size, _ORDERED, "the order of the elements")


def of_elements(x: Array) -> tuple[Array, Array, Array]:
    """Return the first indices, inverse indices and counts of the sorted unique elements."""
    _, first, inverse, counts = np.unique(
        _narrowed(widened(x).ravel()), return_index=True, return_inverse=True, return_counts=True
    )
    return first, inverse.ravel(), counts


def _narrowed(x: Array) -> Array:
    """Return many integers in a small range as distances from the least, for which numpy has a radix sort."""
    if x.dtype.kind not in "iu" or x.size < _MANY:
        return x
    least = int(x.min())
    if int(x.max()) - least >= 1 << 16:
        return x
    return x.astype(np.uint16) - np.uint16(least % (1 << 16))  # both wrap around; the difference is right


def by_first_index(first: Array, inverse: Array, counts: Array) -> tuple[Array, Array, Array]:
    """Return what `of_elements` does, with the elements in the order of their first indices."""
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    return first[order], place[inverse], counts[order]
