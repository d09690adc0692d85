"""The schedule of a model: programs of operator calls over numbered slots, the same for every engine."""

from sabir.scheduling._in_graph import calls_in_graph
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
    ValueInfo,
)
from sabir.scheduling._schedule import Schedule, schedule
from sabir.scheduling._subgraph_types import SubgraphTypes

__all__ = [
    "ABSENT",
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
    "calls_in_graph",
    "make_plan",
    "schedule",
]
