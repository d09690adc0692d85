"""The sentences of the specification that bind, each with the rules that hold it, or why none does."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import NamedTuple


class Law(NamedTuple):
    """One sentence that binds, in capitals or not; `rules` hold it, or `reason` says why none can."""

    sources: tuple[str, ...]
    sentence: str
    rules: tuple[str, ...] = ()
    reason: str = ""


@functools.cache
def laws() -> tuple[Law, ...]:
    """Return all of them, in the order of the texts."""
    held = tomllib.loads(resources.files("sabir.checking").joinpath("laws.toml").read_text("utf-8"))
    return tuple(
        Law(tuple(e["sources"]), e["sentence"], tuple(e.get("rules", ())), e.get("reason", ""))
        for e in held["law"]
    )
