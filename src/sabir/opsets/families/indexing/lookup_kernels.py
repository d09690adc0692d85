"""Lowering of lookup tables of numbers: few keys are compared one by one, many by binary search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.ir import product
from sabir.loops import NotLowered
from sabir.opsets.families.trees.tree_kernels import key_of

if TYPE_CHECKING:
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_MOST = 24  # keys that each element is compared with one by one
_MOST_SEARCHED = 1 << 28
_SIGN = 1 << 63


def mapped(x: Expression, keys: Array, values: Array, default: object, *, nan: bool) -> Expression:
    """Return the value of the key that equals each element of `x`, the last of equal keys, or `default`.

    With `nan` a NaN among the keys matches every NaN.
    """
    element = loops.tensor(values[:0]).element
    found: Expression = loops.expand(loops.number(element, np.array(default, values.dtype).item()), x.shape)
    is_nan = np.isnan(keys)
    keys, values, of_nan = keys[~is_nan], values[~is_nan], values[is_nan]
    if nan and len(of_nan):
        found = loops.where(loops.apply("isnan", x), loops.number(element, of_nan[-1].item()), found)
    if len(keys) > _MOST:
        return _searched(x, keys, values, found)
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        found = loops.where(loops.apply("eq", x, key), loops.number(element, value), found)
    return found


def _searched(x: Expression, keys: Array, values: Array, others: Expression) -> Expression:
    """Return the values of elements that are keys; a decision tree finds the last key up to an element."""
    _, last = np.unique(keys[::-1], return_index=True)  # sorted; of equal keys the last
    keys, values = keys[::-1][last], values[::-1][last]
    count = product(x.shape)
    if count is None or len(keys) > _MOST_SEARCHED:
        raise NotLowered("the number of elements is unknown, or that of keys very large")
    flat = loops.reshape(x, (count, 1))
    if x.is_float:
        order, features = key_of(keys), loops.order(flat)
    else:
        order = keys.astype(np.int64).view(np.uint64) ^ np.uint64(_SIGN)
        features = loops.apply("bitwise_xor", loops.cast(loops.cast(flat, "int64"), "uint64"), _SIGN)
    nodes, weights = _tree(order, np.dtype(features.element))
    place = loops.Descend(
        "double", (count, 1), features, "sum", loops.tensor(nodes), loops.tensor(np.zeros((2, 8), np.int32)),
        loops.tensor(weights), trees=1, bits=1, steps=len(keys).bit_length(),
    )  # fmt: skip
    places = loops.reshape(loops.cast(place, "int64"), x.shape)
    hit = loops.apply("eq", loops.take(loops.tensor(keys), places, 0), x)
    return loops.where(hit, loops.take(loops.tensor(values), places, 0), others)


def _tree(order: Array, kind: np.dtype[np.unsignedinteger]) -> tuple[Array, Array]:
    """Return the tables of a tree for binary search of sorted integers; leaf weights are their indices."""
    nodes = np.zeros((2 * len(order) - 1, 2), kind)
    weights = np.zeros(len(nodes))
    pending, free = [(0, 0, len(order))], 1
    while pending:
        at, low, high = pending.pop()
        middle = (low + high) // 2
        if middle == low:  # one key remains
            nodes[at], weights[at] = (np.iinfo(kind).max, at << 1), low
            continue
        nodes[at] = order[middle] - np.uint64(1), free << 1
        pending += [(free, low, middle), (free + 1, middle, high)]
        free += 2
    return nodes, weights
