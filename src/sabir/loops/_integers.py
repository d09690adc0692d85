"""Integer products: `sum((a - a_zero) * (b - b_zero))` of 8-bit integers, as int32 that wraps around.

The products of `Contract` are uint8 by int8. So int8 in `a` becomes uint8, and uint8 in `b` becomes int8, by
flipping the sign bit, which moves the zero point by 128. The terms of the zero points are products with the
sums of rows of `a` and of columns of `b`. All of it is exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from sabir.loops._assumptions import equal, shared
from sabir.loops._expressions import (
    Contract,
    Expand,
    Join,
    Map,
    Number,
    Pad,
    Permute,
    Reshape,
    Slice,
    Slide,
    Stored,
    Windows,
)
from sabir.loops._operations import NotLowered, apply, broadcast, cast, number, reduce, reshape, sized

if TYPE_CHECKING:
    from sabir.loops._expression import Expression, Sizes

BYTES = frozenset({"int8", "uint8"})
_OFFSET = 128  # between an int8 and the uint8 with the same bits but the sign bit
_MOST_TAPS = 128  # of a window, whose taps are unrolled
_VIEWS = (Permute, Reshape, Expand, Slice, Windows)


def contract_integers(
    a: Expression, b: Expression, a_zero: Expression | None = None, b_zero: Expression | None = None
) -> Expression:
    """Return `(a - a_zero) @ (b - b_zero)` in int32, of two tensors of 8-bit integers of rank 2 or more.

    `a_zero` has one element or one for each row, `b_zero` one or one for each column: they broadcast to the
    operands. Raises NotLowered for other element types, and for sizes that may differ.
    """
    rows = a.rank - 1 if b.rank == 2 and a.rank > 2 else 1  # ruff: ignore[magic-value-comparison]  matrices
    return convolve_integers(a, b, rows, 1, a_zero, b_zero)


def convolve_integers(
    a: Expression, b: Expression, rows: int, depth: int, a_zero: Expression | None = None,
    b_zero: Expression | None = None,
) -> Expression:  # fmt: skip
    """Return `a - a_zero` `[..., rows..., depth...]` by `b - b_zero` `[..., depth..., N]`, in int32.

    `a_zero` has one element, or one for each row of a single axis of rows; `b_zero` has one element, or one
    for each column. Raises NotLowered for other element types, and for sizes that may differ.
    """
    if not {a.element, b.element} <= BYTES:
        raise NotLowered(f"products of {a.element} by {b.element} have no kernel yet")
    if not all(map(equal, a.shape[a.rank - depth :], b.shape[-1 - depth : -1])):
        raise NotLowered("whether the sizes of the operands are equal is known at run time only")
    batch = broadcast(a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1])
    between = a.shape[a.rank - depth - rows : a.rank - depth]
    shape: Sizes = (*batch, *between, b.shape[-1])
    left, zero = unsigned(a), _plus(a_zero, _OFFSET if a.element == "int8" else 0)
    b_zero = _plus(b_zero, -_OFFSET if b.element == "uint8" else 0)
    total: Expression
    if zero is None or all(d == 1 for d in zero.shape):
        one = None if zero is None else reshape(zero, ())
        total = Contract("int32", shape, left, b, rows, depth, one)
        return total if b_zero is None else _less_rows(total, left, depth, one, b_zero)
    total = Contract("int32", shape, left, b, rows, depth)
    if b_zero is not None:
        total = _less_rows(total, left, depth, None, b_zero)
    return apply("sub", total, apply("mul", zero, _columns(b, depth, b_zero)))


def slide_integers(
    x: Expression, taps: int, weights: Expression, zero: Expression | None = None,
    less: Expression | None = None,
) -> Expression:  # fmt: skip
    """Return the int32 sums over the taps of `(x - zero) * (weights - less)`, of 8-bit integers.

    `x` is `[..., C, taps...]`, the weights are `[C, taps...]`. Raises NotLowered for other element types, for
    zero points that are not one known number, for large windows, and for sizes that may differ.
    """
    if not {x.element, weights.element} <= BYTES:
        raise NotLowered(f"windows of {x.element} by {weights.element} have no kernel yet")
    if not all(map(equal, weights.shape, x.shape[x.rank - weights.rank :])):
        raise NotLowered("whether the weights fit the windows is known at run time only")
    count = math.prod(n if isinstance(n, int) else _MOST_TAPS + 1 for n in weights.shape[1:])
    if count > _MOST_TAPS:
        raise NotLowered("the windows are larger than kernels of integers combine")
    left, right = (0 if z is None else uniform(z) for z in (zero, less))
    if left is None or right is None:
        raise NotLowered("the zero points of windows are not one known number")
    left, right = left + _OFFSET * (x.element == "int8"), right - _OFFSET * (weights.element == "uint8")
    return Slide("int32", x.shape[: x.rank - taps], "sum", unsigned(x), weights, taps, left, right)


def _less_rows(
    total: Expression, a: Expression, depth: int, zero: Expression | None, b_zero: Expression
) -> Expression:
    """Return `total - sum(a - zero) * b_zero`: the sum of each row times the zero point of each column."""
    axes = range(a.rank - depth, a.rank)
    rows = shared(f"rows {depth}", a, lambda x: reduce("sum", cast(x, "int32"), axes))
    if zero is not None:
        rows = apply("sub", rows, apply("mul", zero, _count(a, depth)))
    rows = reshape(rows, (*a.shape[: a.rank - depth], 1))
    return apply("sub", total, apply("mul", rows, b_zero))


def _columns(b: Expression, depth: int, zero: Expression | None) -> Expression:
    """Return the sums of the columns of `b - zero`, where uint8 in `b` is offset by -128."""
    low = cast(b, "int32")
    if b.element == "uint8":
        low = apply("sub", low, _OFFSET)
    if zero is not None:
        low = apply("sub", low, zero)
    found = reduce("sum", low, range(b.rank - 1 - depth, b.rank - 1))
    return reshape(found, (*b.shape[: b.rank - 1 - depth], 1, b.shape[-1]))


def _count(a: Expression, depth: int) -> Expression:
    count: Expression = number("int32", 1)
    for size in a.shape[a.rank - depth :]:
        count = apply("mul", count, sized("int32", size))
    return count


def _plus(zero: Expression | None, offset: int) -> Expression | None:
    """Return `zero + offset` as int32; None if that is known to be 0."""
    known = 0 if zero is None else uniform(zero)
    if known is not None:
        return number("int32", known + offset) if known + offset else None
    if zero is None:
        return None
    wide = cast(zero, "int32")
    return apply("add", wide, offset) if offset else wide


def uniform(x: Expression) -> int | None:
    """Return the integer that all elements of a tensor are known to equal; None if there is none."""
    while isinstance(x, _VIEWS) and not isinstance(x, (Slice, Windows)):
        x = x.operand
    if isinstance(x, Number):
        return int(x.number)
    known = x.known if isinstance(x, Stored) else None
    if known and isinstance(known[0], (int, float)) and all(k == known[0] for k in known):
        return int(known[0]) if float(known[0]).is_integer() else None
    return None


def unsigned(x: Expression) -> Expression:
    """Return int8 plus 128 as uint8 (the sign bit flipped); uint8 unchanged."""
    return x if x.element == "uint8" else shared("unsigned", x, _flipped)


def _flipped(x: Expression) -> Expression:
    """Flip the sign bits below views, so that they remain views."""
    match x:
        case Permute() | Reshape() | Expand() | Slice() | Windows():
            return replace(x, element="uint8", operand=unsigned(x.operand))
        case Pad():
            return replace(x, element="uint8", operand=unsigned(x.operand), number=x.number + _OFFSET)
        case Join():
            return replace(x, element="uint8", parts=tuple(map(unsigned, x.parts)))
        case _:
            return Map("uint8", x.shape, "cast", (apply("bitwise_xor", x, -_OFFSET),))
