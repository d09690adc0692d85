"""Element types that are wider than others: they have every value of the narrower type."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from sabir.elements import COMPLEX64, COMPLEX128, DOUBLE, FLOAT

if TYPE_CHECKING:
    from sabir.elements import ElementType


@cache
def is_wider(wide: ElementType, narrow: ElementType) -> bool:
    """Return whether another element type of the same kind has every value of `narrow`."""
    if wide is narrow or wide.kind != narrow.kind:
        return False
    if narrow.is_integer:
        one, other = (ml_dtypes.iinfo(t.dtype) for t in (wide, narrow))
        return bool(one.min <= other.min and other.max <= one.max)
    if narrow.is_complex:
        return (wide, narrow) == (COMPLEX128, COMPLEX64)
    if not narrow.is_float or narrow in {DOUBLE, FLOAT}:
        return wide is DOUBLE and narrow is FLOAT
    return _has_values_of(wide, narrow)


def _has_values_of(wide: ElementType, narrow: ElementType) -> bool:
    """Return whether a float type has every value of one with at most 16 bits, NaN and infinities too."""
    count = 1 << narrow.bits
    codes = np.arange(count, dtype=np.uint8 if narrow.bits <= 8 else "<u2")  # ruff: ignore[magic-value-comparison]  a byte
    with np.errstate(all="ignore"):
        values = codes.view(narrow.dtype).astype(np.float64)
        again = values.astype(wide.dtype).astype(np.float64)
    equal = (values == again) & (np.signbit(values) == np.signbit(again))  # a type may lack -0.0
    return bool((equal | np.isnan(values) & np.isnan(again)).all())
