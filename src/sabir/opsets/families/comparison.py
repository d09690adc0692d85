"""Comparison of known contents, symbolic sizes among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BOOL
from sabir.ir import lower_bound, sub, upper_bound
from sabir.opsets.families import arithmetic, broadcasting

if TYPE_CHECKING:
    from sabir.ir import Item, TensorType


def less(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a < b."""
    return broadcasting.computed(_less, a, b, element=BOOL)


def greater(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a > b."""
    return less(b, a)


def not_less(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a >= b."""
    return broadcasting.computed(_not_less, a, b, element=BOOL)


def not_greater(a: TensorType, b: TensorType, /) -> TensorType:
    """Infer a <= b."""
    return not_less(b, a)


def _less(a: Item, b: Item) -> Item:
    opposite = _not_less(a, b)  # known contents that are compared with a symbol are sizes, never NaN
    return None if opposite is None else not opposite


def _not_less(a: Item, b: Item) -> Item:
    difference = sub(arithmetic.as_dim(a), arithmetic.as_dim(b))
    low, high = lower_bound(difference), upper_bound(difference)
    if low is not None and low >= 0:
        return True
    return False if high is not None and high < 0 else None
