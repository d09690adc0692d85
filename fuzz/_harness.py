"""What every target needs of atheris: instrumented imports, and mutants that are messages."""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import atheris  # pyright: ignore[reportMissingModuleSource]  it has no wheel for every machine

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

_MESSAGES = 0.7  # the share of mutants that are made as messages, where a target asks for them


def instrumented() -> AbstractContextManager[None]:
    """Return the context in which a target imports what it tests."""
    return atheris.instrument_imports(include=["sabir"])  # pyright: ignore[reportAttributeAccessIssue]  as above


def run(one: Callable[[bytes], None], *, messages: bool = False) -> None:
    """Fuzz a target, with the options of libFuzzer that the command line gives."""
    from sabir import SabirWarning  # ruff: ignore[import-outside-top-level]  the target imported it, instrumented

    warnings.simplefilter("error")
    warnings.simplefilter("ignore", SabirWarning)  # as typed as an error
    if messages:
        atheris.Setup(sys.argv, one, custom_mutator=_mutated)
    else:
        atheris.Setup(sys.argv, one)
    atheris.Fuzz()


def _mutated(data: bytes, largest: int, seed: int) -> bytes:
    import mutate  # ruff: ignore[import-outside-top-level]  only where it is asked for

    rng = random.Random(seed)
    if rng.random() < _MESSAGES and mutate.is_message(data):
        made = mutate.of_message(rng, data, [data])
        if len(made) <= largest:
            return made
    return atheris.Mutate(data, largest)
