"""Planning: a model becomes a compiled plan for one pattern of shapes, on a backend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.engine.bodies import bodies_on
from sabir.compilation.engine.expressions import lowered
from sabir.compilation.engine.worth import Reserve
from sabir.compilation.frontend.prepare import prepare, require_bounded
from sabir.compilation.protocol import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from sabir.compilation.engine.worth import PlanCost
    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.settings import Settings


def planned(
    prepared: Prepared, sizes: Mapping[str, int], backend: Backend, settings: Settings,
    progress: Callable[[int, int], None], updates: Mapping[str, str], cost: PlanCost,
) -> Runnable:  # fmt: skip
    """Return the compiled plan of a prepared model; `sizes` are the sizes of the current feeds.

    `updates` maps results to the inputs that they may overwrite, by name. Raises UnsupportedError
    for a plan that the backend cannot run, NotYet for a plan of a higher `cost` than allowed.
    """
    require_bounded(prepared)
    cost.add_calls(len(prepared.plan.steps))
    program = prepared.program
    inputs, outputs = ({v.name: v.slot for v in values} for values in (program.inputs, program.outputs))

    def slots(names: Iterable[tuple[str, str]]) -> dict[int, int]:
        return {outputs[new]: inputs[old] for new, old in names if new in outputs and old in inputs}

    found = lowered(prepared, sizes, backend.passes, settings)
    bodies = partial(bodies_on, backend, settings, Reserve())
    return backend.compile(
        Request(
            found, sizes, settings, cost, progress, bodies, slots(updates.items()), slots(settings.caches)
        )
    )


__all__ = ["lowered", "planned", "prepare"]
