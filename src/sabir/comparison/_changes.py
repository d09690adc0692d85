"""One change between two models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sabir.base import Location, legible
from sabir.comparison._policy import POLICY

if TYPE_CHECKING:
    from sabir.comparison._policy import Bump


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between an old and a new model.

    `kind` is a key of POLICY, which has the increment of the version that the kind requires and the reason.
    `old` and `new` are the locations of the object in the two models, None where it is only in the other.

    >>> change = Change('output-added', "the output 'z' is new", None, sabir.base.Location().at('graph'))
    >>> print(change.bump, change)
    minor graph: the output 'z' is new
    """

    kind: str
    message: str
    old: Location | None
    new: Location | None

    @property
    def bump(self) -> Bump | None:
        """The part of the version that must increase, or None."""
        return POLICY[self.kind].bump

    @property
    def reason(self) -> str:
        """Why this kind of change requires it."""
        return POLICY[self.kind].reason

    @property
    def location(self) -> Location:
        """The location in the new model, or in the old one of what is gone."""
        return self.new or self.old or Location()

    def __str__(self) -> str:
        return legible(f"{self.location}: {self.message}")
