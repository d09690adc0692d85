"""Planning: a model becomes a compiled plan for one pattern of shapes, on a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.engine.expressions import lowered
from sabir.compilation.engine.stages import Compiler
from sabir.compilation.frontend.prepare import prepare, require_bounded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.compilation.cache.stored import PlanPlace
    from sabir.compilation.engine.worth import PlanCost
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.settings import Settings


def planned(
    prepared: Prepared, sizes: Mapping[str, int], backend: Backend, settings: Settings,
    progress: Callable[[int, int], None], updates: Mapping[str, str], cost: PlanCost, *,
    place: PlanPlace | None = None,
) -> Runnable:  # fmt: skip
    """Return the compiled plan of a prepared model; `sizes` are the sizes of the current feeds.

    `updates` maps results to the inputs that they may overwrite, by name: such a plan has one stage. The
    stages of a plan are stored at a `place`. Raises
    UnsupportedError for a plan that the backend cannot run, NotYet for a plan of a higher `cost` than
    allowed.
    """
    require_bounded(prepared)
    cost.add_calls(len(prepared.plan.steps))
    program, compiler = prepared.program, Compiler(backend, settings)
    inputs, outputs = ({v.name: v.slot for v in values} for values in (program.inputs, program.outputs))

    def slots(names: Iterable[tuple[str, str]]) -> dict[int, int]:
        return {outputs[new]: inputs[old] for new, old in names if new in outputs and old in inputs}

    if updates or settings.caches or settings.sizes:
        return compiler.whole(prepared, sizes, cost, progress, slots(updates.items()), slots(settings.caches))
    return compiler.compiled(prepared, sizes, cost, progress, place=place)


__all__ = ["lowered", "planned", "prepare"]
