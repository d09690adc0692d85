"""Planning: a model becomes a compiled plan for one pattern of shapes, on a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation._faults import is_strict
from sabir.compilation._lowering import lower
from sabir.compilation._prepare import prepare
from sabir.compilation._worth import require_bounded
from sabir.compilation.passes import run_pipeline

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation._backend import Backend, Runnable
    from sabir.compilation._lowering import Lowered
    from sabir.compilation._prepare import Prepared
    from sabir.compilation._settings import Settings


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
    return backend.compile(lowered(prepared, sizes, settings), sizes, settings, progress, pairs)


def lowered(prepared: Prepared, sizes: Mapping[str, int], settings: Settings) -> Lowered:
    """Return the tensor expressions of a prepared model after all passes."""
    found = lower(prepared, sizes)
    found.expressions = run_pipeline(found.expressions, settings.without, verify=is_strict())
    return found


__all__ = ["lowered", "planned", "prepare"]
