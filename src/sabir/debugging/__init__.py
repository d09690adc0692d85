"""Finding faults of models: costs, all values of a run, two runs compared, the smallest failing model."""

from sabir.debugging._differences import Difference, difference
from sabir.debugging._layers import layer_of
from sabir.debugging._reduce import Reduction, ReductionStep, reduce
from sabir.debugging._runs import Parting, RunComparison, RunPair, compare_runs
from sabir.debugging._statistics import Statistics, statistics_of, type_text
from sabir.debugging._summary import Costs, LayerCosts, NodeCosts, Summary, node_costs, summary
from sabir.debugging._trace import FirstNan, Trace, TracedValue, trace

__all__ = [
    "Costs",
    "Difference",
    "FirstNan",
    "LayerCosts",
    "NodeCosts",
    "Parting",
    "Reduction",
    "ReductionStep",
    "RunComparison",
    "RunPair",
    "Statistics",
    "Summary",
    "Trace",
    "TracedValue",
    "compare_runs",
    "difference",
    "layer_of",
    "node_costs",
    "reduce",
    "statistics_of",
    "summary",
    "trace",
    "type_text",
]
