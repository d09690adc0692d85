"""The repair of a missing import of the default domain: the version that readers assume is imported."""

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


@repair(
    "MODEL002",
    "The default domain is imported, in the newest version that was released with the IR version.",
)
@repair(
    "MODEL012",
    "The default domain is imported in the version that applies: the newest that was released with the IR"
    " version.",
)
@repair("FUNC013", "The default domain is imported in the version of the model, which applies.")
def import_default_domain(task: Task) -> Iterator[Repair]:
    """Import the default domain in a model without imports, or one that calls its operators all the same."""
    survey = task.survey
    model = survey.model
    functions = [(c.function, c.version) for c in implicit_imports(model) if c.function is not None]
    if not model.opsets:
        yield from _into_model(task, "MODEL002")
    elif any(c.function is None for c in implicit_imports(model)):
        yield from _into_model(task, "MODEL012")
    for place, version in functions if "FUNC013" in task.selected else ():
        site = survey.functions[place]
        site.function.opsets[""] = version
        message = f"imported version {version} of the default domain, as the model does"
        yield Repair("FUNC013", message, site.where)


def _into_model(task: Task, id_: str) -> Iterator[Repair]:
    model, rule = task.survey.model, RULES.find(id_)
    version = model.opset()
    if id_ in task.selected and version is not None and rule and rule.holds_for(model.ir_version):
        model.opsets[""] = version
        message = f"imported version {version} of the default domain"
        yield Repair(id_, f"{message}, the newest released with IR version {model.ir_version}", Location())


def keep_implicit_import(model: Model, ir_version: int) -> str:
    """Import the default domain explicitly if `ir_version` would imply another version of it.

    Returns the end of a repair's message, or "" if nothing was changed.
    """
    version, declared = model.opset(), find_opset(model.opsets, "")
    if declared is not None or version is None or not any(True for _ in implicit_imports(model)):
        return ""
    model.opsets[""] = version
    return f", and imported version {version} of the default domain, which IR {ir_version} would not imply"
