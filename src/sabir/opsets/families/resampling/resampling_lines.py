"""Coordinates of resampled axes whose sizes are symbolic.

The coordinate of a new index is a fraction of integers that are computed from sizes, without rounding.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sabir import loops
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.resampling.resampling import RADII

if TYPE_CHECKING:
    from sabir.loops import Size
    from sabir.opsets.families.resampling.resampling import Interpolation

_LARGEST = 1 << 24  # of the parts of a scale: their products with sizes are exact
_OF_ONE = frozenset(["align_corners", "pytorch_half_pixel"])  # modes that map a single new index to 0


class Line(NamedTuple):
    """Coordinates `(first + i * step) / whole` of the new indices `i`; none is below -1/2.

    With `many` the coordinate of a single index is 0.
    """

    step: Size
    first: Size
    whole: Size
    many: bool = False


def of_scale(name: str, scale: Fraction, size: Size, length: Size) -> Line:
    """Return the coordinates of an axis by its scale."""
    p, q = scale.numerator, scale.denominator
    if max(p, q) > _LARGEST:
        raise NotLowered("the scale is no simple fraction")
    return _line(name, (q, p), ((size - 1) * q, size * p - q), size * p - length * q)


def of_sizes(name: str, size: Size, length: Size) -> Line:
    """Return the coordinates of an axis by its sizes."""
    return _line(name, (size, length), (size - 1, length - 1), 0)


def _line(name: str, ratio: tuple[Size, Size], ends: tuple[Size, Size], beyond: Size) -> Line:
    """Return the line from the old size to the new one, by a mode of coordinates.

    `beyond` is by how much the scaled size is larger than the new one.
    """
    old, new = ratio
    many = name in _OF_ONE
    match name:
        case "asymmetric":
            return Line(old, 0, new)
        case "half_pixel" | "pytorch_half_pixel":
            return Line(old * 2, old - new, new * 2, many)
        case "half_pixel_symmetric":
            return Line(old * 2, old - new + beyond, new * 2)
        case "tf_half_pixel_for_nn":
            return Line(old * 2, old, new * 2)
        case "align_corners":
            return Line(ends[0], 0, ends[1], many)
        case _:
            raise NotLowered("the region depends on sizes that are known at run time only")


def _parts(line: Line, length: Size, shape: tuple[Size, ...], factor: int) -> tuple[Expression, Expression]:
    """Return numerators plus the denominator, so that none is negative, and the denominator, times a factor.

    The new indices are along the last axis of `shape`.
    """
    whole = loops.apply("max", loops.sized("int64", line.whole), 1)
    number = loops.apply("mul", loops.count(shape, len(shape) - 1), loops.sized("int64", line.step))
    number = loops.apply("add", number, loops.sized("int64", line.first))
    if line.many:
        one = loops.apply("le", loops.sized("int64", length), 1)
        number = loops.where(one, loops.number("int64", 0), number)
    number = loops.apply("add", number, whole)
    return loops.apply("mul", number, factor), loops.apply("mul", whole, factor)


def nearest(line: Line, length: Size, rounding: str) -> Expression:
    """Return the nearest old index of each new one."""
    number, whole = _parts(line, length, (length,), 2)
    half = loops.apply("div", whole, 2)
    added = {
        "floor": loops.number("int64", 0),
        "ceil": loops.apply("sub", whole, 1),
        "round_prefer_ceil": half,
        "round_prefer_floor": loops.apply("sub", half, 1),
    }[rounding]
    return loops.apply("sub", loops.apply("div", loops.apply("add", number, added), whole), 1)


def clipped(index: Expression, size: Size) -> Expression:
    """Return indices clamped to an axis."""
    return loops.apply("max", loops.apply("min", index, loops.sized("int64", size - 1)), 0)


def taps(
    line: Line, length: Size, size: Size, how: Interpolation, scale: Fraction | None
) -> tuple[Expression, Expression]:
    """Return the old indices that each new one reads, and their weights; both [K, L]."""
    if how.antialias and scale is None:
        raise NotLowered("the length of the filter is known at run time only")
    stretch = float(max(Fraction(1), 1 / scale)) if how.antialias and scale is not None else 1.0
    reach = math.ceil(RADII[how.mode] * stretch)
    shape = (2 * reach, length)
    number, whole = _parts(line, length, shape, 1)
    below = loops.apply("div", number, whole)
    rest = loops.apply("sub", number, loops.apply("mul", below, whole))
    part = loops.apply("div", loops.cast(rest, "double"), loops.cast(whole, "double"))
    tap = loops.apply("add", loops.count(shape, 0), 1 - reach)
    distance = loops.apply("abs", loops.apply("sub", loops.cast(tap, "double"), part))
    weights = kernel(how.mode, loops.apply("div", distance, stretch), how.cubic)
    indices = loops.apply("add", loops.apply("sub", below, 1), tap)
    if how.exclude_outside:
        last = loops.sized("int64", size - 1)
        within = loops.apply("and", loops.apply("ge", indices, 0), loops.apply("le", indices, last))
        weights = loops.where(within, weights, 0)
    if how.exclude_outside or how.antialias:
        sums = loops.reduce("sum", weights, [0])
        weights = loops.apply("div", weights, loops.where(loops.apply("eq", sums, 0), 1, sums))
    return clipped(indices, size), weights


def kernel(mode: str, distance: Expression, a: float) -> Expression:
    """Return the weights at some distances, as `resampling.kernel`."""
    if mode == "linear":
        return loops.apply("max", loops.apply("sub", loops.number("double", 1), distance), 0)
    near = _polynomial(distance, (a + 2, -(a + 3), 0, 1))
    far = _polynomial(distance, (a, -5 * a, 8 * a, -4 * a))
    return loops.where(
        loops.apply("le", distance, 1), near, loops.where(loops.apply("lt", distance, 2), far, 0)
    )


def _polynomial(x: Expression, coefficients: tuple[float, ...]) -> Expression:
    first, *others = coefficients
    found: Expression = loops.number(x.element, first)
    for c in others:
        found = loops.apply("add", loops.apply("mul", found, x), c)
    return found
