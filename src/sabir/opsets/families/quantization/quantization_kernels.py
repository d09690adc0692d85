"""Linear quantization as tensor expressions, with the results of the evaluation."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any

from sabir import loops
from sabir.elements import DOUBLE, element
from sabir.ir import product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import casting_kernels
from sabir.opsets.families.quantization.quantization import precision_of
from sabir.opsets.families.windows.convolution import kernel_of
from sabir.opsets.families.windows.window_kernels import channels_first, windows_of
from sabir.opsets.families.windows.windows import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.elements import ElementType
    from sabir.loops import Size

_NARROW = 16  # bits: such integers and their differences are exact in float32
_MOST_PRODUCT = 255 * 255  # of `(a - a_zero) * (b - b_zero)` for 8-bit integers
_EXACT_IN_FLOAT, _EXACT_IN_32 = 1 << 24, (1 << 31) - 1  # integers up to here
_FAR = 2.0**60  # scales between its reciprocal and it cannot overflow
_BEYOND = (
    0.25  # of a step beyond the limits: it still rounds to the last number, and larger ones saturate to it
)


def only(parameter: Expression) -> Expression:
    """Return a scale or zero point of one element as a scalar."""
    return loops.reshape(parameter, ())


def spread(parameter: Expression, x: Expression, axis: int) -> Expression:
    """Return a scale or zero point, one or one for each index of an axis, that broadcasts to `x`."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    if not -x.rank <= axis < x.rank or not loops.equal(parameter.shape[0], x.shape[axis % x.rank]):
        raise NotLowered(f"whether the scales match axis {axis} is known at run time only")
    return loops.reshape(parameter, (parameter.shape[0], *(1,) * (x.rank - 1 - axis % x.rank)))


class BlockedTensor:
    """A tensor whose axis of quantization is split into blocks: [..., blocks, block size, ...], if any.

    A shorter last block is padded. Raises NotLowered if symbols decide whether it is shorter.
    """

    def __init__(self, x: Expression, scale: Expression, axis: int, block_size: int) -> None:
        self._shape, self._whole, self._axis = x.shape, x.shape, axis
        self.is_whole = all(d == 1 for d in scale.shape) or (
            scale.rank == 1 and not (block_size and x.rank == 1)
        )
        self.x = x
        if self.is_whole:
            return
        if not -x.rank <= axis < x.rank or block_size < 1 or scale.rank != x.rank:
            raise NotLowered("the scales do not match the blocks")
        self._axis = axis = axis % x.rank
        count = scale.shape[axis]
        missing = _missing(x.shape[axis], count, block_size)
        if not loops.same_shape(scale.shape, (*x.shape[:axis], count, *x.shape[axis + 1 :])):
            raise NotLowered("whether the scales match the blocks is known at run time only")
        if missing != 0:
            x = loops.pad(x, [0] * x.rank, [missing if i == axis else 0 for i in range(x.rank)], 0)
        self._whole = x.shape
        self.x = loops.reshape(x, (*x.shape[:axis], count, block_size, *x.shape[axis + 1 :]))

    def parameter(self, parameter: Expression) -> Expression:
        """Return a scale or zero point that broadcasts to `x`."""
        if self.is_whole or all(d == 1 for d in parameter.shape):
            return spread(parameter, self.x, self._axis)
        at = self._axis + 1
        return loops.reshape(parameter, (*parameter.shape[:at], 1, *parameter.shape[at:]))

    def joined(self, y: Expression) -> Expression:
        """Return a result without the axis of blocks and the padding."""
        if self.is_whole or self._whole == self._shape:
            return loops.reshape(y, self._shape)
        return loops.narrow(loops.reshape(y, self._whole), self._axis, 0, self._shape[self._axis])


def _missing(size: Size, count: Size, block_size: int) -> Size:
    """Return how many elements the last block lacks."""
    if loops.equal(size, count * block_size):
        return 0
    missing = count * block_size - size
    if not loops.at_least(missing, 1) or not loops.at_least(block_size - 1, missing):
        raise NotLowered("the last block may be shorter than the others")
    return missing


