"""Sums of products of integers of 8 bits, minus their zero points, as int32 that wraps around."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.loops._assumptions import equal
from sabir.loops._expressions import (
    Contract,
    Expand,
    Number,
    Permute,
    Reshape,
    Slide,
    Stored,
)
from sabir.loops._operations import NotLowered, broadcast, reshape

if TYPE_CHECKING:
    from sabir.loops._expression import Expression, Sizes

BYTES = frozenset({"int8", "uint8"})
_MOST_TAPS = 128  # of a window, whose taps are unrolled


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

    Zero points broadcast to their operand: `a_zero` has one element, or one for each row, `b_zero` one, or
    one for each column. Raises NotLowered for other elements, and for sizes that may differ.
    """
    if not {a.element, b.element} <= BYTES:
        raise NotLowered(f"products of {a.element} by {b.element} have no kernel yet")
    if not all(map(equal, a.shape[a.rank - depth :], b.shape[-1 - depth : -1])):
        raise NotLowered("whether the sizes of the operands are equal is known at run time only")
    for zero, x, axes in ((a_zero, a, range(-depth, 0)), (b_zero, b, range(-1 - depth, -1))):
        if zero is not None and not _is_one_along(axes, zero, x):
            raise NotLowered(f"zero points of shape {zero.shape} of {x.shape} have no kernel yet")
    batch = broadcast(a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1])
    between = a.shape[a.rank - depth - rows : a.rank - depth]
    return Contract("int32", (*batch, *between, b.shape[-1]), a, b, rows, depth, a_zero, None, b_zero)


def _is_one_along(axes: range, zero: Expression, x: Expression) -> bool:
    """Whether a zero point broadcasts to its operand, and is the same along some axes of it."""
    if any(-axis <= zero.rank and zero.shape[axis] != 1 for axis in axes):
        return False
    own = x.shape[x.rank - zero.rank :]
    return zero.rank <= x.rank and all(m == 1 or equal(m, n) for m, n in zip(zero.shape, own, strict=True))


def of_columns(parameter: Expression, b: Expression, rows: int, depth: int) -> Expression | None:
    """Return a parameter that broadcasts to the right operand so that it broadcasts to the product.

    None where it varies along the depth.
    """
    if all(d == 1 for d in parameter.shape):
        return reshape(parameter, ())
    shape: Sizes = (*(1,) * (b.rank - parameter.rank), *parameter.shape)
    first = b.rank - 1 - depth
    if any(d != 1 for d in shape[first:-1]):
        return None
    return reshape(parameter, (*shape[:first], *(1,) * rows, shape[-1]))


def slide_integers(
    x: Expression, taps: int, weights: Expression, zero: Expression | None = None,
    weights_zero: Expression | None = None,
) -> Expression:  # fmt: skip
    """Return the int32 sums over the taps of `(x - zero) * (weights - weights_zero)`, of 8-bit integers.

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
    numbers = [0 if z is None else uniform(z) for z in (zero, weights_zero)]
    if None in numbers:
        raise NotLowered("the zero points of windows are not one known number")
    left, right = (n or 0 for n in numbers)
    return Slide("int32", x.shape[: x.rank - taps], "sum", x, weights, taps, left, right)


def uniform(x: Expression) -> int | None:
    """Return the integer that all elements of a tensor are known to equal, if there is one."""
    while isinstance(x, (Permute, Reshape, Expand)):
        x = x.operand
    if isinstance(x, Number):
        return int(x.number)
    known = x.known if isinstance(x, Stored) else None
    if known and isinstance(known[0], (int, float)) and all(k == known[0] for k in known):
        return int(known[0]) if float(known[0]).is_integer() else None
    return None
