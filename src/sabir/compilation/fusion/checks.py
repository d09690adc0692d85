"""Bounds checks of indices whose gather or scatter computes no element.

An index outside of its axis is an error of the run, whether or not the result is used. A kernel that gathers
or scatters checks an index when it computes an element. So a plan has a separate kernel that checks the
indices of a call if only the shape of its result is read, or if its result may have no elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import lower_bound, symbol
from sabir.loops import Expand, Expression, Number, Reshape, Scatter, Stored, Take
from sabir.loops.walk import postorder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.compilation.frontend.lowering import Lowered
    from sabir.loops import Size

_ELEMENT = "uint8"
_LEAST = 2  # the smallest size that a symbol of a pattern represents


def checks_of(lowered: Lowered, computed: Iterable[Expression]) -> list[Expression]:
    """Return the checks that a plan needs in addition to the `computed` expressions.

    A call that no output needs, not even for its shape, is not checked: the interpreter does not run it
    either.
    """
    calls = (lowered.prepared.program.calls[place] for place in lowered.lowered)
    slots = (slot for call in calls for slot in call.outputs if slot in lowered.expressions)
    indexed = [x for x in postorder(lowered.expressions[slot] for slot in slots) if x.checks_indices]
    if not indexed:
        return []
    seen = set[Expression]()
    _visit(computed, seen)
    found: list[Expression] = []
    for x in reversed(indexed):  # the result of a gather may be the indices of another
        if not isinstance(x, (Take, Scatter)):
            found += () if x in seen else (x,)
            continue
        if (x in seen and not _may_be_empty(x, lowered.prepared.unknown)) or _are_inside(x):
            continue
        table, indices = Expand(_ELEMENT, (_size(x),), Number(_ELEMENT, (), 0)), _base(x.indices)
        found.append(Take(_ELEMENT, indices.shape, table, indices, 0))
        _visit([indices], seen)
    return found


def _visit(roots: Iterable[Expression], seen: set[Expression]) -> None:
    for _ in postorder(roots, seen):
        pass


def _base(x: Expression) -> Expression:
    """Return the indices before they are broadcast along axes that may have no elements."""
    while isinstance(x, Expand) or (isinstance(x, Reshape) and isinstance(x.operand, (Expand, Reshape))):
        x = x.operand
    return x


def _size(x: Take | Scatter) -> Size:
    return x.operand.shape[x.axis]


def _may_be_empty(x: Take | Scatter, unknown: frozenset[str]) -> bool:
    """Return whether a result may have no elements though there are indices.

    The sizes of feeds that are 0 are numbers in a pattern; a size that a call decides may be 0 too.
    """
    return any(_may_be_zero(n, unknown) for axis, n in enumerate(x.operand.shape) if axis != x.axis)


def _may_be_zero(size: Size, unknown: frozenset[str]) -> bool:
    if isinstance(size, int):
        return size == 0
    least = size.substitute({name: symbol(name) + _LEAST for name in size.symbols - unknown})
    return (lower_bound(least) or 0) <= 0


def _are_inside(x: Take | Scatter) -> bool:
    """Return whether all indices are known, and inside of the axis."""
    known, size = x.indices.known if isinstance(x.indices, Stored) else None, _size(x)
    if known is None or not isinstance(size, int):
        return False
    return all(isinstance(n, int) and -size <= n < size for n in known)
