"""Conversion of axes between attributes and inputs, and between counting from the front and from the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import Attribute, TensorType
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.shapes import axes_in
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Builder, Value


def as_input(b: Builder, name: str, values: Iterable[int]) -> Value:
    """Return integers of an attribute as an initializer."""
    return b.initializer(name, np.array([*values], np.int64))


def known_ints(value: Value) -> list[int] | None:
    """Return the integers of an input, None where they are computed at run time."""
    return contents.ints(value.type.known) if isinstance(value.type, TensorType) else None


def as_ints(name: str, value: Value) -> tuple[int, ...]:
    """Return the integers of an input; raises Unconvertible where they are computed at run time."""
    known = known_ints(value)
    if known is None:
        raise Unconvertible(f"`{name}` is computed at run time, and the older version needs it in the model")
    return tuple(known)


def ints(name: str, values: Iterable[int]) -> Attribute:
    """Return an attribute of integers, which may be empty."""
    return Attribute(name, "ints", tuple(values))


def from_front(axes: Iterable[int], x: Value, *, more: int = 0) -> tuple[int, ...]:
    """Return axes of `x`, counted from the front, for a version that admits no negative ones.

    `more` is how many dimensions the axes count beyond the rank of `x`. Raises Unconvertible for a negative
    axis where the rank is unknown.
    """
    axes = tuple(axes)
    if all(a >= 0 for a in axes):
        return axes
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if rank is None:
        raise Unconvertible(
            "a negative axis of a tensor of unknown rank, and the older version counts from the front"
        )
    return axes_in(axes, rank + more)
