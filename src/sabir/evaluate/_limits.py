"""What one run may spend."""

from __future__ import annotations

import contextlib
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

from sabir.base import EvaluationError

if TYPE_CHECKING:
    from collections.abc import Generator


class Limits(NamedTuple):
    """Bounds on one run of a model; None leaves a bound out.

    `iterations` is how many times subgraphs may run, those of all loops together: a model can say
    "for ever", and only its caller knows how long that may be.
    """

    iterations: int | None = None


NO_LIMITS = Limits()
_LEFT: ContextVar[list[int] | None] = ContextVar("iterations left", default=None)


@contextlib.contextmanager
def within(limits: Limits) -> Generator[None, None, None]:
    """Hold the run inside to some limits."""
    token = _LEFT.set(None if limits.iterations is None else [limits.iterations])
    try:
        yield
    finally:
        _LEFT.reset(token)


def spend_iteration() -> None:
    """Count one run of a subgraph; raises EvaluationError past the limit."""
    left = _LEFT.get()
    if left is None:
        return
    if left[0] <= 0:
        raise EvaluationError("subgraphs ran as often as `Limits(iterations=...)` allows; is that enough?")
    left[0] -= 1
