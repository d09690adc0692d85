"""Range: equally spaced numbers from a start to a limit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import Expr, TensorType, add, ceil_div, dim_max, mul, sub
from sabir.opsets.families.numbers.arithmetic import as_dim, as_item
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_one
from sabir.opsets.families.shapes.sizes import allotted

if TYPE_CHECKING:
    from sabir.ir import Dim, Item
    from sabir.opsets.typing import Array


def infer(start: TensorType, limit: TensorType, delta: TensorType, /, *, stash_type: int = 1) -> TensorType:
    _check_scalars(start, limit, delta)
    element_type = next((t.element for t in (start, limit, delta) if t.element.number), start.element)
    arrays = [contents.array_of(t) for t in (start, limit, delta)]
    scalars = [a for a in arrays if a is not None and a.size == 1]
    if len(scalars) == len(arrays):
        return TensorType(element_type, (count(*(widened(a, stash_type) for a in scalars)),))
    first, step = _item(start), _item(delta)
    y = TensorType(element_type, (_symbolic_count(first, _item(limit), step),))
    if not isinstance(y.size, int) or y.size > contents.MOST:
        return y
    numbers = (add(as_dim(first), mul(i, as_dim(step))) for i in range(y.size))
    return y.with_known(as_item(number, element_type) for number in numbers)


def _check_scalars(start: TensorType | Array, limit: TensorType | Array, delta: TensorType | Array) -> None:
    check_one("start", start)
    check_one("limit", limit)
    check_one("delta", delta)


def _item(t: TensorType) -> Item:
    return t.known[0] if t.known is not None and len(t.known) == 1 else None


def _symbolic_count(start: Item, limit: Item, delta: Item) -> Dim:
    if not isinstance(start, (int, Expr)) or not isinstance(limit, (int, Expr)) or not isinstance(delta, int):
        return None
    return None if delta == 0 else dim_max(0, ceil_div(sub(limit, start), delta))


def evaluate(start: Array, limit: Array, delta: Array, /, *, stash_type: int = 1) -> Array:
    _check_scalars(start, limit, delta)
    first, last, step = (widened(x, stash_type) for x in (start, limit, delta))
    steps = count(first, last, step)
    allotted([steps], np.dtype(np.float64))
    if start.dtype.kind == "i":
        return (first + np.arange(steps) * step).astype(start.dtype)
    return (float(first) + np.arange(steps) * float(step)).astype(start.dtype)  # each rounded once


def widened(x: Array, stash_type: int) -> Array:
    """Return a scalar in the type that it is computed in."""
    x = x.reshape(())
    if x.dtype.kind == "i":
        return x.astype(np.int64)
    if x.dtype.itemsize >= np.dtype(np.float32).itemsize:
        return x
    return x.astype(element(stash_type).dtype)


def count(start: Array, limit: Array, delta: Array) -> int:
    """Return the number of steps: their distance in the type of the inputs, its quotient in double."""
    if delta == 0:
        raise InferenceError("`delta` cannot be 0")
    if start.dtype.kind == "i":
        return max(0, -((int(start) - int(limit)) // int(delta)))
    with np.errstate(over="ignore", invalid="ignore"):
        steps = float(limit - start) / float(delta)
    if not math.isfinite(steps):
        raise InferenceError(f"no number of steps of {delta} leads from {start} to {limit}")
    return max(0, math.ceil(steps))
