"""Normalisations as tensor expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Expression, NotLowered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.loops import Sizes


class Standardized(NamedTuple):
    """`(x - mean) / sqrt(variance + epsilon)`, the mean, and `1 / sqrt(variance + epsilon)`."""

    y: Expression
    mean: Expression
    inverse: Expression


def stashed(x: Expression, kind: str) -> Expression:
    """Return `x` rounded to the type to normalise in; halves are computed in float."""
    found = loops.cast(x, kind)
    return loops.cast(found, "float") if kind in loops.HALVES else found


def unstashed(y: Expression, kind: str, to: str) -> Expression:
    """Return a result on `stashed` operands, rounded to their type `kind`, as the type `to`."""
    return loops.cast(loops.cast(y, kind), to)


def standardized(x: Expression, axes: Iterable[int], epsilon: float) -> Standardized:
    """Return `x` with zero mean and unit variance over some axes, and its statistics."""
    axes = tuple(axes)
    mean = loops.mean(x, axes)
    deviation = loops.apply("sub", x, mean)
    variance = loops.mean(loops.apply("mul", deviation, deviation), axes)
    inverse = loops.apply("rsqrt", loops.apply("add", variance, epsilon))
    return Standardized(loops.apply("mul", deviation, inverse), mean, inverse)


def statistics(x: Expression, axes: tuple[int, ...], shape: Sizes) -> tuple[Expression, Expression]:
    """Return mean and population variance of `x` over some axes, in double, with a shape.

    Those of floats are computed in float: sums in blocks are as accurate as the elements.
    """
    wide = loops.cast(x, "float") if x.element in loops.HALVES else x
    mean = loops.mean(wide, axes)
    deviation = loops.apply("sub", wide, mean)
    variance = loops.mean(loops.apply("mul", deviation, deviation), axes)
    found, spread = (loops.cast(loops.reshape(s, shape), "double") for s in (mean, variance))
    return found, spread


def updated(old: Expression, new: Expression, momentum: float) -> Expression:
    """Return running statistics after a batch: `old * momentum + new * (1 - momentum)`."""
    kept = loops.apply("mul", loops.cast(old, "double"), momentum)
    return loops.cast(loops.apply("add", kept, loops.apply("mul", new, 1 - momentum)), old.element)


def of_unit_mean_square(x: Expression, axes: Iterable[int], epsilon: float) -> Expression:
    """Return `x` divided by `sqrt(mean(x ** 2) + epsilon)` over some axes."""
    return loops.apply("mul", x, inverse_mean_square(x, axes, epsilon))


def inverse_mean_square(x: Expression, axes: Iterable[int], epsilon: float) -> Expression:
    """Return `1 / sqrt(mean(x ** 2) + epsilon)` over some axes, which are kept."""
    squares = loops.mean(loops.apply("mul", x, x), axes)
    return loops.apply("rsqrt", loops.apply("add", squares, epsilon))


def scaled(
    x: Expression, moments: tuple[Expression, Expression], scale: Expression, bias: Expression, epsilon: float
) -> Expression:
    """Return `(x - mean) / sqrt(variance + epsilon) * scale + bias`, as one multiplication and one addition.

    All operands but `x` have one element for each channel, or for each position. The factor and the bias are
    computed from them in double.
    """
    mean, variance, wide, offset = (loops.cast(p, "double") for p in (*moments, scale, bias))
    factor = loops.apply("div", wide, loops.apply("sqrt", loops.apply("add", variance, epsilon)))
    shift = loops.apply("sub", offset, loops.apply("mul", mean, factor))
    factor, shift = (loops.cast(p, x.element) for p in (factor, shift))
    return shifted(x, factor, shift)


def shifted(x: Expression, factor: Expression, bias: Expression) -> Expression:
    """Return `x * factor + bias`, both with one element for each channel of `x` (N, C, ...), or position."""
    return loops.apply("add", loops.apply("mul", x, over_positions(factor, x)), over_positions(bias, x))


def over_positions(parameter: Expression, x: Expression) -> Expression:
    """Return a parameter, one for each channel or position, that broadcasts to `x` (N, C, ...)."""
    sizes = x.shape[1:] if x.rank > 1 else (1,)  # a 1-D input has one channel
    if not parameter.rank or not loops.same_shape(parameter.shape, sizes[: parameter.rank]):
        raise NotLowered("whether a parameter has an element for each channel is known at run time only")
    return loops.reshape(parameter, (*parameter.shape, *(1,) * (len(sizes) - parameter.rank)))


def grouped(x: Expression, groups: int, axis: int = 1) -> Expression:
    """Return `x` with its channels, an axis, as two axes: the groups, and the channels of each."""
    each = loops.divided(x.shape[axis], groups)
    if each is None:
        raise NotLowered(
            f"whether {x.shape[axis]} channels can be divided into {groups} groups is known at run time only"
        )
    return loops.reshape(x, (*x.shape[:axis], groups, each, *x.shape[axis + 1 :]))