def dequantized(x: Expression, scale: Expression, zero: Expression | None, to: str) -> Expression:
    """Return `(x - zero) * scale`, multiplied in float and rounded once to the type `to`."""
    loops.check_element(x.element)
    wide = "float" if element(x.element).bits <= _NARROW else "int64"
    centred = loops.cast(x, wide)
    if zero is not None and not _is_zero(zero):
        centred = loops.apply("sub", centred, loops.cast(zero, wide))
    return loops.cast(loops.apply("mul", loops.cast(centred, "float"), loops.cast(scale, "float")), to)


def quantized(
    x: Expression, scale: Expression, zero: Expression | None, to: str, precision: int = 0, *,
    saturate: bool = True,
) -> Expression:  # fmt: skip
    """Return `x / scale + zero` in the type `to`; for integers it is rounded before the sum."""
    divided = precision_of(element(x.element), element(scale.element), precision)
    wide = "double" if divided is DOUBLE else "float"
    x, scale = (loops.cast(_rounded(p, divided), wide) for p in (x, scale))
    is_whole = element(to).is_integer
    if is_whole and _is_usual(scale) and wide == "float" and divided.name == "float":
        return _shifted(loops.nearest(_quotient(x, scale, zero, to)), zero, to)
    q = loops.apply("div", x, scale)
    q = loops.cast(_rounded(q, divided), wide)
    if is_whole:
        return saturated(q, zero, to)
    shifted = q if zero is None else loops.apply("add", q, loops.cast(zero, wide))
    return casting_kernels.converted(shifted, to, saturate=saturate)


def _rounded(x: Expression, precision: ElementType) -> Expression:
    return loops.cast(x, precision.name) if precision.name in {"float16", "bfloat16"} else x


def _is_usual(scale: Expression) -> bool:
    """Return whether a scale is one known number whose reciprocal cannot overflow."""
    found = kernels.known_number(scale.operand if isinstance(scale, loops.Reshape) else scale)
    return found is not None and 1 / _FAR < found < _FAR


def _quotient(x: Expression, scale: Expression, zero: Expression | None, to: str) -> Expression:
    """Return `x / scale`, rounded and clamped to the range of `to`, without a division of each element.

    A reciprocal as the sum of two numbers gives a quotient within one unit in the last place; its remainder,
    which is exact, corrects it.
    """
    low, high = (
        loops.apply("mul", limit, scale) for limit in _limits(loops.number("float", 0), zero, to, _BEYOND)
    )
    x = _within(x, low, high)
    inverse = loops.apply("reciprocal", scale)
    rest = loops.apply("mul", loops.apply("fma", loops.apply("neg", inverse), scale, 1), inverse)
    q = loops.apply("fma", x, inverse, loops.apply("mul", x, rest))
    return loops.apply("fma", loops.apply("fma", loops.apply("neg", q), scale, x), inverse, q)


def saturated(q: Expression, zero: Expression | None, to: str) -> Expression:
    """Return rounded floats plus a zero point, clamped to an integer type; NaN becomes its least number."""
    if not element(to).is_integer:
        raise NotLowered(f"kernels do not compute with {to} yet")
    loops.check_element(to)
    found = _within(q, *_limits(q, zero, to))
    if q.element == "double":
        whole = loops.cast(loops.apply("round", found), "int32")
    else:
        whole = loops.nearest(found)
    return _shifted(whole, zero, to)


def _shifted(x: Expression, zero: Expression | None, to: str) -> Expression:
    """Return 32-bit integers plus a zero point, as an integer type that represents the sums."""
    if zero is not None and not _is_zero(zero):
        x = loops.apply("add", x, loops.cast(zero, "int32"))
    return loops.cast(x, to)


def _limits(q: Expression, zero: Expression | None, to: str, beyond: float = 0) -> list[Expression]:
    """Return the limits of an integer type minus a zero point, extended by `beyond` steps."""
    kind = element(to)
    least = -(1 << kind.bits - 1) if kind.is_signed else 0
    ends = (loops.number(q.element, end) for end in (least - beyond, least + (1 << kind.bits) - 1 + beyond))
    less = None if zero is None or _is_zero(zero) else loops.cast(zero, q.element)
    return [end if less is None else loops.apply("sub", end, less) for end in ends]


def _within(x: Expression, low: Expression, high: Expression) -> Expression:
    """Return numbers clamped to limits; NaN becomes the lower one."""
    x = loops.where(loops.apply("gt", x, low), x, low)
    return loops.where(loops.apply("lt", x, high), x, high)


def _is_zero(zero: Expression) -> bool:
    return loops.uniform(zero) == 0


