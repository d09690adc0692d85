"""The repair of the order of nodes: each after those that compute what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


@repair("GRAPH006", "The nodes are sorted, and change their order only where necessary. A cycle is kept.")
def sort_nodes(task: Task) -> Iterator[Repair]:
    """Sort the nodes of each graph that has no cycle into topological order."""
    for site in task.survey.graphs if "GRAPH006" in task.selected else ():
        try:
            order = site.graph.sorted_nodes()
        except SchemaError:
            continue
        moved = sum(a is not b for a, b in zip(order, site.nodes, strict=True))
        if moved:
            site.graph.arrange(order)
            message = f"sorted the nodes; {moved} of {len(order)} have another position"
            yield Repair("GRAPH006", message, site.where)
