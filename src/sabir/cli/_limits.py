"""`--limit NAME=VALUE`: what one command may spend on a model."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from sabir.base import Limits, start_budget, suggest

_NONE = "none"
_MOST_DIGITS = 30


def _limits(given: list[str]) -> Limits:
    """Read `elements=1e9` and the like; raises typer's BadParameter."""
    found: dict[str, int | float | None] = {}
    for one in given:
        name, _, value = one.partition("=")
        if name not in Limits._fields:
            known = f"; they are {', '.join(Limits._fields)}"
            raise typer.BadParameter(f"there is no limit {name!r}{suggest(name, Limits._fields) or known}")
        found[name] = _number(name, value)
    return Limits()._replace(**found)


def _number(name: str, value: str) -> int | float | None:
    if value.lower() == _NONE:
        return None
    if name != "seconds" and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS:
        return int(value)  # exactly, as an error proposes it
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise typer.BadParameter(f"{name}={value}: write a number such as 1e9, or {_NONE}")
    return number if name == "seconds" else int(number)


def _enter(context: typer.Context, given: list[str] | None) -> list[str] | None:
    """Put the limits in force for the rest of the command, which runs in a context of its own."""
    if given and not context.resilient_parsing:
        start_budget(_limits(given))
    return given


LimitOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        callback=_enter,
        help=f"Spend up to this: {', '.join(Limits._fields)}; {_NONE} for no bound. May be repeated.",
    ),
]
