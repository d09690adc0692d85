"""The interpreter: what a model means, computed node by node on numpy arrays."""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public

if TYPE_CHECKING:
    from sabir.evaluation._binding import CallBinder, read_constant
    from sabir.evaluation._calls import BoundCall, run_call
    from sabir.evaluation._engine import Runner, expanded
    from sabir.evaluation._evaluate import evaluate, make_engine
    from sabir.evaluation._feeds import ModelPort, shared_array
    from sabir.evaluation._front import Front, warn
    from sabir.evaluation._plans import BoundPlan
    from sabir.evaluation._requests import Request, read_request
    from sabir.evaluation._run import Run

# imported on first use, so that a program loads what it uses
_LATER = {
    "CallBinder": "_binding", "read_constant": "_binding", "BoundCall": "_calls", "run_call": "_calls",
    "Runner": "_engine", "expanded": "_engine", "evaluate": "_evaluate", "make_engine": "_evaluate",
    "ModelPort": "_feeds", "shared_array": "_feeds", "Front": "_front", "warn": "_front",
    "BoundPlan": "_plans", "Request": "_requests", "read_request": "_requests", "Run": "_run",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = [
    "BoundCall", "BoundPlan", "CallBinder", "Front", "ModelPort", "Request", "Run", "Runner",
    "evaluate", "expanded", "make_engine", "read_constant", "read_request", "run_call",
    "shared_array", "warn",
]  # fmt: skip
