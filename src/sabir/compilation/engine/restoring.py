"""Plans from the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.compilation.cache.stored import StoredPlan

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.cache.stored import PlanPlace
    from sabir.compilation.protocol import Backend, Runnable


def restored(
    place: PlanPlace, backend: Backend, progress: Callable[[int, int], None],
    again: Callable[[], Runnable] | None = None,
) -> Runnable | None:  # fmt: skip
    """Return the plan that is stored at a place; None if there is none that can run.

    `again` returns a new plan with its program, if a stage of this one is not stored; without it, a run
    raises `PartMissing` then.
    """
    stored = place.read()
    if stored is None or isinstance(stored, StoredPlan):
        return None if stored is None else backend.restored(stored, progress)
    # ruff: ignore[import-outside-top-level]  few plans have stages
    from sabir.compilation.engine.restored_stages import restored_stages

    def restore(part: PlanPlace) -> Runnable | None:
        return restored(part, backend, progress)

    return restored_stages(stored, place, restore, again)


__all__ = ["restored"]
