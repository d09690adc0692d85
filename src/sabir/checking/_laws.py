"""The binding sentences of the specification, each with the rules that enforce it or the reason for none."""

from __future__ import annotations

import functools
import tomllib
from importlib import resources
from typing import NamedTuple


class Law(NamedTuple):
    """One binding sentence; `rules` enforce it, or `reason` says why no rule can.

    >>> law = next(law for law in laws() if 'META001' in law.rules)
    >>> law.sentence
    'Named metadata values; keys should be distinct.'
    """

    sources: tuple[str, ...]
    sentence: str
    rules: tuple[str, ...] = ()
    reason: str = ""


@functools.cache
def laws() -> tuple[Law, ...]:
    """Return all laws in the order of the texts.

    >>> all(law.rules or law.reason for law in laws())
    True
    """
    document = tomllib.loads(resources.files("sabir.checking").joinpath("laws.toml").read_text("utf-8"))
    return tuple(
        Law(tuple(e["sources"]), e["sentence"], tuple(e.get("rules", ())), e.get("reason", ""))
        for e in document["law"]
    )
