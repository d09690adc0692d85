"""Inlining: maps that each reader recomputes instead of loading their results.

These are scalars, and tensors that are stored in fewer bytes than they are computed in: dequantized integers
and casts. Only the narrow tensor is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.fusion.views import VIEWS
from sabir.loops import FLOATS, Count, Expression, Extent, Map, Number, Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHEAP = frozenset({"sub", "mul"})
_NARROW = 2  # bytes
_MOST_STEPS = 16  # of a scalar


def is_inline(x: Expression) -> bool:
    """Return whether the readers of an expression recompute it."""
    if not isinstance(x, Map):
        return False
    if x.rank == 0:
        return _steps_left(x, _MOST_STEPS) >= 0
    return x.element in FLOATS and _is_widened(x)


def _steps_left(x: Expression, left: int) -> int:
    """Return `left` less the maps of a scalar, or -1 if there are more; shared operands count each time."""
    if isinstance(x, (Stored, Number, Extent)):
        return left
    if not isinstance(x, Map) or x.rank or not left:
        return -1
    left -= 1
    for o in x.operands:
        left = _steps_left(o, left)
        if left < 0:
            break
    return left


def _is_widened(x: Expression) -> bool:
    """Return whether an expression is `(cast(narrow) - zero) * scale`, or a part of that form."""
    if not isinstance(x, Map):
        return False
    first, *others = x.operands
    if first.shape != x.shape:
        return False
    if x.op == "cast":
        return element_bytes(first.element) <= _NARROW and not isinstance(first, (Number, Extent, Count))
    return x.op in _CHEAP and all(map(_is_parameter, others)) and _is_widened(first)


def _is_parameter(x: Expression) -> bool:
    """Return whether an expression is a stored or constant parameter, such as a scale or zero point."""
    if isinstance(x, Map) and x.op == "cast":
        (x,) = x.operands
    while isinstance(x, VIEWS):
        x = x.operand
    return isinstance(x, (Stored, Number, Extent)) or (x.rank == 0 and is_inline(x))


def read_by(x: Expression) -> Iterator[Expression]:
    """Yield the tensors that a kernel loads to compute an expression: itself, unless it is inlined."""
    if not is_inline(x):
        yield x
        return
    if isinstance(x, Map):
        for o in x.operands:
            yield from read_by(o)
