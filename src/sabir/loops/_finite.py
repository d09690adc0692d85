"""Whether all numbers of a constant are finite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.loops._expression import HALVES, Expression
from sabir.loops._expressions import (
    Expand,
    Extent,
    Join,
    Map,
    Number,
    Permute,
    Reshape,
    Slice,
    Stored,
)

if TYPE_CHECKING:
    from sabir.ir import Array


class Contents:
    """The contents of a constant, read on the first question.

    >>> import numpy as np
    >>> from sabir.loops import Contents
    >>> Contents(np.float32([1, np.inf])).is_finite
    False
    """

    __slots__ = ("_array", "_is_finite")

    def __init__(self, array: Array) -> None:
        self._array = array
        self._is_finite: bool | None = None

    @property
    def is_finite(self) -> bool:
        """Whether no number is infinite or NaN."""
        if self._is_finite is None:
            self._is_finite = bool(np.isfinite(self._array).all())
        return self._is_finite

    @property
    def is_zero(self) -> bool:
        """Whether all numbers are 0."""
        return not self._array.any()


def is_finite(x: Expression) -> bool | None:
    """Return whether no number of a tensor is infinite or NaN; None if its contents are unknown before a run.

    For a part of a constant it is the answer for the whole constant.

    >>> from sabir.loops import is_finite, number
    >>> is_finite(number("float", 1)), is_finite(number("float", float("nan")))
    (True, False)
    """
    if not x.is_float:
        return True
    match x:
        case Number():
            return math.isfinite(x.number)
        case Extent():
            return True
        case Stored():
            contents = x.contents if x.array is None else Contents(x.array)
            return None if contents is None else contents.is_finite
        case Permute() | Reshape() | Expand() | Slice():
            return is_finite(x.operand)
        case Join():
            found = {is_finite(part) for part in x.parts}
            return False if False in found else None if None in found else True
        case Map(op="cast", operands=(operand,)) if operand.element in HALVES:  # float represents all halves
            return is_finite(operand)
        case _:
            return None
