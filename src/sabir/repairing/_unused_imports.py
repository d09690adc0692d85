"""The repair of opset imports that nothing uses and that are too new for the model's IR version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import Location, quote
from sabir.checking import unused_imports
from sabir.ir import first_ir_of
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.ir import Residue

_IMPORTS = "opset_import"


@repair("MODEL007", "An import that nothing uses is dropped, unless it is that of the default domain.")
def drop_unused_imports(task: Task) -> Iterator[Repair]:
    """Drop unused imports that are newer than the IR version; the rest of the model need not change."""
    model = task.survey.model
    if "MODEL007" not in task.selected or model.ir_version <= 0:
        return
    for domain in unused_imports(task.survey):
        version = model.opsets[domain]
        if (first_ir_of(domain, version) or 0) > model.ir_version:
            del model.opsets[domain]
            model.residue = _without_import_places(model.residue)
            where = Location().at(_IMPORTS, name=domain)
            message = f"dropped the import of {quote(domain)} {version}, which nothing uses"
            yield Repair("MODEL007", message, where)


def _without_import_places(residue: Residue | None) -> Residue | None:
    """Return a residue without what refers to imports by their places, which have changed."""
    if residue is None:
        return None
    entries = tuple(e for e in residue.entries if e[0] != _IMPORTS)
    places = tuple(p for p in residue.places if p[0] != _IMPORTS)
    changed = residue._replace(entries=entries, places=places)
    return changed if any(changed) else None
