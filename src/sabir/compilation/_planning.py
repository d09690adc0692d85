"""Planning: a model becomes a compiled plan for one pattern of shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation._bodies import bodies_on
from sabir.compilation._building import build
from sabir.compilation._executable import executable_of
from sabir.compilation._foreign import ForeignProgram
from sabir.compilation._in_place import updates_last
from sabir.compilation._lowering import lower
from sabir.compilation._prepare import prepare
from sabir.compilation._program import CompiledProgram
from sabir.compilation._worth import require_bounded
from sabir.compilation.native import EarlyKernels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation._executable import Executable
    from sabir.compilation._patterns import Pattern
    from sabir.compilation._prepare import Prepared
    from sabir.compilation._settings import Settings
    from sabir.compilation.native import Host, Team
    from sabir.ir import Model
    from sabir.schema import Registry


def planned(
    prepared: Prepared, sizes: Mapping[str, int], host: Host, settings: Settings, team: Team,
    progress: Callable[[int, int], None], updates: Mapping[str, str],
) -> CompiledProgram:  # fmt: skip
    """Return the compiled plan of a prepared model; `sizes` are those of the present feeds.

    `updates` has the inputs that results may be written over, by the names of these.

    Raises UnsupportedError for a kernel that cannot be made.
    """
    with EarlyKernels() as early:
        executable, prepared = _made(prepared, sizes, host, settings, early)
        program = prepared.program
        inputs, outputs = ({v.name: v.slot for v in values} for values in (program.inputs, program.outputs))
        pairs = {
            outputs[new]: inputs[old] for new, old in updates.items() if new in outputs and old in inputs
        }
        updates_last(executable.plan, pairs)
        bodies = bodies_on(host, settings, team, prepared.constants)
        return CompiledProgram(executable, team, prepared, bodies, progress, early=early)


def planned_for(
    target: Host, settings: Settings, model: Model, pattern: Pattern, sizes: Mapping[str, int],
    registry: Registry,
) -> ForeignProgram:  # fmt: skip
    """Return the plan of a model for another processor; raises what the schedule raises."""
    prepared = prepare(model, pattern, sizes, registry, newer_opsets=settings.newer_opsets)
    return ForeignProgram(*_made(prepared, sizes, target, settings, None), target)


def _made(
    prepared: Prepared, sizes: Mapping[str, int], host: Host, settings: Settings, early: EarlyKernels | None
) -> tuple[Executable, Prepared]:
    require_bounded(prepared)
    lowered = lower(prepared, sizes)
    plan = build(lowered, list(prepared.plan.results), host, settings, early)
    prepared = lowered.settled()
    return executable_of(prepared, plan, frozenset(sizes)), prepared
