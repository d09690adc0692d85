"""Quantized products: products of dequantized tensors become products of the quantized ones.

    contract((cast(n) - zero) * scale, (cast(m) - mzero) * mscale)   floats
    cast(contract(n, m, zero, mzero)) * (scale * mscale)             int32 sums of 8-bit products

There may be views, windows and padding with 0 between the dequantization and the product. If both operands
are quantized to 8-bit integers, the sums are exact integers, and one multiplication by the scales follows:
the result differs from float arithmetic by the rounding of its sums. If only the second operand is stored in
fewer bytes (blockwise integers, halves, small floats), the product reads the stored numbers, and its kernel
widens them.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sabir.loops import (
    BYTES,
    FLOATS,
    HALVES,
    SMALL_FLOATS,
    SMALL_INTEGERS,
    Contract,
    Expand,
    Expression,
    Map,
    NotLowered,
    Pad,
    Permute,
    Recur,
    Reshape,
    Slice,
    Slide,
    StepOperand,
    Stored,
    Windows,
    apply,
    broadcast,
    cast,
    convolve_integers,
    expand,
    number,
    of_columns,
    permute,
    reshape,
    slide_integers,
    tentative,
    uniform,
)
from sabir.loops.walk import postorder, rebuilt, rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.loops import Size, Sizes

_NUMBERS = BYTES | SMALL_INTEGERS | SMALL_FLOATS  # element types of quantized tensors
_MIDDLES = {"uint8": number("uint8", 128)}  # zero points of symmetric ranges, other than 0
_MOST_TERMS = ((1 << 31) - 1) // 255**2  # of a sum that int32 represents


def quantized_products(expressions: Mapping[int, Expression]) -> dict[int, Expression]:
    """Return the expressions by slot, where products read quantized tensors and halves."""
    return rewrite(expressions, _rule)


def is_narrow(x: Expression) -> bool:
    """Return whether the elements of an expression are stored numbers that products can read: see above."""
    return x.element in _NUMBERS or x.element in HALVES


def _is_product(x: Expression) -> bool:
    match x:
        case Contract():
            return x.element in FLOATS and x.scale is None
        case Slide():
            return x.element in FLOATS and x.weights is not None
        case _:
            return isinstance(x, Recur)


def _rule(x: Expression, new: Mapping[Expression, Expression]) -> Expression | None:
    if not _is_product(x):
        return None
    y = rebuilt(x, new)
    try:
        with tentative():
            return _narrow(y) or y
    except NotLowered:  # only a run decides a size: the product stays one of floats
        return y


def _narrow(y: Expression) -> Expression | None:
    match y:
        case Contract():
            found = multiply_quantized(y.a, y.b, y.rows, y.depth)
            return found or multiply_narrow(y.a, y.b, y.rows, y.depth)
        case Slide(weights=Expression() as weights):
            found = slide_quantized(y.operand, y.taps, weights) if y.mixed == 1 else None
            half = None if found is not None else half_of(weights)
            return found if half is None else replace(y, weights=half)
        case Recur():
            return _with_halves(y)
        case _:
            return None


def _with_halves(x: Recur) -> Recur | None:
    """Return a recurrence that reads its matrices as stored halves; None if no matrix is stored so."""
    body = postorder((*x.body.after, *x.body.outputs))
    matrices = {e.b.number for e in body if isinstance(e, Contract) and isinstance(e.b, StepOperand)}
    first = len(x.body.states)
    inputs = [half_of(o) or o if number - first in matrices else o for number, o in enumerate(x.inputs)]
    same = all(a is b for a, b in zip(inputs, x.inputs, strict=True))
    return None if same else replace(x, inputs=tuple(inputs))


class Quantized(NamedTuple):
    """A quantized tensor, `(numbers - zero) * scale`, of at most 8 bits; both parameters broadcast to it."""

    numbers: Expression
    scale: Expression
    zero: Expression | None

    @property
    def is_one(self) -> bool:
        """Whether there is one scale and one zero point."""
        parameters = [self.scale] if self.zero is None else [self.scale, self.zero]
        return all(d == 1 for p in parameters for d in p.shape)

    def with_axes(self, numbers: Expression, axes: Sequence[int] | None) -> Quantized | None:
        """Return a view of the numbers with parameters to match; None if the parameters have no such view.

        `axes` is the permutation of the axes. It is None for another view: then there must be one scale.
        """
        if self.is_one:
            return Quantized(numbers, reshape(self.scale, ()), self.zero and reshape(self.zero, ()))
        if axes is None:
            return None
        return Quantized(
            numbers, self._permuted(self.scale, axes), self.zero and self._permuted(self.zero, axes)
        )

    def _permuted(self, parameter: Expression, axes: Sequence[int]) -> Expression:
        ones = (1,) * (self.numbers.rank - parameter.rank)
        return permute(reshape(parameter, (*ones, *parameter.shape)), axes)


def quantized_of(x: Expression) -> Quantized | None:
    """Return the quantized tensor that a tensor of floats dequantizes, also below views; None without one."""
    match x:
        case Stored():
            return None if x.origin is None else quantized_of(x.origin)
        case Map(op="mul", operands=(centred, scale)):
            return _represented(x, centred, scale)
        case Permute() | Reshape() | Expand() | Slice() | Windows() | Pad():
            inner = quantized_of(x.operand)
            return None if inner is None else _moved(x, inner)
        case _:
            return None


def _represented(x: Map, centred: Expression, scale: Expression) -> Quantized | None:
    zero: Expression | None = None
    if isinstance(centred, Map) and centred.op == "sub":
        centred, offset = centred.operands
        zero = offset.operands[0] if isinstance(offset, Map) and offset.op == "cast" else None
        if zero is None or zero.element not in _NUMBERS:
            return None
    if not isinstance(centred, Map) or centred.op != "cast" or centred.element != "float":
        return None
    (numbers,) = centred.operands
    if numbers.element not in _NUMBERS or numbers.shape != x.shape:
        return None
    return Quantized(numbers, scale, zero)


def _moved(x: Permute | Reshape | Expand | Slice | Windows | Pad, inner: Quantized) -> Quantized | None:
    element = inner.numbers.element
    if isinstance(x, Pad):
        zero = 0 if inner.zero is None else uniform(inner.zero)
        if x.number != 0 or zero is None or not inner.is_one:
            return None
        return inner.with_axes(replace(x, element=element, operand=inner.numbers, number=zero), None)
    numbers = replace(x, element=element, operand=inner.numbers)
    if isinstance(x, Permute):
        return inner.with_axes(numbers, x.axes)
    if isinstance(x, Reshape) and not inner.is_one:
        return _reshaped(numbers, inner)
    return inner.with_axes(numbers, None)


def _reshaped(numbers: Expression, inner: Quantized) -> Quantized | None:
    """Return a reshaped quantized tensor if only axes of size 1 are added or removed; else None."""
    old = inner.numbers.shape
    if [d for d in old if d != 1] != [d for d in numbers.shape if d != 1]:
        return None
    scale, zero = (
        None if p is None else reshape(p, _with_ones(p, old, numbers.shape))
        for p in (inner.scale, inner.zero)
    )
    return None if scale is None else Quantized(numbers, scale, zero)


def _with_ones(parameter: Expression, old: Sizes, new: Sizes) -> list[Size]:
    """Return the shape of a parameter whose tensor is reshaped from `old` to `new`, which differ in 1s."""
    wide = (*(1,) * (len(old) - parameter.rank), *parameter.shape)
    own = iter([w for w, d in zip(wide, old, strict=True) if d != 1])
    return [1 if d == 1 else next(own) for d in new]


def multiply_quantized(a: Expression, b: Expression, rows: int, depth: int) -> Expression | None:
    """Return a product of floats as one of 8-bit integers; None unless both operands are quantized.

    `a` has one scale; `b` may have one for each column.
    """
    terms = a.shape[a.rank - depth :]
    left = quantized_of(a)
    if (
        left is None
        or left.numbers.element not in BYTES
        or not left.is_one
        or not all(isinstance(n, int) for n in terms)
    ):
        return None
    right = quantized_of(b)
    if right is None or right.numbers.element not in BYTES:
        return None
    if math.prod(n for n in terms if isinstance(n, int)) > _MOST_TERMS:
        return None
    scale = of_columns(right.scale, b, rows, depth)
    if scale is None or (right.zero is not None and of_columns(right.zero, b, rows, depth) is None):
        return None
    one = None if left.zero is None else reshape(left.zero, ())
    total = convolve_integers(left.numbers, right.numbers, rows, depth, one, right.zero)
    return apply("mul", cast(total, "float"), apply("mul", reshape(left.scale, ()), scale))


def slide_quantized(x: Expression, taps: int, weights: Expression) -> Expression | None:
    """Return a sum of windows times weights as one of 8-bit integers; None unless both are quantized.

    The windows have one scale; the weights may have one for each channel.
    """
    left, right = quantized_of(x), quantized_of(weights)
    if left is None or right is None or not left.is_one:
        return None
    try:
        total = slide_integers(left.numbers, taps, right.numbers, left.zero, right.zero)
    except NotLowered:
        return None
    scale = right.scale
    if any(d != 1 for d in scale.shape[max(0, scale.rank - taps) :]):
        return None
    scale = reshape(scale, scale.shape[: max(0, scale.rank - taps)])
    return apply("mul", cast(total, "float"), apply("mul", reshape(left.scale, ()), scale))


def multiply_narrow(a: Expression, b: Expression, rows: int, depth: int) -> Expression | None:
    """Return a product by a constant `b` that is stored in fewer bytes; None for any other `b`.

    The kernel widens `b`. Integers whose scale or zero point varies along the depth, or whose zero point is
    not that of a symmetric range, become a product by a blockwise quantized matrix.
    """
    if a.element != "float":
        return None
    half = half_of(b)
    if half is not None:
        return product_of(a, half, rows, depth)
    is_matrix = depth == b.rank - 1 == 1
    found = quantized_of(b)
    if found is None:
        return _by_blocks(a, b, rows, _blocks_of(b)) if is_matrix else None
    if not _is_stored(found.numbers):
        return None
    zero = 0 if found.zero is None else uniform(found.zero)
    scale = of_columns(found.scale, b, rows, depth)
    if scale is None:
        return None
    middle = _MIDDLES.get(found.numbers.element)
    if zero != (0 if middle is None else middle.number):
        return _by_blocks(a, b, rows, _one_block(found)) if is_matrix else None
    return apply("mul", product_of(a, found.numbers, rows, depth, middle), scale)


def _one_block(found: Quantized) -> Quantized:
    """Return a matrix with one scale and zero point for each column as a blockwise one with one block."""
    numbers, scale, zero = (p and reshape(p, ((1,) * (3 - p.rank) + p.shape)) for p in found)
    if numbers is None or scale is None:
        raise TypeError("a quantized matrix has numbers and scales")
    return Quantized(numbers, scale, zero)


def _by_blocks(a: Expression, b: Expression, rows: int, found: Quantized | None) -> Expression | None:
    """Return a product by a blockwise quantized matrix: each block along the depth has its scales."""
    if found is None or not _is_stored(found.numbers):
        return None
    numbers, zero = found.numbers, found.zero
    scale = half_of(found.scale) or found.scale
    known, middle = None if zero is None else uniform(zero), _MIDDLES.get(numbers.element)
    if known == 0:
        zero = None
    elif middle is not None and known == middle.number:
        zero = middle
    if not _is_stored(scale) or not (zero is None or zero is middle or _is_stored(zero)):
        return None
    split = reshape(a, (*a.shape[:-1], *numbers.shape[:2]))
    shape: Sizes = (*a.shape[: a.rank - 1 - rows], *a.shape[a.rank - 1 - rows : -1], b.shape[-1])
    each = (numbers.shape[0], 1, b.shape[-1])
    scales, zeros = expand(scale, each), None if zero is None else expand(zero, each)
    return Contract("float", shape, split, numbers, rows, 2, scale=scales, b_zero=zeros)


def _blocks_of(x: Expression, *, transposed: bool = False) -> Quantized | None:
    """Return integers (blocks, elements, N) and scales (blocks, 1, N) of a blockwise quantized matrix."""
    match x:
        case Stored():
            return None if x.origin is None else _blocks_of(x.origin, transposed=transposed)
        case Permute(axes=(1, 0)):
            return _blocks_of(x.operand, transposed=not transposed)
        case Reshape():
            found, order = quantized_of(x.operand), (1, 2, 0) if transposed else (0, 1, 2)
            if found is None or found.numbers.rank != len(order) or found.is_one:
                return None
            found = found.with_axes(permute(found.numbers, order), order)
            return None if found is None or found.scale.shape[1] != 1 else found
        case _:
            return None


def product_of(
    a: Expression, b: Expression, rows: int, depth: int, b_zero: Expression | None = None
) -> Expression:
    """Return the sums of products, of which the second factor may have a zero point."""
    batch = broadcast(a.shape[: a.rank - depth - rows], b.shape[: b.rank - depth - 1])
    between = a.shape[a.rank - depth - rows : a.rank - depth]
    return Contract(a.element, (*batch, *between, b.shape[-1]), a, b, rows, depth, b_zero=b_zero)


def half_of(x: Expression) -> Expression | None:
    """Return the stored halves, or small floats, that a tensor of floats widens, with the same views."""
    match x:
        case Stored():
            return None if x.origin is None else half_of(x.origin)
        case Map(op="cast", operands=(half,)):
            return half if half.element in HALVES | SMALL_FLOATS and _is_stored(half) else None
        case Permute() | Reshape() | Expand() | Slice() | Windows():
            inner = half_of(x.operand)
            return None if inner is None else replace(x, element=inner.element, operand=inner)
        case _:
            return None


def _is_stored(x: Expression) -> bool:
    while isinstance(x, (Permute, Reshape, Expand, Slice, Windows)):
        x = x.operand
    return isinstance(x, Stored)
