"""The order of nodes: each after those that compute what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import SchemaError
from sabir.repairing._declaring import repair
from sabir.repairing._repair import Repair, Task

if TYPE_CHECKING:
    from collections.abc import Iterator


@repair("GRAPH006", "The nodes are sorted; those that need not move keep their order. A cycle stays.")
def sort_nodes(task: Task) -> Iterator[Repair]:
    """Sort the nodes of each graph that has an order; a cycle has none, and stays."""
    for site in task.survey.graphs if "GRAPH006" in task.wanted else ():
        try:
            order = site.graph.sorted_nodes()
        except SchemaError:
            continue
        moved = sum(a is not b for a, b in zip(order, site.nodes, strict=True))
        if moved:
            site.graph.arrange(order)
            message = f"sorted the nodes; {moved} of {len(order)} have another position"
            yield Repair("GRAPH006", message, site.where)
