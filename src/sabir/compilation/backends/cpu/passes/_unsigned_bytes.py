"""Unsigned bytes: products of 8-bit integers as uint8 by int8, which processors have instructions for.

    contract(a: int8, b, a_zero)       contract(a ^ 128: uint8, b, a_zero + 128)
    contract(a, b: uint8)              contract(a, b, b_zero=128) + 128 * rows(a)
    contract(a, b, b_zero)             contract(a, b) - b_zero * rows(a)
    contract(a, b, a_zero of rows)     contract(a, b) - a_zero * columns(b)
    slide(x: int8, w, zero)            slide(x ^ 128: uint8, w, zero + 128)

`rows` has the sums over the rows of `a - a_zero` if `a_zero` is one number, else of `a`; `columns` has the
sums over the columns of `b`. Packing converts a `b` of uint8 to int8 by subtracting 128. So for kernels its
zero point is `b_zero - 128`: 0 if `b_zero` is 128, and -128 if there is none. The same holds for floats times
uint8.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sabir.loops import (
    Contract,
    Expand,
    Expression,
    Join,
    Map,
    Pad,
    Permute,
    Reshape,
    Slice,
    Slide,
    Windows,
    apply,
    cast,
    expand,
    number,
    of_columns,
    reduce,
    reshape,
    shared,
    sized,
    tensor,
    uniform,
)
from sabir.loops.walk import rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

_OFFSET = 128  # between a uint8 and the int8 with the same bits except the sign bit
_PACKED_ZERO = number("uint8", _OFFSET)  # one expression: equal products stay equal


def unsigned_bytes(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return expressions by slot, in which products of 8-bit integers have the form that kernels compute."""
    return rewrite(expressions, _rule)


def is_packed_zero(contract: Contract) -> bool:
    """Return whether kernels subtract no zero point: there is none, or it is 128, which packing subtracts."""
    if contract.b_zero is None:
        return True
    return contract.b.element == "uint8" and contract.packs == 1 and uniform(contract.b_zero) == _OFFSET


def packed_zero(slide: Slide) -> int:
    """Return the zero point of the packed weights of sliding windows: `weights_zero - 128` for uint8."""
    weights = slide.weights
    return slide.weights_zero - _OFFSET * (weights is not None and weights.element == "uint8")


def is_of_bytes(x: Expression) -> bool:
    match x:
        case Contract():
            return x.element == "int32" or (x.b.element == "uint8" and x.packs == 1)
        case Slide():
            return x.element == "int32" and x.operand.element == "int8"
        case _:
            return False


def _rule(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    if not is_of_bytes(x):
        return None
    y = rebuilt(x, new)
    match y:
        case Contract():
            return _product(y) if y.element == "int32" else _float_product(y)
        case Slide():
            return replace(y, operand=_unsigned(y.operand), zero=y.zero + _OFFSET)
        case _:
            raise TypeError("new operands change the kind of no expression")


def _product(x: Contract) -> Expression:
    """Return a product of integers as a product of uint8 by int8, corrected by sums of rows and columns."""
    a, b, depth = _unsigned(x.a), x.b, x.depth
    zero = _plus(x.a_zero, _OFFSET if x.a.element == "int8" else 0)
    own = None if x.b_zero is None else of_columns(x.b_zero, b, x.rows, depth)
    own = _plus(own, -_OFFSET if b.element == "uint8" else 0)
    packed = _PACKED_ZERO if b.element == "uint8" else None
    if zero is None or all(d == 1 for d in zero.shape):
        one = None if zero is None else reshape(zero, ())
        total: Expression = replace(x, a=a, a_zero=one, b_zero=packed)
        return total if own is None else _less_rows(total, a, depth, one, own)
    total = replace(x, a=a, a_zero=None, b_zero=packed)
    if own is not None:
        total = _less_rows(total, a, depth, None, own)
    first = a.rank - depth
    each_row = reshape(zero, (*((1,) * (a.rank - zero.rank) + zero.shape)[:first], 1))
    return apply("sub", total, apply("mul", each_row, _columns(x, own)))


def _less_rows(
    total: Expression, a: Expression, depth: int, zero: Expression | None, b_zero: Expression
) -> Expression:
    """Return `total - rows * b_zero`, where `rows` are the sums over the rows of `a - zero`."""
    axes = range(a.rank - depth, a.rank)
    rows = shared(f"rows {depth}", a, lambda x: reduce("sum", cast(x, "int32"), axes))
    if zero is not None:
        rows = apply("sub", rows, apply("mul", zero, _count(a, depth)))
    rows = reshape(rows, (*a.shape[: a.rank - depth], 1))
    return apply("sub", total, apply("mul", rows, b_zero))


def _columns(x: Contract, b_zero: Expression | None) -> Expression:
    """Return the sums over the columns of `packed b - b_zero`."""
    b, first = x.b, x.b.rank - 1 - x.depth
    low = cast(b, "int32")
    if b.element == "uint8":
        low = apply("sub", low, _OFFSET)
    if b_zero is not None:
        batch = b_zero.shape[: max(0, b_zero.rank - 1 - x.rows)]
        shape = (*batch, *(1,) * x.depth, b_zero.shape[-1]) if batch else b_zero.shape[-1:]
        low = apply("sub", low, reshape(b_zero, shape))
    found = reduce("sum", low, range(first, b.rank - 1))
    return reshape(found, (*b.shape[:first], *(1,) * (x.rows if first else 1), b.shape[-1]))


def _count(a: Expression, depth: int) -> Expression:
    count: Expression = number("int32", 1)
    for size in a.shape[a.rank - depth :]:
        count = apply("mul", count, sized("int32", size))
    return count


def _plus(zero: Expression | None, offset: int) -> Expression | None:
    """Return `zero + offset` as int32; None if that is known to be 0. `zero` None is 0."""
    known = 0 if zero is None else uniform(zero)
    if known is not None:
        return number("int32", known + offset) if known + offset else None
    if zero is None:
        return None
    wide = cast(zero, "int32")
    return apply("add", wide, offset) if offset else wide


def _float_product(x: Contract) -> Contract:
    """Return a product of floats by uint8 with a zero point that kernels can apply to packed numbers."""
    if is_packed_zero(x) and x.b_zero is not None:
        return replace(x, b_zero=_PACKED_ZERO)
    if x.scale is None:
        wide = cast(x.b, x.element)
        if x.b_zero is not None:
            wide = apply("sub", wide, cast(x.b_zero, x.element))
        return replace(x, b=wide, b_zero=None)
    if x.b_zero is not None:
        return x
    return replace(x, b_zero=expand(tensor(np.zeros((), np.uint8)), x.scale.shape))


def _unsigned(x: Expression) -> Expression:
    """Return int8 as uint8, offset by +128 (the sign bit is inverted); uint8 is unchanged."""
    return x if x.element == "uint8" else shared("unsigned", x, _inverted)


def _inverted(x: Expression) -> Expression:
    """Return int8 as uint8; the sign bit is inverted in the operands of views, so that these remain views."""
    match x:
        case Permute() | Reshape() | Expand() | Slice() | Windows():
            return replace(x, element="uint8", operand=_unsigned(x.operand))
        case Pad():
            return replace(x, element="uint8", operand=_unsigned(x.operand), number=x.number + _OFFSET)
        case Join():
            return replace(x, element="uint8", parts=tuple(map(_unsigned, x.parts)))
        case _:
            return Map("uint8", x.shape, "cast", (apply("bitwise_xor", x, -_OFFSET),))
