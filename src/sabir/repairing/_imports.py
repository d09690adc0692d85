"""Imports that a model leaves to its readers: the default domain, in the version that binds anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Location
from sabir.checking import RULES
from sabir.ir import find_opset
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task
from sabir.schema import implicit_imports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Model


@repair("MODEL002", "The default domain is imported, in the newest version that the IR version carried.")
@repair(
    "MODEL012",
    "The default domain is imported in the version that binds: the newest that the IR version"
    " carried, and in a function the model's.",
)
def import_default(task: Task) -> Iterator[Repair]:
    """Import the default domain where a model imports nothing, or it or a function calls it all the same."""
    survey = task.survey
    model = survey.model
    functions = [(c.function, c.version) for c in implicit_imports(model) if c.function is not None]
    if not model.opsets:
        yield from _into_model(task, "MODEL002")
    elif any(c.function is None for c in implicit_imports(model)):
        yield from _into_model(task, "MODEL012")
    for place, version in functions if "MODEL012" in task.wanted else ():
        site = survey.functions[place]
        site.function.opsets[""] = version
        yield Repair(
            "MODEL012", f"imported version {version} of the default domain, as the model", site.where
        )


def _into_model(task: Task, rule: str) -> Iterator[Repair]:
    model, declared = task.survey.model, RULES.find(rule)
    version = model.opset()
    if rule in task.wanted and version is not None and declared and declared.holds_for(model.ir_version):
        model.opsets[""] = version
        message = (
            f"imported version {version} of the default domain, the newest that IR {model.ir_version} carried"
        )
        yield Repair(rule, message, Location())


def keep_implicit_import(model: Model, ir_version: int) -> str:
    """Import the default domain in the version that binds now, before `ir_version` makes it another one.

    Returns what was done, or nothing.
    """
    version, stated = model.opset(), find_opset(model.opsets, "")
    if stated is not None or version is None or not any(True for _ in implicit_imports(model)):
        return ""
    model.opsets[""] = version
    return f", and imported version {version} of the default domain, which IR {ir_version} would not mean"
