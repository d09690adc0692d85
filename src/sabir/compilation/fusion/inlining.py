"""Inlining: maps that each reader recomputes instead of loading their results.

These are scalars, and tensors that are stored in fewer bytes than they are computed in: dequantized integers
and casts. Only the narrow tensor is in memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from sabir.compilation.fusion.views import VIEWS
from sabir.compilation.plan.decisions import Reason
from sabir.loops import FLOATS, Count, Expression, Extent, Map, Number, Stored, element_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

_CHEAP = frozenset({"sub", "mul"})
_SCALAR = Reason("it is one number")
_WIDENED = Reason("a narrow tensor takes less memory than its floats")


class InliningHeuristics(Protocol):
    """The thresholds of a target for inlining."""

    @property
    def inlined_bytes(self) -> int:
        """The bytes of an element of a narrow tensor, at most."""
        ...

    @property
    def inlined_steps(self) -> int:
        """The maps of a scalar, at most."""
        ...


def is_inline(x: Expression, heuristics: InliningHeuristics) -> bool:
    """Return whether the readers of an expression recompute it."""
    if not isinstance(x, Map):
        return False
    if x.rank == 0:
        return _steps_left(x, heuristics.inlined_steps) >= 0
    return x.element in FLOATS and _is_widened(x, heuristics)


def why_inline(x: Expression) -> Reason:
    """Return why each reader of an expression computes it."""
    return _WIDENED if x.rank else _SCALAR


def _steps_left(x: Expression, left: int) -> int:
    """Return `left - maps` for the maps of a scalar, -1 if negative; shared operands count each time."""
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


def _is_widened(x: Expression, heuristics: InliningHeuristics) -> bool:
    """Return whether an expression is `(cast(narrow) - zero) * scale`, or a part of that form."""
    if not isinstance(x, Map):
        return False
    first, *others = x.operands
    if first.shape != x.shape:
        return False
    if x.op == "cast":
        is_narrow = element_bytes(first.element) <= heuristics.inlined_bytes
        return is_narrow and not isinstance(first, (Number, Extent, Count))
    if x.op not in _CHEAP or not all(_is_parameter(o, heuristics) for o in others):
        return False
    return _is_widened(first, heuristics)


def _is_parameter(x: Expression, heuristics: InliningHeuristics) -> bool:
    """Return whether an expression is a stored or constant parameter, such as a scale or zero point."""
    if isinstance(x, Map) and x.op == "cast":
        (x,) = x.operands
    while isinstance(x, VIEWS):
        x = x.operand
    return isinstance(x, (Stored, Number, Extent)) or (x.rank == 0 and is_inline(x, heuristics))


def read_by(x: Expression, heuristics: InliningHeuristics) -> Iterator[Expression]:
    """Yield the tensors that a kernel loads to compute an expression: itself, unless it is inlined."""
    if not is_inline(x, heuristics):
        yield x
        return
    if isinstance(x, Map):
        for o in x.operands:
            yield from read_by(o, heuristics)
