"""The interpreter: what a model means, computed node by node on numpy arrays."""

from sabir.evaluate._engine import Runner, evaluate
from sabir.evaluate._feeds import Ports

__all__ = ["Ports", "Runner", "evaluate"]
