"""Findings: what is wrong with a model, where, and what to do about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sabir.base._errors import quote

Severity = Literal["error", "warning"]


class Location(NamedTuple):
    """A path into a model, outermost step first: `graph/node[12] 'conv1'/attribute 'pads'`."""

    steps: tuple[str, ...] = ()

    def at(self, step: str, *, index: int | None = None, name: str = "") -> Location:
        """Return the location one step further in."""
        place = step if index is None else f"{step}[{index}]"
        return Location((*self.steps, f"{place} {quote(name)}" if name else place))

    def __str__(self) -> str:
        return "/".join(self.steps) or "model"


class Finding(NamedTuple):
    """One break of one rule."""

    rule: str
    message: str
    location: Location
    hint: str = ""
    severity: Severity = "error"

    def __str__(self) -> str:
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.location}: {self.severity} {self.rule}: {self.message}{hint}"
