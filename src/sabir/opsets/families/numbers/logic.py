"""Logical operators on known contents, some of which may be unknown, and their examples."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families.numbers import binary, broadcasting
from sabir.opsets.families.shapes import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sabir.ir import Item
    from sabir.schema import Example


def known_both(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a and b: false where one of them is false, whatever the other is."""
    return _inferred(_both, a, b)


def known_either(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a or b: true where one of them is true, whatever the other is."""
    return _inferred(lambda x, y: _not(_both(_not(x), _not(y))), a, b)


def known_one(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer that exactly one of a and b is true."""
    return _inferred(lambda x, y: None if x is None or y is None else bool(x) != bool(y), a, b)


def known_opposite(x: TensorType, /) -> TensorType:
    """Infer not x."""
    return contents.computed(TensorType(x.element, x.shape), _not, x)


def examples_of(name: str, *, one_way: Sequence[int], both_ways: Sequence[int]) -> Iterator[Example]:
    """Yield calls of a logical operator, as `binary.examples_of`."""
    a, row, column = (
        np.array([[True, True], [False, False]]),
        np.array([True, False]),
        np.array([[True], [False]]),
    )
    yield from binary.examples_of(name, a, row, column, one_way=one_way, both_ways=both_ways)


def _inferred(rule: Callable[[Item, Item], Item], a: TensorType, b: TensorType) -> TensorType:
    result, x, y = broadcasting.merged(a, b), contents.objects(a), contents.objects(b)
    if x is None or y is None or not isinstance(result.size, int) or result.size > contents.MOST:
        return result
    return result.with_known(starmap(rule, np.broadcast(x, y)))


def _both(x: Item, y: Item) -> Item:
    if False in {x, y}:
        return False
    return None if x is None or y is None else True


def _not(x: Item) -> Item:
    return None if x is None else not x
