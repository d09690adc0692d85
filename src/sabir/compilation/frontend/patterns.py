"""Shape patterns: the key of a plan, and the guards that the sizes of a run must satisfy.

A pattern has the sizes 0 and 1 as numbers, because they broadcast or make loops empty. Larger sizes are
symbols, so one plan serves all of them.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from sabir.ir import Expr, TensorType, symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from sabir.ir import Array, Type

    Judge: TypeAlias = Callable[[Literal["equal", "max"], int | Expr, int | Expr], bool]

MOST_SIZED = 8
"""The elements of an operand whose contents are sizes, at most."""
ABOVE_ONE = 2
"""The least size that is a symbol in a pattern: smaller ones broadcast, or make loops empty."""


class ShapePattern(NamedTuple):
    """The element type and shape of each input; None for an input that has its default, or is no tensor.

    A size below 2, or declared as a number, is a number; any other is a symbol. The contents of an input that
    sizes depend on are known: a number or a symbol, as a size.
    """

    inputs: tuple[TensorType | None, ...]


_COMPARED = {"min": operator.le, "max": operator.ge, "equal": operator.eq}


class Guard(NamedTuple):
    """An assumption: `chosen` is the `min` or `max` of itself and the `others`, or `equal` to them."""

    op: str
    chosen: int | Expr
    others: tuple[int | Expr, ...]

    def holds(self, sizes: Mapping[str, int]) -> bool:
        """Return whether the assumption holds for the sizes of a run."""
        chosen = number_of(self.chosen, sizes)
        others = [number_of(o, sizes) for o in self.others]
        if chosen is None or None in others:
            return True  # not sizes of feeds: the calls that compute with them check them
        return all(o is None or _COMPARED[self.op](chosen, o) for o in others)


def judge_of(sizes: Mapping[str, int], guards: dict[Guard, None]) -> Judge:
    """Return what decides for some feeds whether sizes are equal, or in order; what is so becomes a guard."""

    def judge(op: Literal["equal", "max"], a: int | Expr, b: int | Expr) -> bool:
        if number_of(a, sizes) is None or number_of(b, sizes) is None:
            return True  # a call decides one of them, and its readers check it
        guard = Guard(op, a, (b,))
        if not guard.holds(sizes):
            return False
        guards.setdefault(guard)
        return True

    return judge


def number_of(size: int | Expr, sizes: Mapping[str, int]) -> int | None:
    """Return a size as a number; None if `sizes` lacks one of its symbols."""
    found = size if isinstance(size, int) else size.substitute(sizes)
    return found if isinstance(found, int) else None


def pattern_of(
    declared: Sequence[Type | None], feeds: Sequence[Any], sized: Collection[int] = ()
) -> tuple[ShapePattern, dict[str, int]]:
    """Return the pattern of feeds, and the size of each of its symbols.

    `sized` numbers the inputs of few integers that sizes depend on.
    """
    sizes: dict[str, int] = {}
    kinds: list[TensorType | None] = []
    for number, (kind, feed) in enumerate(zip(declared, feeds, strict=True)):
        if not isinstance(feed, np.ndarray) or not isinstance(kind, TensorType):
            kinds.append(None)
            continue
        array = cast("Array", feed)
        axes = (
            kind.shape if kind.shape is not None and len(kind.shape) == array.ndim else (None,) * array.ndim
        )
        shape = tuple(
            _size(dim, size, f"in{number}.{axis}", sizes)
            for axis, (dim, size) in enumerate(zip(axes, array.shape, strict=True))
        )
        known = _contents(array, number, sizes) if number in sized else None
        kinds.append(TensorType(kind.element, shape, known))
    return ShapePattern(tuple(kinds)), sizes


def _contents(array: Array, number: int, sizes: dict[str, int]) -> tuple[int | Expr, ...] | None:
    if array.dtype.kind == "b" and array.size == 1:
        return (bool(array.item()),)
    if array.size > MOST_SIZED or array.dtype.kind not in "iu":
        return None
    if array.size == 1:
        return (_size(None, int(array.item()), f"in{number}", sizes),)
    items: list[int] = array.ravel().tolist()
    return tuple(_size(None, item, f"in{number}v{place}", sizes) for place, item in enumerate(items))


def _size(dim: object, size: int, name: str, sizes: dict[str, int]) -> int | Expr:
    if size < ABOVE_ONE or dim == size:
        return size
    if isinstance(dim, Expr) and symbol(str(dim)) == dim and sizes.setdefault(str(dim), size) == size:
        return dim
    sizes[name] = size
    return symbol(name)
