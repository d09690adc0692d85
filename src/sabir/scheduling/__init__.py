"""The schedule of a model: programs of operator calls over numbered slots, the same for every engine."""

from typing import TYPE_CHECKING

from sabir.base import importing_later

if TYPE_CHECKING:
    from sabir.scheduling._deviations import as_meant
    from sabir.scheduling._in_graph import calls_in_graph
    from sabir.scheduling._labels import ORIGIN, label_of
    from sabir.scheduling._plan import Plan, make_plan
    from sabir.scheduling._program import (
        ABSENT,
        FunctionCall,
        InvalidCall,
        OperatorCall,
        Program,
        ScheduledCall,
        ScheduledFunction,
        ScheduledSubgraph,
    )
    from sabir.scheduling._schedule import Schedule, schedule
    from sabir.scheduling._subgraph_types import SubgraphTypes
    from sabir.scheduling._values import ValueInfo

# imported on first use, so that a program loads what it uses
_LATER = {
    "ORIGIN": "_labels", "as_meant": "_deviations", "label_of": "_labels",
    "calls_in_graph": "_in_graph", "Plan": "_plan", "make_plan": "_plan", "ABSENT": "_program",
    "FunctionCall": "_program", "InvalidCall": "_program", "OperatorCall": "_program",
    "Program": "_program", "ScheduledCall": "_program", "ScheduledFunction": "_program",
    "ScheduledSubgraph": "_program", "ValueInfo": "_values", "Schedule": "_schedule",
    "schedule": "_schedule", "SubgraphTypes": "_subgraph_types",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)

__all__ = [
    "ABSENT",
    "ORIGIN",
    "FunctionCall",
    "InvalidCall",
    "OperatorCall",
    "Plan",
    "Program",
    "Schedule",
    "ScheduledCall",
    "ScheduledFunction",
    "ScheduledSubgraph",
    "SubgraphTypes",
    "ValueInfo",
    "as_meant",
    "calls_in_graph",
    "label_of",
    "make_plan",
    "schedule",
]
