"""What values cost in numpy: their bytes, the work beside them, how many numbers they have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from sabir.ir import Array

_ARRAY: Any = np.ndarray  # untyped: a cast would take time in every run
_OBJECT = np.dtype(object)
_TEXT, _ITEM, _ENTRY = 56, 128, 128  # bytes, about: a text, an array, an entry in a map beside its contents
WIDE, NARROW = 8, 4  # bytes of a number while it is computed, where it is narrower than the second


def bytes_of(value: Any) -> int:
    """Return about how many bytes a value has; a view has those of its copy."""
    if type(value) is _ARRAY:
        return value.nbytes if value.dtype is not _OBJECT else value.size * _TEXT + _letters(value)
    if isinstance(value, list):
        return _ITEM * len(cast("list[Any]", value)) + _item_bytes(cast("list[Any]", value))
    if isinstance(value, dict):
        return _ENTRY * len(cast("dict[Any, Any]", value))
    return 0


def _item_bytes(items: list[Any]) -> int:
    """Return the bytes of a sequence's items, which are all of one type."""
    if items and type(items[0]) is _ARRAY and items[0].dtype is not _OBJECT:
        return sum([x.nbytes for x in items if x is not None])  # ruff: ignore[unnecessary-comprehension-in-call]  half the time
    if items and isinstance(items[0], dict):
        return _ENTRY * sum(map(len, items))
    return sum(map(bytes_of, items))


def unseen_work(value: Any) -> int:
    """Return how many bytes more a value would have if its numbers were as wide as in the computation."""
    return (WIDE - value.itemsize) * value.size if type(value) is _ARRAY and value.itemsize < NARROW else 0


def numbers_of(value: Any) -> int:
    """Return how many numbers a value has, with which the bounds of a run grow; eight letters are one."""
    if type(value) is _ARRAY:
        return value.size if value.dtype is not _OBJECT else value.size + _letters(value) // WIDE
    if isinstance(value, list):
        return sum(map(numbers_of, cast("list[Any]", value)))
    if isinstance(value, dict):
        return 2 * len(cast("dict[Any, Any]", value))
    return 0


def _letters(array: Array) -> int:
    return sum(len(text) for text in array.ravel().tolist() if isinstance(text, (str, bytes)))
