"""Models compiled by other thresholds than the default ones, and the decisions that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.backend import CpuBackend
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.native import host, team

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sabir
    from sabir.compilation import Decision, Settings


def backend_by(*, threads: int | None = None, cores: int | None = None, **thresholds: Any) -> CpuBackend:
    """The backend of this machine with other thresholds, and as if it had so many cores."""
    machine = host()
    return CpuBackend(
        replace(machine, cores=cores or machine.cores),
        team(threads or cores or machine.cores),
        replace(HEURISTICS, **thresholds),
    )


def compiled_by(model: sabir.Model, *, settings: Settings | None = None, **options: Any) -> Compiled:
    """A model on such a backend."""
    given = {} if settings is None else {"settings": settings}
    return Compiled(model, backend=backend_by(**options), **given)


def decisions_on(
    model: sabir.Model,
    subject: str,
    shapes: Mapping[str, Sequence[int]] | None = None,
    **options: Any,
) -> list[Decision]:
    """The decisions of one subject in the plan of a model."""
    found = compiled_by(model, **options).explain(shapes).decisions
    return [d for d in found if d.subject == subject]
