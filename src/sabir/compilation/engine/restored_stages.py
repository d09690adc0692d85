"""Staged plans from the disk; their later stages are read when a run needs them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.compilation.engine.staged import StagedProgram
from sabir.compilation.engine.subplans import SubPlans
from sabir.compilation.engine.worth import Reserve
from sabir.compilation.plan.entries import PartMissing
from sabir.evaluation import CallBinder

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.cache.stored import PlanPlace, StoredStages
    from sabir.compilation.engine.subplans import PartSource, Restore
    from sabir.compilation.protocol import Runnable


def restored_stages(
    stored: StoredStages, place: PlanPlace, restore: Restore, again: Callable[[], Runnable] | None
) -> StagedProgram | None:
    """Return the plan of stages that were read; None if the first one, or an operator, is gone.

    `restore` reads the plan at a place, and `again` makes the whole plan anew.
    """
    facts = stored.facts
    first = restore(place.part("first")) if facts.first else None
    if facts.first and first is None:
        return None
    binder = CallBinder(strict=False)
    try:
        calls = [binder.bind(call.call()) for call in stored.calls]
    except LookupError:
        return None
    rest = SubPlans(
        _missing, facts.live, Reserve(math.inf), loops=True, sized=facts.sized, place=place.part("rest"),
        restore=restore,
    )  # fmt: skip
    return StagedProgram(facts, first, calls, stored.constants, rest, again=again)


def _missing() -> PartSource:
    raise PartMissing("the stage is not stored")


__all__ = ["restored_stages"]
