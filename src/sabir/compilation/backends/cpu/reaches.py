"""The memory that kernels touch, for bounds checks, and the tensors that they compute, for limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.backends.cpu.emit.nest import TakeStep
from sabir.compilation.plan.bounds import ComputedTensor, Reach
from sabir.loops import element_bytes
from sabir.scheduling import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.backends.cpu.elementwise.nesting import Nesting
    from sabir.compilation.frontend.lowering import Lowered
    from sabir.compilation.plan.entries import Buffer
    from sabir.loops import Expression, Size


def reaches_of(nesting: Nesting, buffer: Callable[[Expression], Buffer]) -> list[Reach]:
    """Return the reach of each access of a nest."""
    taken: dict[int, list[tuple[Size, Size]]] = {}
    steps = [step for step in nesting.steps if isinstance(step, TakeStep)]
    for step, extent in zip(steps, nesting.takes, strict=True):
        taken.setdefault(step.access, []).append(extent)
    found: list[Reach] = []
    for number, place in enumerate(nesting.places):
        extents = list(zip(nesting.sizes, place.strides, strict=True))
        base = buffer(place.located.base)
        width = element_bytes(place.element)
        found.append(Reach(base, width, place.located.offset, extents, taken.get(number, ())))
    return found


def values_of(lowered: Lowered) -> list[ComputedTensor]:
    """Return the results of the lowered calls."""
    calls = [lowered.prepared.program.calls[place] for place in lowered.lowered]
    found = [lowered.expressions[slot] for call in calls for slot in call.outputs if slot != ABSENT]
    return [ComputedTensor(x.shape, element_bytes(x.element)) for x in found]
