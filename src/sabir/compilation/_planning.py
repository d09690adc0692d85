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
from sabir.compilation.native import EarlyKernels

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation._executable import Executable
    from sabir.compilation._patterns import Pattern
    from sabir.compilation._prepare import Prepared
    from sabir.compilation.native import Host, Team
    from sabir.ir import Model
    from sabir.schema import Registry


def planned(
    model: Model, pattern: Pattern, sizes: Mapping[str, int], registry: Registry, host: Host, team: Team,
    progress: Callable[[int, int], None], *, newer_opsets: bool, updates: Mapping[str, str],
) -> CompiledProgram:  # fmt: skip
    """Return the compiled plan of a model for a pattern of shapes; `sizes` are those of the present feeds.

    `updates` has the inputs that results may be written over, by the names of these.

    Raises what the schedule raises, and UnsupportedError for a kernel that cannot be made.
    """
    with EarlyKernels() as early:
        executable, prepared = _made(model, pattern, sizes, registry, host, early, newer_opsets=newer_opsets)
        program = prepared.program
        inputs, outputs = ({v.name: v.slot for v in values} for values in (program.inputs, program.outputs))
        pairs = {
            outputs[new]: inputs[old] for new, old in updates.items() if new in outputs and old in inputs
        }
        updates_last(executable.plan, pairs)
        bodies = bodies_on(host, team, prepared.constants)
        return CompiledProgram(executable, team, prepared, bodies, progress, early=early)


def planned_for(
    target: Host, model: Model, pattern: Pattern, sizes: Mapping[str, int], registry: Registry, *,
    newer_opsets: bool,
) -> ForeignProgram:  # fmt: skip
    """Return the plan of a model for another processor; raises what the schedule raises."""
    made = _made(model, pattern, sizes, registry, target, None, newer_opsets=newer_opsets)
    return ForeignProgram(*made, target)


def _made(
    model: Model, pattern: Pattern, sizes: Mapping[str, int], registry: Registry, host: Host,
    early: EarlyKernels | None, *, newer_opsets: bool,
) -> tuple[Executable, Prepared]:  # fmt: skip
    prepared = prepare(model, pattern, sizes, registry, newer_opsets=newer_opsets)
    lowered = lower(prepared, sizes)
    plan = build(lowered, list(prepared.plan.results), host, early)
    prepared = lowered.settled()
    return executable_of(prepared, plan, frozenset(sizes)), prepared
