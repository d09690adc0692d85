"""Calls: what the room of an operator warns about, where the signature and the types are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.checking._examples import HEAD
from sabir.checking._rule import Problem, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sabir.checking._survey import Survey


@rule(
    "NODE017",
    "A node calls its operator as the operator's text has it.",
    source="practice",
    over="model",
    severity="warning",
    note="runtimes run such a call, but not all of them in the same way",
    bad=HEAD + "g (float[1,N] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
    good=HEAD + "g (float[1,N,1] x, int64 step, float[4] w) => (float[1,M,3,2] y) { y = STFT(x, step, w) }",
)
def calls_as_meant(_: Survey) -> Iterator[Problem]:
    """What an operator's own check warns about: a call that is run though the text has it otherwise."""
    yield from ()  # asked after the inference over the whole model, which finds the types
