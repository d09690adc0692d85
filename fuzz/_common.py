"""What the targets and the mutator share: the stages that a file goes through, with small limits."""

from __future__ import annotations

import contextlib
import os
import traceback
from typing import TYPE_CHECKING, Any

import sabir
from hostile.feeds import feeds_for
from sabir.opsets import STANDARD
from support.differences import difference, scale_of

if TYPE_CHECKING:
    from collections.abc import Generator

for _name in sabir.__all__:  # engines are imported when first asked for: now, while imports are instrumented
    getattr(sabir, _name)

LIMITS = sabir.Limits(
    constant_bytes=1 << 22, elements=1 << 18, nodes=20_000, depth=32, iterations=300, seconds=2.0
)
LONGEST_MESSAGE = 2000
ENGINES = "SABIR_FUZZ_ENGINES"  # a variable of the environment with the engines that run models, with commas


class FoundError(AssertionError):
    """Something that should not be: an error without a type, a message too long."""


def import_rooms() -> None:
    """Import every operator, which otherwise waits until a model names it."""
    for _ in STANDARD:
        pass


@contextlib.contextmanager
def refusals() -> Generator[None, None, None]:
    """Let a SabirError pass that says what it should; any other error is a find."""
    try:
        yield
    except sabir.SabirError as error:
        message = str(error)
        if len(message) > LONGEST_MESSAGE:
            raise FoundError(f"a message of {len(message)} characters: {message[:200]!r}") from error
        if not all(c.isprintable() or c == "\n" for c in message):
            raise FoundError(f"a message with control characters: {message[:200]!r}") from error


def read(data: bytes) -> sabir.Model | None:
    """Return the model in some bytes, or None where it is refused."""
    held: list[sabir.Model] = []
    with refusals():
        held.append(sabir.loads(data))
    return held[0] if held else None


def check(model: sabir.Model) -> None:
    """Look for what is wrong with a model."""
    with refusals():
        for finding in sabir.findings(model, limits=LIMITS):
            shown = str(finding)
            if not shown.isprintable() or len(shown) > LONGEST_MESSAGE:
                raise FoundError(f"a finding of {len(shown)} characters: {shown[:200]!r}")


def written(model: sabir.Model) -> None:
    """Write a model as text and as bytes, and read both again."""
    with refusals():
        sabir.parse(sabir.text(model))
    with refusals():
        sabir.loads(sabir.dumps(model))


def infer(model: sabir.Model) -> None:
    """Infer its types."""
    with refusals():
        sabir.infer(model, limits=LIMITS)


def evaluate(model: sabir.Model) -> None:
    """Run it on small feeds of the declared types, in each engine that was asked for.

    All must end with the same values, as near as rounding allows, or with the same error.
    """
    first, *others = os.environ.get(ENGINES, "reference").split(",")
    expected = _end(model, first)
    for engine in others:
        found = _end(model, engine)
        if any(isinstance(end, str) and "the time is up" in end for end in (expected, found)):
            continue
        if problem := difference(found, expected, scale_of(model)):
            raise FoundError(f"the engines {engine} and {first} differ: {problem}"[:1000])


def _end(model: sabir.Model, engine: Any) -> list[Any] | str:
    """Return the outputs of a run, or its error as text."""
    found: list[list[Any] | str] = []
    with refusals():
        try:
            found.append([*sabir.Session(model, engine=engine, limits=LIMITS).run(feeds_for(model)).values()])
        except sabir.SabirError as error:
            found.append(f"{type(error).__name__}: {error}")
            raise
    return found[0]


def inline(model: sabir.Model) -> None:
    """Inline its functions."""
    with refusals():
        sabir.inline(model, limits=LIMITS)


def told(error: BaseException) -> str:
    """Return where an error came from, in a line: what tells one find from another."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/sabir/" in f.filename]
    place = f"{frames[-1].filename.rpartition('/sabir/')[2]}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {place}: {str(error)[:200]}"
