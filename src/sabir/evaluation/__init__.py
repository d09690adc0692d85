"""The interpreter: what a model means, computed node by node on numpy arrays."""

from sabir.evaluation._engine import Runner, evaluate
from sabir.evaluation._feeds import ModelPort

__all__ = ["ModelPort", "Runner", "evaluate"]
