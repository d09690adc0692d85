"""Binding: a loaded model becomes the subject of a session, scheduled and checked before any run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import run_with_limits, without_collector
from sabir.compilation.cache.descriptions import Ports
from sabir.compilation.frontend.subject import Subject
from sabir.evaluation import Front, expanded, read_constant
from sabir.ir import Tensor
from sabir.scheduling import as_meant, make_plan, schedule

if TYPE_CHECKING:
    from sabir.base import Limits
    from sabir.files import OpenedFile
    from sabir.ir import Array, Model
    from sabir.scheduling import Program
    from sabir.schema import Registry


def bound_subject(
    model: Model, registry: Registry, limits: Limits | None, file: OpenedFile | None, *, newer_opsets: bool
) -> Subject:
    """Return the subject of a session for a model; raises the SabirError of an invalid model.

    `file` is the file of the model, if the model is unchanged since it was loaded.
    """
    whole = expanded(model, registry, limits)
    whole, deviations = run_with_limits(limits, as_meant, whole, registry)
    snapshot = whole.clone()
    with without_collector():
        scheduled = run_with_limits(limits, schedule, whole, registry, newer_opsets=newer_opsets)
    program = scheduled.program
    constants = run_with_limits(limits, _constants, program)
    make_plan(program, [v.slot for v in program.outputs])  # raises for an invalid call
    numbers = sum(t.size for t in program.constants.values() if isinstance(t, Tensor))
    slots = [v.slot for v in program.inputs]
    defaults = {s: constants[s] for s in slots if s in constants}
    has_no_notes = not scheduled.notes and not scheduled.experimental
    subject = Subject(
        repr(model), Front.of(scheduled, defaults, numbers=numbers, deviations=deviations),
        [constants.get(s) for s in slots],
        file if whole is model else None,
        Ports(tuple(program.inputs), tuple(program.outputs)) if has_no_notes else None,
        has_turns=any(call.cost > 1 for call in program.calls), newer_opsets=newer_opsets,
    )  # fmt: skip
    subject.take(snapshot)
    return subject


def _constants(program: Program) -> dict[int, Array]:
    """Return the initializers by slot; raises the SabirError of invalid data."""
    names = {v.slot: v.name for v in program.values}
    return {slot: read_constant(names[slot], tensor) for slot, tensor in program.constants.items()}
