"""Lowering that several rooms share: elementwise functions, and operands that are known before a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.ir import product
from sabir.loops import HALVES, SMALL_FLOATS, Expression, Map, NotLowered, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.ir import Item
    from sabir.loops import Lowering, Size
    from sabir.opsets.typing import BehaviourFunction

_STORED = HALVES | SMALL_FLOATS  # float represents all their numbers
_EXACT_BITS = 53  # of a double; the limits of larger integers are not exact


def elementwise(op: str) -> BehaviourFunction:
    """Return the lowering of an operator that is one scalar function of its operands."""

    def lower(*operands: Expression) -> Expression:
        return loops.apply(op, *operands)

    return lower


def as_inferred(data: Expression, axes: Expression | None = None, /, *, call: Lowering) -> Expression:
    """Return the lowering of an operator that adds or removes axes: the shape was inferred from `axes`.

    Raises NotLowered where `axes` is not known: then the inferred shape does not depend on it.
    """
    if axes is not None:
        integers_of(axes, "`axes`")
    return loops.reshape(data, call.shape())


def formula(function: Callable[[Expression], Expression]) -> BehaviourFunction:
    """Return the lowering of a function of one operand; the binder sees no attributes."""

    def lower(x: Expression, /) -> Expression:
        return function(x)

    return lower


def as_floats(x: Expression) -> Expression:
    """Return x as floats: integers as double."""
    return x if x.is_float else loops.cast(x, "double")


def filled(element: str, value: float, shape: Sequence[Size]) -> Expression:
    """Return a tensor of one number."""
    return loops.expand(loops.number(element, value), shape)


def absolute(x: Expression) -> Expression:
    """Return |x|; the least signed integer is unchanged."""
    return x if x.element.startswith("u") else loops.apply("abs", x)


def limited(x: Expression, low: Expression | float | None, high: Expression | float | None) -> Expression:
    """Return min(max(x, low), high) without the limits that are None."""
    if low is not None:
        x = loops.apply("max", x, low)
    return x if high is None else loops.apply("min", x, high)


def hard_sigmoid(x: Expression, slope: float, middle: float) -> Expression:
    """Return slope * x + middle, limited to [0, 1]."""
    return limited(loops.apply("add", loops.apply("mul", x, slope), middle), 0, 1)


def exponential_unit(x: Expression, alpha: float) -> Expression:
    """Return x where it is 0 or above, `alpha * (exp(x) - 1)` below."""
    below = loops.apply("mul", loops.apply("expm1", loops.apply("min", x, 0)), alpha)
    return loops.apply("add", loops.apply("max", x, 0), below)


def swish(x: Expression, alpha: float) -> Expression:
    """Return x * sigmoid(alpha * x)."""
    return loops.apply("mul", x, loops.apply("sigmoid", loops.apply("mul", x, alpha)))


def rounded_to(x: Expression, kind: str) -> Expression:
    """Return doubles as the nearest integers of an element type, ties to even, clipped to its range."""
    limits = np.iinfo(kind)
    whole = loops.apply("round", x)
    if limits.bits <= _EXACT_BITS:
        return loops.cast(limited(whole, limits.min, limits.max), kind)
    top = float(limits.max)  # one more than the largest integer
    below = loops.cast(limited(whole, limits.min, float(np.nextafter(top, 0))), kind)
    return loops.where(loops.apply("ge", whole, top), loops.number(kind, limits.max), below)


def zero_if(valid: Expression) -> Expression:
    """Return 0 in int64 where `valid` is true; elsewhere the run fails, by an index outside of an axis."""
    inside, outside = loops.number("int64", 0), loops.number("int64", 2)
    return loops.take(loops.count([2], 0), loops.where(valid, inside, outside), 0)


def unless_finite(x: Expression) -> Expression | None:
    """Return 0 in the element type of `x`; the run fails if a float in `x` is infinite or NaN.

    None if all are known to be finite.
    """
    if loops.is_finite(x):
        return None
    rows = loops.reduce("max", loops.apply("abs", x), range(1, x.rank))  # NaN is the greatest
    most = loops.reshape(loops.reduce("max", rows, range(x.rank)), ())
    return loops.cast(zero_if(loops.apply("lt", most, np.inf)), x.element)


def sizes_of(operand: Expression | None, name: str) -> tuple[Size, ...]:
    """Return the contents of an operand as sizes; raises NotLowered if only a run computes them."""
    known = loops.known_sizes(operand)
    if known is None:
        raise NotLowered(f"{name} is computed at run time")
    return known


def check_sizing(operand: Expression, name: str) -> None:
    """Raise NotLowered if only a run computes an operand that decides the shape of the result."""
    if loops.known_sizes(operand) is None:
        raise NotLowered(f"the shape of the result depends on the contents of {name}, which a run computes")


def integers_of(operand: Expression | None, name: str) -> tuple[int, ...]:
    """Return the contents of an operand as integers; raises NotLowered if they are unknown."""
    found = tuple(n for n in sizes_of(operand, name) if isinstance(n, int))
    if operand is None or len(found) < len(sizes_of(operand, name)):
        raise NotLowered(f"{name} depends on the shapes of a run")
    return found


def floats_of(operand: Expression | None) -> list[float] | None:
    """Return the contents of a tensor of floats; None if they are unknown."""
    known = operand.known if isinstance(operand, Stored) else None
    found = [s for s in known or () if isinstance(s, float)]
    return found if known is not None and len(found) == len(known) else None


def known_number(operand: Expression) -> float | None:
    """Return the only element of an operand, as a number; None if it is unknown or there are more.

    It also looks below casts from types of fewer bytes, which do not change numbers.
    """
    if isinstance(operand, Map) and operand.op == "cast" and operand.operands[0].element in _STORED:
        (operand,) = operand.operands
    if isinstance(operand, Stored) and operand.known is not None and len(operand.known) == 1:
        found = operand.known[0]
        return found if isinstance(found, (int, float)) else None
    return None


def softmax(x: Expression, axis: int) -> Expression:
    """Return the exponentials along an axis, divided by their sum.

    The sum is at least 1, so its reciprocal is accurate: a division would take as long as the rest of an
    element.
    """
    e = loops.apply("exp", loops.apply("sub", x, loops.reduce("max", x, [axis])))
    return loops.apply("mul", e, loops.apply("reciprocal", loops.reduce("sum", e, [axis])))


def softmax_with(x: Expression, sink: Expression) -> Expression:
    """Return the softmax along the last axis, with a further term of score `sink` in the sum of each row."""
    greatest = loops.apply("max", loops.reduce("max", x, [-1]), sink)
    e = loops.apply("exp", loops.apply("sub", x, greatest))
    last = loops.apply("exp", loops.apply("sub", sink, greatest))
    total = loops.apply("add", loops.reduce("sum", e, [-1]), last)
    return loops.apply("mul", e, loops.apply("reciprocal", total))


def numbered(places: Sequence[Expression], sizes: Sequence[Size]) -> Expression:
    """Return the row-major number of each element from its indices, one for each axis of `sizes`.

    A negative index counts from the end. For an index outside of its axis it is the number of elements.
    """
    found: Expression = loops.number("int64", 0)
    inside: Expression = loops.number("bool", 1)
    for place, size in zip(places, sizes, strict=True):
        index, end = loops.cast(place, "int64"), loops.sized("int64", size)
        index = loops.where(loops.apply("lt", index, 0), loops.apply("add", index, end), index)
        within = loops.apply("and", loops.apply("ge", index, 0), loops.apply("lt", index, end))
        inside = loops.apply("and", inside, within)
        found = loops.apply("add", loops.apply("mul", found, end), index)
    return loops.where(inside, found, loops.sized("int64", product(sizes)))


def number_of(operand: Expression, name: str) -> float:
    """Return the only element of an operand; raises NotLowered if it is unknown."""
    content = content_of(operand)
    if not isinstance(content, (int, float)):
        raise NotLowered(f"{name} is computed at run time")
    return content


def content_of(operand: Expression | None) -> Item:
    """Return the only element of an operand; None if it is unknown or there are more."""
    known = operand.known if isinstance(operand, loops.Stored) else None
    return known[0] if known is not None and len(known) == 1 else None


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return axes counted from the front."""
    return tuple(axis % rank for axis in axes)
