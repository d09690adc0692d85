"""Linear quantization as tensor expressions, with the results of the evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.elements import DOUBLE, element
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.quantization import precision_of

if TYPE_CHECKING:
    from sabir.elements import ElementType

_NARROW = 16  # bits: such integers and their differences are exact in float32


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
    if zero is not None:
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
    if zero is not None:
        q = loops.apply("add", q, loops.cast(zero, q.element))
    least = -(1 << kind.bits - 1) if kind.is_signed else 0
    most = least + (1 << kind.bits) - 1
    q = loops.where(loops.apply("gt", q, least), q, loops.number(q.element, least))
    return loops.cast(loops.where(loops.apply("lt", q, most), q, loops.number(q.element, most)), to)
