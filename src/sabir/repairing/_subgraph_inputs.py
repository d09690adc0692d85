"""The repair of inputs of subgraphs that are initializers too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import quote
from sabir.ir import CONSTANTS
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task
from sabir.rewriting import separate_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator


@repair(
    "GRAPH013",
    "If the node supplies the input, the initializer is dropped, as it has no effect; otherwise the value is"
    " a constant, and no longer listed as an input. Subgraphs of operators that are not known are kept.",
)
def separate_subgraph_inputs(task: Task) -> Iterator[Repair]:
    """Let each value of a subgraph be an input or an initializer, and not both."""
    if "GRAPH013" not in task.selected or task.survey.model.ir_version < CONSTANTS.since:
        return
    for site in task.survey.graphs:
        if site.kind != "subgraph" or site.holder is None:
            continue
        for value, index, is_supplied in separate_inputs(site.holder, site.graph, site.scope):
            dropped = "initializer" if is_supplied else "input"
            where = site.where.at("input", index=index, name=value.name)
            yield Repair("GRAPH013", f"dropped the {dropped} {quote(value.name)} of the subgraph", where)
