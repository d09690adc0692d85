"""Faults of the compiler: exceptions that are programming mistakes, and not refusals.

The interpreter runs what the compiler cannot, so a fault costs speed and no result. A user gets one warning
that asks for a report. With `SABIR_STRICT_COMPILER=1`, as in the tests, a fault is an error.
"""

from __future__ import annotations

import os

from sabir.base import ACCIDENTS
from sabir.evaluation import warn

_STRICT = "SABIR_STRICT_COMPILER"
_OF_SIZES = (MemoryError, OverflowError)  # what a model with huge sizes raises: it is interpreted


def is_strict() -> bool:
    """Return whether a fault is an error and every pass is verified: `SABIR_STRICT_COMPILER=1`."""
    return os.environ.get(_STRICT, "") not in {"", "0"}


def report_fault(error: BaseException, step: str, node: str = "", *, result: str) -> None:
    """Report an exception in a step of the compiler, at a node if it has one.

    An exception that is a programming mistake is raised again if the compiler is strict, else it is a
    warning; `result` says what happens instead. Other exceptions are refusals, which need no report.
    """
    if not isinstance(error, (AssertionError, *ACCIDENTS)) or isinstance(error, _OF_SIZES):
        return
    if is_strict():
        raise error
    at = f" of {node}" if node else ""
    warn(f"the compiler failed in {step}{at}, so {result}; please report it: {type(error).__name__}: {error}")
