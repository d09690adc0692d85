"""Logic on known contents, of which some may be unknown: false and anything is false."""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import TensorType
from sabir.opsets.families import broadcasting, contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Item


def known_both(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a and b."""
    return _inferred(_both, a, b)


def known_either(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a or b: not both are false."""
    return _inferred(lambda x, y: _not(_both(_not(x), _not(y))), a, b)


def known_one(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer that exactly one of a and b holds."""
    return _inferred(lambda x, y: None if x is None or y is None else bool(x) != bool(y), a, b)


def known_opposite(x: TensorType, /) -> TensorType:
    """Infer not x."""
    return contents.computed(TensorType(x.element, x.shape), _not, x)


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
