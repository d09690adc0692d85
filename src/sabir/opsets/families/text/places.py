"""Texts as their places in a table: what follows a table of texts are numbers, which kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.elements import STRING
from sabir.opsets.families.indexing.lookups import numbers_of, with_default
from sabir.opsets.families.numbers.scalars import element_of
from sabir.schema import INTERNAL, Unconvertible, moving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array

_TEXTS = (str, bytes)


def finding(keys: Sequence[str], *, is_complete: bool = False) -> Callable[[Array], Array]:
    """Return the function that finds texts in a table: the index of each, of equal keys the last.

    Other texts have the number of all keys; in a table that `is_complete` they are a ValueError. What is no
    text is a TypeError.
    """
    others = len(keys)
    table = dict(zip(keys, range(others), strict=True))
    indices: Array = np.arange(others + 1, dtype=np.int64)
    indices.flags.writeable = False
    rows: list[Array] = [indices[n : n + 1] for n in range(others + 1)]

    def check(texts: list[Any]) -> None:
        for kind in {*map(type, texts)}:
            if not issubclass(kind, _TEXTS):
                raise TypeError(f"{kind.__name__} is no type of texts")
        if is_complete:
            lost = next(text for text in texts if text not in table)
            raise ValueError(f"{lost!r} is not in the table")

    @moving
    def found(x: Array) -> Array:
        if x.size == 1:
            item = x.item()
            place = table.get(item, others)
            if place == others:
                check([item])
            return rows[place].reshape(x.shape)
        places = numbers_of(x, table, others)
        if others in places:
            check(x.ravel().tolist())
        return places

    return found


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
    return b.Gather(b.initializer("values", with_default(values, default)), places_of(b, x, keys))
