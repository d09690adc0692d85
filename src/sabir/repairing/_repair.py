"""One repair as it is reported, and the task that every repairing function receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.checking import Survey


class Repair(NamedTuple):
    """One change of a model: the rule that was violated, what was changed, and where.

    `location` uses the names from before the repairs. `interface` is true if an input or output of the model
    has a new name, which callers of the model must use from now on.

    >>> from sabir.base import Location
    >>> print(Repair('GRAPH006', 'sorted the nodes', Location().at('graph')))
    graph: GRAPH006: sorted the nodes
    """

    rule: str
    message: str
    location: Location
    interface: bool = False

    def __str__(self) -> str:
        return f"{self.location}: {self.rule}: {self.message}"


class Task(NamedTuple):
    """The survey of a model, and the ids of the rules whose violations are to be repaired.

    `unsafe` are those of the `selected` rules for which unsafe repairs are allowed.
    """

    survey: Survey
    selected: frozenset[str]
    unsafe: frozenset[str] = frozenset()
