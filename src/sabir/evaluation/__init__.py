"""The interpreter: what a model means, computed node by node on numpy arrays."""

from sabir.evaluation._binding import CallBinder, read_constant
from sabir.evaluation._calls import BoundCall, Run, run_call
from sabir.evaluation._engine import Front, Runner, expanded, warn
from sabir.evaluation._evaluate import evaluate, make_engine
from sabir.evaluation._feeds import ModelPort, shared_array
from sabir.evaluation._plans import BoundPlan
from sabir.evaluation._requests import Request, read_request

__all__ = [
    "BoundCall", "BoundPlan", "CallBinder", "Front", "ModelPort", "Request", "Run", "Runner",
    "evaluate", "expanded", "make_engine", "read_constant", "read_request", "run_call",
    "shared_array", "warn",
]  # fmt: skip
