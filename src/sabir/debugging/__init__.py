"""Finding faults of models: costs, all values of a run, two runs compared, the smallest failing model."""

from sabir.debugging._statistics import Statistics, statistics_of, type_text
from sabir.debugging._summary import Costs, LayerCosts, NodeCosts, Summary, summary
from sabir.debugging._trace import FirstNan, Trace, TracedValue, trace

__all__ = [
    "Costs",
    "FirstNan",
    "LayerCosts",
    "NodeCosts",
    "Statistics",
    "Summary",
    "Trace",
    "TracedValue",
    "statistics_of",
    "summary",
    "trace",
    "type_text",
]
