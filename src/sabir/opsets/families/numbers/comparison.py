"""Comparison of known contents, symbolic sizes among them, and of integers in older versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import BOOL, DOUBLE, INT32
from sabir.ir import lower_bound, sub, upper_bound
from sabir.opsets.families.numbers import arithmetic, broadcasting
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.extents import ints_of
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from sabir.ir import Builder, Item, TensorType, Value
    from sabir.schema import Version

_EXACT_IN_DOUBLE = 1 << 53


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


def through_double(newer: Version) -> None:
    """Attach the downgrade to a version that admits floats only: integers are compared as doubles.

    That is exact for 32 bits, and for a comparison with a constant that is exact as a double itself.
    """
    name = newer.operator.name

    @newer.downgrade
    def downgrade(b: Builder, x: Value, y: Value, /) -> Value:
        kind = element_of(x)
        if kind.is_float:
            return b.op(name, x, y)
        if kind.bits > INT32.bits and not any(_is_exact(b, v) for v in (x, y)):
            raise Unconvertible(f"{newer.previous} compares floats, and not every {kind} is one")
        return b.op(name, *(b.Cast(v, to=DOUBLE.number) for v in (x, y)))


def _is_exact(b: Builder, x: Value) -> bool:
    known = ints_of(b, x)
    return known is not None and all(abs(i) < _EXACT_IN_DOUBLE for i in known)


def _less(a: Item, b: Item) -> Item:
    opposite = _not_less(a, b)  # known contents that are compared with a symbol are sizes, never NaN
    return None if opposite is None else not opposite


def _not_less(a: Item, b: Item) -> Item:
    difference = sub(arithmetic.as_dim(a), arithmetic.as_dim(b))
    low, high = lower_bound(difference), upper_bound(difference)
    if low is not None and low >= 0:
        return True
    return False if high is not None and high < 0 else None
