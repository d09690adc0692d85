"""`sabir rule`: what a rule of the checker is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import suggest
from sabir.check import RULES, rule_page, severity_of
from sabir.cli._screen import Screen
from sabir.cli._usage import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.check import Rule

EXAMPLES = ("sabir rule", "sabir rule GRAPH004", "sabir rule NAME")


def rule(
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Ids of rules, or what several ids begin with, such as NODE."),
    ] = None,
) -> None:
    """Show a rule of `sabir check`, or list the rules.

    The page of a rule shows the sentence of the standard that it enforces, what it looks at, and examples.
    """
    screen, known = Screen(), {r.id: r for r in RULES}
    asked = ids or [""]
    for given in asked:
        if given not in known and not any(name.startswith(given) for name in known):
            refuse(f"there is no rule {given!r}{suggest(given, known)}")
    for given in asked:
        if given in known:
            screen.lines(rule_page(known[given]).splitlines())
        else:
            _list(screen, (r for name, r in known.items() if name.startswith(given)))


def _list(screen: Screen, rules: Iterable[Rule]) -> None:
    screen.table([(r.id, severity_of(r), r.explanation) for r in rules], "bold")
