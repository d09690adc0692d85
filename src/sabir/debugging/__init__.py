"""Finding faults of models: costs, all values of a run, two runs compared, the smallest failing model."""

from sabir.debugging._summary import Costs, LayerCosts, NodeCosts, Summary, summary

__all__ = ["Costs", "LayerCosts", "NodeCosts", "Summary", "summary"]
