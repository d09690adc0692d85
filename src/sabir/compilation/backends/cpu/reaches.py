"""What the kernels of a plan touch and compute, noted while the plan is built."""

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
    """Return what the places of a nest touch."""
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
    """Return the results of the calls that became kernels."""
    calls = [lowered.prepared.program.calls[place] for place in lowered.lowered]
    found = [lowered.expressions[slot] for call in calls for slot in call.outputs if slot != ABSENT]
    return [ComputedTensor(x.shape, element_bytes(x.element)) for x in found]
