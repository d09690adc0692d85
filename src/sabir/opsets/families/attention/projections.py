"""The projection of inputs to queries, keys and values by one matrix, whose columns are those of the three.

The product has the shape (batch, length, q + k + v widths); each part is split into heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import FLOAT
from sabir.ir import add, exact_quotient
from sabir.loops import NotLowered
from sabir.opsets.families.attention import attention_graphs as graphs
from sabir.opsets.families.attention import attention_kernels, attentions
from sabir.opsets.families.attention.attention_graphs import ints
from sabir.opsets.families.building import calls
from sabir.opsets.families.numbers.arithmetic import widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Dim, Value
    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_PARTS = 3  # queries, keys and values
_WIDTHS = "`qkv_hidden_sizes`"


def widths(total: Dim, requested: Sequence[int] | None, heads: int) -> tuple[Dim, Dim, Dim]:
    """Return the numbers of columns of queries, keys and values; raises InferenceError where they do not fit.

    `requested` is the attribute `qkv_hidden_sizes`; without it the three are the same.
    """
    if requested is None:
        if isinstance(total, int) and total % (_PARTS * heads):
            raise InferenceError(f"{total} columns cannot be split into {heads} heads of three parts")
        third = exact_quotient(total, _PARTS)
        return third, third, third
    if len(requested) != _PARTS or min(requested) < 0 or any(n % heads for n in requested):
        raise InferenceError(f"{_WIDTHS} must be three multiples of {heads} heads, and is {list(requested)}")
    if requested[0] != requested[1] or (isinstance(total, int) and sum(requested) != total):
        raise InferenceError(
            f"{_WIDTHS} must start with two equal numbers and have the sum {total}; it is {list(requested)}"
        )
    q, k, v = requested
    return q, k, v


def projected(x: Array, weights: Array, bias: Array | None) -> Array:
    """Return the product of all rows; 16-bit floats become float32."""
    y = np.matmul(widened(x), widened(weights))
    return y if bias is None else y + widened(bias)


def parts(x: Array, requested: Sequence[int] | None, heads: int) -> tuple[Array, Array, Array]:
    """Return queries, keys and values as (batch, heads, length, size)."""
    at = [x.shape[2] // _PARTS] * _PARTS if requested is None else requested
    q, k, v = (attentions.split(t, heads) for t in np.split(x, np.cumsum(at)[:2], axis=2))
    return q, k, v


def emitted(b: Builder, x: Value, weights: Value, bias: Value | None) -> Value:
    """Emit `projected` in float."""
    y = b.MatMul(calls.typed(b, x, FLOAT), calls.typed(b, weights, FLOAT))
    return y if bias is None else b.Add(y, calls.typed(b, bias, FLOAT))


def emitted_parts(
    b: Builder, x: Value, requested: Sequence[int] | None, heads: int
) -> tuple[Value, Value, Value]:
    """Emit `parts`."""
    if requested is None:
        each = b.Split(x, num_outputs=_PARTS, axis=2, outputs=_PARTS)
    else:
        each = b.Split(x, ints(b, *requested), axis=2, outputs=_PARTS)
    q, k, v = (graphs.split(b, t, heads) for t in each)
    return q, k, v


def lowered(x: Expression, weights: Expression, bias: Expression | None) -> Expression:
    """Return `projected` as an expression, in the type of `x`."""
    y = loops.contract(x, weights)
    return y if bias is None else loops.apply("add", y, bias)


def lowered_parts(
    x: Expression, requested: Sequence[int] | None, heads: int
) -> tuple[Expression, Expression, Expression]:
    """Return `parts` as expressions."""
    third = loops.divided(x.shape[2], _PARTS)
    sizes: list[Size | None] = [third] * _PARTS if requested is None else [*requested]
    split: list[Expression] = []
    start: Size = 0
    for size in sizes:
        end = None if size is None else add(start, size)
        if size is None or end is None:
            raise NotLowered("the columns of queries, keys and values are known at run time only")
        split.append(attention_kernels.unpacked(loops.narrow(x, 2, start, size), heads))
        start = end
    q, k, v = split
    return q, k, v
