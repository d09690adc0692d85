"""Repairs of the IR version: one that is missing, and one that is too low for what the model uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Location, counted
from sabir.checking import RULES
from sabir.ir import NEWEST_IR, OLDEST_IR_OF_IMPORTS
from sabir.repairing._declaring import repair
from sabir.repairing._default_import import keep_implicit_import
from sabir.repairing._repair import Repair, Task
from sabir.rewriting import change_ir_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking import Rule, Survey

_RAISED = "`ir_version` is raised; a reader that knows only earlier versions then refuses the model."
# the rules that report what is newer than the IR version
_NEWER_THAN_IR = ("MODEL007", "MODEL008", "MODEL011", "TYPE007", "GRAPH012")


@repair("MODEL001", "`ir_version` is set to the lowest version that has everything the model uses.")
@repair("GRAPH012", _RAISED, safe=False)
@repair("MODEL007", _RAISED, safe=False)
@repair("MODEL008", _RAISED, safe=False)
@repair("MODEL011", _RAISED, safe=False)
@repair("TYPE007", _RAISED, safe=False)
def set_ir_version(task: Task) -> Iterator[Repair]:
    """Set a missing IR version to the lowest that has everything the model uses; raise one if allowed."""
    model, declared = task.survey.model, task.survey.model.ir_version
    if not 0 <= declared <= NEWEST_IR or (not declared and "MODEL001" not in task.selected):
        return
    rules = [r for r in RULES if r.id in _NEWER_THAN_IR and (not declared or r.id in task.unsafe)]
    violated = [r.id for r in rules if _is_violated(task.survey, r)] if declared else []
    if declared and not violated:
        return
    version = _lowest_version(task.survey, rules, declared or OLDEST_IR_OF_IMPORTS)
    if version is None:
        return
    message = (
        f"raised ir_version from {declared} to {version}" if declared else f"set ir_version to {version}"
    )
    message += keep_implicit_import(model, version)
    separated = change_ir_version(model, version, task.survey.registry)
    if separated:
        message += f", and listed {counted(len(separated), 'constant')} of subgraphs no longer as inputs"
    yield from (Repair(rule, message, Location()) for rule in violated or ["MODEL001"])


def _lowest_version(survey: Survey, rules: list[Rule], start: int) -> int | None:
    """Return the lowest IR version from `start` with which no rule is violated; None if there is none."""
    model, declared = survey.model, survey.model.ir_version
    try:
        for version in range(start, NEWEST_IR + 1):
            model.ir_version = version
            if not any(_is_violated(survey, rule) for rule in rules):
                return version
    finally:
        model.ir_version = declared
    return None


def _is_violated(survey: Survey, rule: Rule) -> bool:
    if not rule.holds_for(survey.model.ir_version):
        return False
    subjects = [survey] if rule.over == "model" else survey.graphs
    return any(True for subject in subjects for _ in rule.check(subject))
