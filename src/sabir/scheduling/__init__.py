"""The schedule of a model: programs of operator calls over numbered slots, the same for every engine."""

from sabir.scheduling._plan import Plan, make_plan
from sabir.scheduling._program import (
    ABSENT,
    Call,
    FunctionCall,
    InvalidCall,
    OperatorCall,
    Program,
    ScheduledFunction,
    Subgraph,
    ValueInfo,
)
from sabir.scheduling._schedule import Schedule, schedule
from sabir.scheduling._subgraph_types import SubgraphTypes

__all__ = [
    "ABSENT",
    "Call",
    "FunctionCall",
    "InvalidCall",
    "OperatorCall",
    "Plan",
    "Program",
    "Schedule",
    "ScheduledFunction",
    "Subgraph",
    "SubgraphTypes",
    "ValueInfo",
    "make_plan",
    "schedule",
]
