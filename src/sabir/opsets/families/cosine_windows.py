"""Windows that are sums of cosines: `a0 - a1 cos(t) + a2 cos(2t)`, t going once around over the window."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import DOUBLE, FLOAT
from sabir.ir import Expr, TensorType, dim_max
from sabir.opsets.families.casting import converted
from sabir.opsets.families.ranks import as_number, check_one
from sabir.opsets.families.sizes import allotted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.ir import Builder, Value
    from sabir.opsets.typing import Array


_BLOCK = 1 << 16  # elements that are computed at a time


def infer(size: TensorType, kind: ElementType) -> TensorType:
    """Return a vector of as many elements as the input says."""
    check_one("size", size)
    length = size.known[0] if size.known else None
    if isinstance(length, (int, Expr)):
        return TensorType(kind, (dim_max(length, 0),))
    return TensorType(kind, (None,))


def sampled(size: Array, terms: Sequence[float], kind: ElementType, *, periodic: bool) -> Array:
    """Return a window computed in float64; a symmetric one of one element is no number, by its formula."""
    (count,) = allotted([max(0, int(as_number("size", size)))], kind.dtype)
    angle = np.divide(math.tau, count if periodic else count - 1)
    window: Array = np.empty(count, kind.dtype)
    for first in range(0, count, _BLOCK):
        angles = np.arange(first, min(first + _BLOCK, count)) * angle
        y = np.full(angles.shape, terms[0])
        for times, term in enumerate(terms[1:], 1):
            y += np.cos(angles * times) * (term if times % 2 == 0 else -term)
        y = y.astype(np.float32) if kind.is_integer else y  # a whole number but for rounding
        window[first : first + _BLOCK] = converted(y, kind)
    return window


def graph(b: Builder, size: Value, terms: Sequence[float], kind: ElementType, *, periodic: bool) -> Value:
    """Return the same, step by step."""

    def number(value: float) -> Value:
        return b.initializer("number", np.array(value, np.float64))

    count = b.Cast(b.Reshape(size, b.initializer("scalar", np.zeros(0, np.int64))), to=DOUBLE.number)
    turns = count if periodic else b.Sub(count, number(1))
    angles = b.Mul(b.Range(number(0), count, number(1)), b.Div(number(math.tau), turns))
    y = number(terms[0])
    for times, term in enumerate(terms[1:], 1):
        cosine = b.Cos(angles if times == 1 else b.Mul(angles, number(times)))
        y = b.Add(y, b.Mul(cosine, number(term if times % 2 == 0 else -term)))
    return b.Cast(b.Cast(y, to=FLOAT.number) if kind.is_integer else y, to=kind.number)
