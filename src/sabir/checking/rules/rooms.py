"""Calls: warnings of the operators' own checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.checking._examples import HEAD
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import Survey


@rule(
    "NODE017",
    "A node calls its operator as the text of the operator specifies.",
    source="practice",
    over="model",
    severity="warning",
    note="runtimes accept such a call, but not all in the same way",
    bad=HEAD + "g (float[1,N] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
    good=HEAD + "g (float[1,N,1] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
)
def calls_as_meant(_: Survey) -> Iterator[Problem]:
    """The operator's own check has no warning: a call may run though the text does not allow it."""
    yield from ()  # the engine adds these warnings, which need inferred types
