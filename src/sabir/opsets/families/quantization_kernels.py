"""Linear quantization as tensor expressions, with the results of the evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sabir import loops
from sabir.elements import DOUBLE, element
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.convolution import kernel_of
from sabir.opsets.families.quantization import precision_of
from sabir.opsets.families.window_kernels import channels_first, filtered, filters_of, windows_of
from sabir.opsets.families.windows import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType

_NARROW = 16  # bits: such integers and their differences are exact in float32
_MOST_PRODUCT = 255 * 255  # of numbers of 8 bits less their zero points
_EXACT_IN_FLOAT, _EXACT_IN_32 = 1 << 24, (1 << 31) - 1  # integers up to here


def only(parameter: Expression) -> Expression:
    """Return a scale or zero point of one element without axes."""
    return loops.reshape(parameter, ())


def spread(parameter: Expression, x: Expression, axis: int) -> Expression:
    """Return a scale or zero point, one or one for each index of an axis, so that it broadcasts to `x`."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    if not -x.rank <= axis < x.rank or not loops.equal(parameter.shape[0], x.shape[axis % x.rank]):
        raise NotLowered(f"whether the scales match axis {axis} is open")
    return loops.reshape(parameter, (parameter.shape[0], *(1,) * (x.rank - 1 - axis % x.rank)))


class Blocks:
    """A tensor and its parameters with the blocks of an axis as an axis of their own, if there are blocks.

    Raises NotLowered where the last block may be shorter than the others.
    """

    def __init__(self, x: Expression, scale: Expression, axis: int, block_size: int) -> None:
        self._shape, self._axis = x.shape, axis
        self.is_whole = all(d == 1 for d in scale.shape) or (scale.rank == 1 and not (block_size and x.rank == 1))
        self.x = x
        if self.is_whole:
            return
        if not -x.rank <= axis < x.rank or block_size < 1 or scale.rank != x.rank:
            raise NotLowered("the scales do not match the blocks")
        self._axis = axis = axis % x.rank
        count = scale.shape[axis]
        if not loops.equal(x.shape[axis], count * block_size):
            raise NotLowered("the last block may be shorter than the others")
        if not loops.same_shape(scale.shape, (*x.shape[:axis], count, *x.shape[axis + 1 :])):
            raise NotLowered("whether the scales match the blocks is open")
        self.x = loops.reshape(x, (*x.shape[:axis], count, block_size, *x.shape[axis + 1 :]))

    def parameter(self, parameter: Expression) -> Expression:
        """Return a scale or zero point so that it broadcasts to `x`."""
        if self.is_whole or all(d == 1 for d in parameter.shape):
            return spread(parameter, self.x, self._axis)
        at = self._axis + 1
        return loops.reshape(parameter, (*parameter.shape[:at], 1, *parameter.shape[at:]))

    def joined(self, y: Expression) -> Expression:
        """Return a result in the shape of the tensor."""
        return loops.reshape(y, self._shape)


def dequantized(x: Expression, scale: Expression, zero: Expression | None, to: str) -> Expression:
    """Return `(x - zero) * scale`, multiplied in float and rounded once to the type `to`."""
    loops.check_element(x.element)
    wide = "float" if element(x.element).bits <= _NARROW else "int64"
    centred = loops.cast(x, wide)
    if zero is not None and loops.uniform(zero) != 0:
        centred = loops.apply("sub", centred, loops.cast(zero, wide))
    return loops.cast(loops.apply("mul", loops.cast(centred, "float"), loops.cast(scale, "float")), to)


def quantized(
    x: Expression, scale: Expression, zero: Expression | None, to: str, precision: int = 0
) -> Expression:
    """Return `x / scale + zero`, rounded before the sum, in an integer type."""
    divided = precision_of(element(x.element), element(scale.element), precision)
    wide = "double" if divided is DOUBLE else "float"
    parts = [loops.cast(_rounded(p, divided), wide) for p in (x, scale)]
    q = loops.cast(_rounded(loops.apply("div", *parts), divided), wide)
    return saturated(loops.apply("round", q), zero, to)


def _rounded(x: Expression, precision: ElementType) -> Expression:
    return loops.cast(x, precision.name) if precision.name in {"float16", "bfloat16"} else x


