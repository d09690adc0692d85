"""The interpreter: what a model means, computed node by node on numpy arrays."""

from sabir.evaluate._engine import Runner, evaluate
from sabir.evaluate._feeds import Ports, check_feeds
from sabir.evaluate._plan import Plan

__all__ = ["Plan", "Ports", "Runner", "check_feeds", "evaluate"]
