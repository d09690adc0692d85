"""Texts as their places in a table: what follows a table of texts are numbers, which kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import STRING
from sabir.opsets.families.numbers.scalars import element_of
from sabir.schema import INTERNAL, Unconvertible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

_TEXTS = (str, bytes)


class TextTable(dict[Any, int]):  # ruff: ignore[subclass-builtin]  `map` calls its own `__getitem__`
    """The index of each key, of equal ones the last, and the number of all keys for other texts.

    A table that `is_complete` raises ValueError for other texts. `rows` has each index as an array of shape
    [1], which is read-only.
    """

    __slots__ = ("_others", "rows")

    def __init__(self, keys: Sequence[str], *, is_complete: bool = False) -> None:
        super().__init__(zip(keys, range(len(keys)), strict=True))
        self._others = None if is_complete else len(keys)
        indices: Array = np.arange(len(keys) + 1, dtype=np.int64)
        indices.flags.writeable = False
        self.rows = np.split(indices, len(indices))

    def __missing__(self, text: Any) -> int:
        """Return the index of a text that is no key; raises TypeError for one that is no text."""
        if not isinstance(text, _TEXTS):
            raise TypeError(f"{text!r} is no text")
        if self._others is None:
            raise ValueError(f"{text!r} is not in the table")
        return self._others


def is_text(x: Value) -> bool:
    """Return whether a value is known to be a tensor of texts."""
    return element_of(x) is STRING


def places_of(b: Builder, x: Value, keys: Sequence[str], *, is_complete: bool = False) -> Value:
    """Add the node that finds texts in a table; raises Unconvertible for a value that is no text.

    A text that is no key has the place after the last key; in a table that `is_complete` it is an error.
    """
    if not is_text(x):
        raise Unconvertible("the operand is known to be no text")
    return b.op("TextPlaces", x, domain=INTERNAL, keys=tuple(keys), complete=int(is_complete))


def values_of(b: Builder, x: Value, keys: Sequence[str], values: Array, default: object) -> Value:
    """Add the nodes that replace texts by the values of their keys; raises as `places_of`."""
    table: Array = np.empty(len(values) + 1, values.dtype)
    table[:-1], table[-1] = values, default
    return b.Gather(b.initializer("values", table), places_of(b, x, keys))
