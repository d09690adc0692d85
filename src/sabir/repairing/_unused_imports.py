"""The repair of opset imports that nothing uses and that are too new for the model's IR version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.ir import drop_imports, first_ir_of, unused_imports
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


@repair("MODEL007", "An import that nothing uses is dropped, unless it is that of the default domain.")
def drop_unused_imports(task: Task) -> Iterator[Repair]:
    """Drop unused imports that are newer than the IR version; the rest of the model need not change."""
    model = task.survey.model
    if "MODEL007" not in task.selected or model.ir_version <= 0:
        return
    for domain in unused_imports(model):
        version = model.opsets[domain]
        if (first_ir_of(domain, version) or 0) > model.ir_version:
            drop_imports(model, [domain])
            where = Location().at("opset_import", name=domain)
            message = f"dropped the import of {quote(domain)} {version}, which nothing uses"
            yield Repair("MODEL007", message, where)