def requantized(y: Expression, factor: Expression, zero: Expression) -> Expression:
    """Return `y * factor + zero`, rounded before the sum, in the type of the zero point."""
    scaled = loops.apply("mul", loops.cast(y, "float"), factor)
    if element(zero.element).is_integer:
        return saturated(scaled, only(zero), zero.element)
    shifted = loops.apply("add", scaled, loops.cast(only(zero), "float"))
    return casting_kernels.converted(shifted, zero.element)


# ---------------------------------------------------------------- products


def multiplied(
    a: Expression, b: Expression, a_zero: Expression | None, b_zero: Expression | None
) -> Expression:
    """Return `(a - a_zero) @ (b - b_zero)`; a vector is a row or a column.

    It is exact, in int32; if an operand is float, it is a product of floats.
    """
    left = loops.reshape(a, (1, *a.shape)) if a.rank == 1 else a
    right = loops.reshape(b, (*b.shape, 1)) if b.rank == 1 else b
    zeros = None if a_zero is None else rows(a_zero, a), None if b_zero is None else columns(b_zero)
    if {a.element, b.element} <= loops.BYTES:
        y = loops.contract_integers(left, right, *zeros)
    else:
        y = loops.contract(_centred(left, zeros[0]), _centred(right, zeros[1]))
    y = loops.squeeze(y, [-2]) if a.rank == 1 else y
    return loops.squeeze(y, [-1]) if b.rank == 1 else y


def rows(parameter: Expression, matrix: Expression) -> Expression:
    """Return a scale or zero point, one or one for each row, that broadcasts to a product."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    if matrix.rank == 1:
        raise NotLowered("a vector has no rows")
    return loops.reshape(parameter, (*parameter.shape, 1)) if parameter.rank == 1 else parameter


def columns(parameter: Expression) -> Expression:
    """Return a scale or zero point, one or one for each column, that broadcasts to a product."""
    return only(parameter) if all(d == 1 for d in parameter.shape) else parameter


def check_exact(counts: Sequence[Size]) -> None:
    """Raise NotLowered if a sum of so many products may need more than 32 bits."""
    total = product(counts)
    if total is None or not loops.at_least(_EXACT_IN_32 // _MOST_PRODUCT, total):
        raise NotLowered("sums may need more than 32 bits")


def convolved(
    x: Expression, w: Expression, x_zero: Expression | None, w_zero: Expression | None, *, group: int,
    kernel_shape: Sequence[int] | None, **attributes: Any,
) -> Expression:  # fmt: skip
    """Return the convolution of `x - x_zero` by `w - w_zero`, in int32, as (N, C, ...)."""
    window = Window.of(kernel_of(w.shape, kernel_shape), **attributes)
    zero = None if x_zero is None else only(x_zero)
    each = loops.filters_of(w, group)
    if group > 1 and w.shape[1] == each == 1:
        return _convolved_alone(x, w, window, zero, w_zero)

    def product(a: Expression, b: Expression, rows: int, depth: int) -> Expression:
        own = w_zero
        if own is not None:
            is_whole = all(d == 1 for d in own.shape)
            grouped = a.rank > rows + depth
            own = only(own) if is_whole else own
            own = loops.reshape(own, (group, *(1,) * depth, each)) if grouped and not is_whole else own
        return loops.convolve_integers(a, b, rows, depth, zero, own)

    found = windows_of(x, window, 0 if zero is None else zero)
    return channels_first(loops.as_products(found, w, group, product))


def _convolved_alone(
    x: Expression, w: Expression, window: Window, zero: Expression | None, w_zero: Expression | None
) -> Expression:
    """Return the depthwise convolution.

    Unknown zero points are subtracted as floats, in which such sums are exact.
    """
    if (zero is None or loops.uniform(zero) is not None) and (
        w_zero is None or loops.uniform(w_zero) is not None
    ):
        found = windows_of(x, window, 0 if zero is None else zero)
        with contextlib.suppress(NotLowered):
            filters = loops.squeeze(w, [1])
            return channels_first(loops.slide_integers(found, w.rank - 2, filters, zero, w_zero))
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
    """Return a parameter, one or one for each filter, that broadcasts to (N, C, ...)."""
    if all(d == 1 for d in parameter.shape):
        return only(parameter)
    return loops.reshape(parameter, (*parameter.shape, *(1,) * (rank - 2)))