def saturated(q: Expression, zero: Expression | None, to: str) -> Expression:
    """Return integers in floats plus a zero point, limited to an integer type; NaN is its least number."""
    kind = element(to)
    if not kind.is_integer:
        raise NotLowered(f"kernels do not compute with {to} yet")
    loops.check_element(to)
    if zero is not None and loops.uniform(zero) != 0:
        q = loops.apply("add", q, loops.cast(zero, q.element))
    least = -(1 << kind.bits - 1) if kind.is_signed else 0
    most = least + (1 << kind.bits) - 1
    q = loops.where(loops.apply("gt", q, least), q, loops.number(q.element, least))
    return loops.cast(loops.where(loops.apply("lt", q, most), q, loops.number(q.element, most)), to)


def requantized(y: Expression, factor: Expression, zero: Expression) -> Expression:
    """Return `y * factor + zero`, rounded before the sum, in the type of the zero point."""
    scaled = loops.apply("mul", loops.cast(y, "float"), factor)
    return saturated(loops.apply("round", scaled), only(zero), zero.element)


# ---------------------------------------------------------------- products


def multiplied(
    a: Expression, b: Expression, a_zero: Expression | None, b_zero: Expression | None
) -> Expression:
    """Return the matrix product less the zero points, in int32; a vector is a row or a column."""
    left = loops.reshape(a, (1, *a.shape)) if a.rank == 1 else a
    right = loops.reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    zeros = None if a_zero is None else rows(a_zero, a), None if b_zero is None else columns(b_zero)
    y = loops.contract_integers(left, right, *zeros)
    y = loops.squeeze(y, [-2]) if a.rank == 1 else y
    return loops.squeeze(y, [-1]) if b.rank == 1 else y


def rows(parameter: Expression, matrix: Expression) -> Expression:
    """Return a scale or zero point, one or one for each row, so that it broadcasts to a product."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    if matrix.rank == 1:
        raise NotLowered("a vector has no rows")
    return loops.reshape(parameter, (*parameter.shape, 1)) if parameter.rank == 1 else parameter


def columns(parameter: Expression) -> Expression:
    """Return a scale or zero point, one or one for each column, so that it broadcasts to a product."""
    return only(parameter) if all(d == 1 for d in parameter.shape) else parameter


def check_exact(counts: Sequence[object]) -> None:
    """Raise NotLowered where the sum of so many products may need more than 32 bits."""
    known = [n for n in counts if isinstance(n, int)]
    if len(known) < len(counts) or math.prod(known) * _MOST_PRODUCT > _EXACT_IN_32:
        raise NotLowered("sums may need more than 32 bits")


def convolved(
    x: Expression, w: Expression, x_zero: Expression | None, w_zero: Expression | None, *, group: int,
    kernel_shape: Sequence[int] | None, **attributes: Any,
) -> Expression:  # fmt: skip
    """Return the convolution less the zero points, in int32, as (N, C, ...)."""
    window = Window.of(kernel_of(w.shape, kernel_shape), **attributes)
    zero = None if x_zero is None else only(x_zero)
    each = filters_of(w, group)
    if group > 1 and w.shape[1] == each == 1:
        return _convolved_alone(x, w, window, zero, w_zero)

    def product(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
        own = w_zero
        if own is not None:
            is_whole = all(d == 1 for d in own.shape)
            grouped = a.rank > rows + depth
            own = only(own) if is_whole else own
            own = loops.reshape(own, (group, *(1,) * rows, each)) if grouped and not is_whole else own
        return loops.convolve_integers(a, b, rows, depth, zero, own)

    found = windows_of(x, window, 0 if zero is None else zero)
    return channels_first(filtered(found, w, group, each, product))


def _convolved_alone(
    x: Expression, w: Expression, window: Window, zero: Expression | None, w_zero: Expression | None
) -> Expression:
    """Return the convolution of each channel by its own filter, as floats, which are exact."""
    count = math.prod(k if isinstance(k, int) else _EXACT_IN_FLOAT for k in w.shape[2:])
    if count * _MOST_PRODUCT > _EXACT_IN_FLOAT:
        raise NotLowered("the sums of such windows are no exact floats")
    own = None if w_zero is None else spread(w_zero, w, 0)
    found = windows_of(_centred(x, zero), window, 0)
    filters = loops.squeeze(_centred(w, own), [1])
    return channels_first(loops.cast(loops.slide("sum", found, w.rank - 2, filters), "int32"))


def _centred(x: Expression, zero: Expression | None) -> Expression:
    wide = loops.cast(x, "float")
    return wide if zero is None else loops.apply("sub", wide, loops.cast(zero, "float"))


def along_channels(parameter: Expression, rank: int) -> Expression:
    """Return a parameter, one or one for each filter, so that it broadcasts to (N, C, ...)."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    return loops.reshape(parameter, (*parameter.shape, *(1,) * (rank - 2)))
