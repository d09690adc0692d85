"""Models compiled by other thresholds than the default ones, and the decisions that follow."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sabir.compilation import Compiled, Settings
from sabir.compilation.backends.cpu.backend import CpuBackend, this_machine
from sabir.compilation.backends.cpu.heuristics import HEURISTICS
from sabir.compilation.frontend.placeholders import placeholder_feeds
from sabir.compilation.native import team

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import sabir
    from sabir.compilation import Decision


def backend_by(*, threads: int | None = None, cores: int | None = None, **thresholds: Any) -> CpuBackend:
    """The backend of this machine with other thresholds, and as if it had so many cores."""
    this = this_machine()
    cores = cores or this.cores
    return CpuBackend(
        this.target, team(threads or cores, this.target), cores, replace(HEURISTICS, **thresholds)
    )


def compiled_by(model: sabir.Model, *, precision: str = "exact", **options: Any) -> Compiled:
    """A model on such a backend."""
    return Compiled(model, backend=backend_by(**options), settings=Settings(precision))  # pyright: ignore[reportArgumentType]  tests pass words that they know


def decisions_on(
    model: sabir.Model,
    subject: str,
    shapes: Mapping[str, Sequence[int]] | None = None,
    *,
    target: str = "x86-64-v3",
    **options: Any,
) -> list[Decision]:
    """The decisions of one subject in the plan of a model for a processor, the same on every machine."""
    compiled = compiled_by(model, **options)
    plan = compiled.compile(placeholder_feeds(compiled.inputs, shapes or {}), target=target)
    return [d for d in plan.explain().decisions if d.subject == subject]


def texts_on(model: sabir.Model, subject: str, **options: Any) -> list[str]:
    """The same without the nodes, as text."""
    return [d.text for d in decisions_on(model, subject, **options)]
