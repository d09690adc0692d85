"""Evaluated calls that read feeds and constants alone: a plan evaluates them before all of its kernels.

So texts become their places in a table, and what follows are kernels of one plan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.ir import Expr, TensorType
from sabir.scheduling import ABSENT

if TYPE_CHECKING:
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.ir import Type


def calls_ahead(found: Lowered) -> frozenset[int]:
    """Return the places of these calls, without those whose results have sizes that only they decide."""
    prepared, ahead = found.prepared, set[int]()
    known = {*prepared.inputs, *prepared.constants}
    for place, _ in prepared.plan.steps:
        step, call = found.evaluated.get(place), prepared.program.calls[place]
        if step is None or place in found.controls or call.captures or call.cost > 1:
            continue
        slots = [slot for slot in call.outputs if slot != ABSENT]
        if known.issuperset(step.reads) and all(
            _has_sizes(prepared.types[s], prepared.unknown) for s in slots
        ):
            ahead.add(place)
            known.update(slots)
    return frozenset(ahead)


def _has_sizes(kind: Type | None, unknown: frozenset[str]) -> bool:
    """Return whether a result is a tensor whose sizes are known before the call."""
    if not isinstance(kind, TensorType) or kind.shape is None:
        return False
    return not any(d is None or (isinstance(d, Expr) and d.symbols & unknown) for d in kind.shape)


__all__ = ["calls_ahead"]
