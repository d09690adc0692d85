"""The interpreter: what a model means, computed node by node on numpy arrays."""

from sabir.evaluation._engine import Runner
from sabir.evaluation._evaluate import evaluate, make_engine
from sabir.evaluation._feeds import ModelPort
from sabir.evaluation._requests import Request, read_request

__all__ = ["ModelPort", "Request", "Runner", "evaluate", "make_engine", "read_request"]
