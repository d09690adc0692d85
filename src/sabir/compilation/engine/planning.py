"""Planning: a model becomes a compiled plan for one pattern of shapes, on a backend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sabir.compilation.engine.bodies import bodies_on
from sabir.compilation.engine.expressions import lowered
from sabir.compilation.engine.worth import require_bounded
from sabir.compilation.frontend.prepare import prepare
from sabir.compilation.protocol import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation.frontend.prepare import Prepared
    from sabir.compilation.protocol import Backend, Runnable
    from sabir.compilation.settings import Settings


def planned(
    prepared: Prepared, sizes: Mapping[str, int], backend: Backend, settings: Settings,
    progress: Callable[[int, int], None], updates: Mapping[str, str],
) -> Runnable:  # fmt: skip
    """Return the compiled plan of a prepared model; `sizes` are those of the present feeds.

    `updates` has the inputs that results may be written over, by the names of these. Raises UnsupportedError
    for a plan that the backend cannot run.
    """
    require_bounded(prepared)
    program = prepared.program
    inputs, outputs = ({v.name: v.slot for v in values} for values in (program.inputs, program.outputs))
    pairs = {outputs[new]: inputs[old] for new, old in updates.items() if new in outputs and old in inputs}
    found, bodies = lowered(prepared, sizes, backend.passes, settings), partial(bodies_on, backend, settings)
    return backend.compile(Request(found, sizes, settings, progress, bodies, pairs))


__all__ = ["lowered", "planned", "prepare"]
