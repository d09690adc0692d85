"""Masks of padding in onnxruntime's attention: which keys are no padding, in one of six forms.

- `(batch)`: the number of keys of each item, and `(3 * batch + 2)`, which starts with these numbers;
- `(2 * batch)`: the end of the keys of each item, then their starts;
- `(batch, keys)`, `(batch, queries, keys)`: positive for keys;
- `(batch, 1, longest, longest)`: positive for keys, by the positions of queries and keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import INT64
from sabir.ir import TensorType, add, may_be_equal, mul, sub
from sabir.ir import known_equal as equal
from sabir.loops import NotLowered
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, shown
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from sabir.ir import Builder, Dim, Value
    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_ENDS, _BY_KEY, _BY_QUERY, _WHOLE = 1, 2, 3, 4  # the rank of each form


def check(name: str, mask: TensorType | None, batch: Dim, queries: Dim, keys: Dim) -> None:
    """Raise InferenceError for a mask of another shape than the forms; one column stands for all keys."""
    check_rank(name, mask, _ENDS, _BY_KEY, _BY_QUERY, _WHOLE)
    if mask is None or mask.shape is None:
        return
    rank, last = len(mask.shape), mask.shape[-1]
    if rank == _ENDS and not any(may_be_equal(last, n) for n in _lengths(batch)):
        raise InferenceError(f"`{name}` of {last} numbers must have {' or '.join(map(str, _lengths(batch)))}")
    if rank == _BY_KEY:
        check_shape(name, mask, batch, 1 if last == 1 else keys)
    if rank == _BY_QUERY:
        check_shape(name, mask, batch, queries, keys)
    if rank == _WHOLE:
        check_shape(name, mask, batch, 1, None, None)
        ends = [(d, keys) for d in mask.shape[2:]]
        if any(isinstance(d, int) and isinstance(k, int) and d < k for d, k in ends):
            raise InferenceError(f"`{name}` of the shape {shown(mask.shape)} ends before {keys} keys")


def _lengths(batch: Dim) -> tuple[Dim, Dim, Dim]:
    return batch, mul(batch, 2), add(mul(batch, 3), 2)


def _has_starts(length: Dim, batch: Dim) -> bool | None:
    """Return whether a mask of rank 1 has ends and starts; None where it is not known."""
    ends, starts, sums = (equal(length, n) for n in _lengths(batch))
    return False if ends or sums else True if starts else None


def allowed(mask: Array, batch: int, queries: int, keys: int) -> Array:
    """Return which keys each query may attend to, broadcasting to (batch, heads, queries, keys)."""
    if mask.ndim == _ENDS:
        places, ends = np.arange(keys), mask[:batch, None, None, None]
        if len(mask) != 2 * batch:
            return places < ends
        return (places < ends) & (places >= mask[batch:, None, None, None])
    if mask.ndim == _BY_KEY:
        return mask[:, None, None, :] > 0
    if mask.ndim == _BY_QUERY:
        return mask[:, None] > 0
    return mask[:, :, keys - queries : keys, :keys] > 0


def emitted(b: Builder, mask: Value, q: Value, keys: Value) -> Value:
    """Emit `allowed` for queries of the shape (batch, heads, queries, size); `keys` is a vector of one."""
    shape = mask.type.shape if isinstance(mask.type, TensorType) else None
    if shape is None:
        raise Unconvertible("the rank of the mask of padding is unknown, and its form depends on it")
    zero = Numbers.like(b, mask)(0)
    if len(shape) == _ENDS:
        return _emitted_ends(b, b.Cast(mask, to=INT64.number), shape[0], q, keys)
    if len(shape) == _WHOLE:
        starts = b.Concat(b.Sub(keys, graphs.size(b, q, 2)), ints(b, 0), axis=0)
        mask = b.Slice(mask, starts, b.Concat(keys, keys, axis=0), ints(b, 2, 3))
    else:
        mask = b.Unsqueeze(mask, ints(b, 1, 2) if len(shape) == _BY_KEY else ints(b, 1))
    return b.Greater(mask, zero)


def _emitted_ends(b: Builder, mask: Value, length: Dim, q: Value, keys: Value) -> Value:
    batch = q.type.shape[0] if isinstance(q.type, TensorType) and q.type.shape is not None else None
    has_starts = _has_starts(length, batch)
    if has_starts is None:
        raise Unconvertible("the form of the mask of padding depends on its length, which is unknown")
    items, places = graphs.size(b, q, 0), graphs.indices(b, keys)
    ends = b.Unsqueeze(b.Slice(mask, ints(b, 0), items), ints(b, 1, 2, 3))
    if not has_starts:
        return b.Less(places, ends)
    starts = b.Unsqueeze(b.Slice(mask, items, b.Mul(items, ints(b, 2))), ints(b, 1, 2, 3))
    return b.And(b.Less(places, ends), b.GreaterOrEqual(places, starts))


def lowered(mask: Expression, batch: Size, queries: Size, keys: Size) -> Expression:
    """Return `allowed` as an expression; raises NotLowered where the form is known at run time only."""
    if mask.rank == _BY_KEY:
        return loops.apply("gt", loops.reshape(mask, (mask.shape[0], 1, 1, mask.shape[1])), 0)
    if mask.rank == _BY_QUERY:
        return loops.apply("gt", loops.reshape(mask, (mask.shape[0], 1, *mask.shape[1:])), 0)
    if mask.rank == _WHOLE:
        first = sub(keys, queries)
        if first is None:
            raise NotLowered("the first row of the mask of padding is known at run time only")
        return loops.apply("gt", loops.narrow(loops.narrow(mask, 2, first, queries), 3, 0, keys), 0)
    has_starts = _has_starts(mask.shape[0], batch)
    if has_starts is None:
        raise NotLowered("the form of the mask of padding is known at run time only")
    places = loops.cast(loops.count((1, 1, 1, keys), 3), mask.element)
    ends = loops.reshape(loops.narrow(mask, 0, 0, batch), (batch, 1, 1, 1))
    before = loops.apply("lt", places, ends)
    if not has_starts:
        return before
    starts = loops.reshape(loops.narrow(mask, 0, batch, batch), (batch, 1, 1, 1))
    return loops.apply("and", before, loops.apply("ge", places, starts))
