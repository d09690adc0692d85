"""`--limit NAME=VALUE` and `--untrusted`: the limits of one command."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from sabir.base import Limits, limits_in_force, start_budget, suggest

_NONE = "none"
_MOST_DIGITS = 30


def _limits(options: list[str]) -> Limits:
    """Read `elements=1e9` and the like; raises typer's BadParameter."""
    found: dict[str, int | float | None] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in Limits._fields:
            known = f"; the limits are {', '.join(Limits._fields)}"
            raise typer.BadParameter(f"there is no limit {name!r}{suggest(name, Limits._fields) or known}")
        found[name] = _number(name, value)
    return limits_in_force()._replace(**found)


def _number(name: str, value: str) -> int | float | None:
    if value.lower() == _NONE:
        return None
    if name != "seconds" and value.isascii() and value.isdigit() and len(value) <= _MOST_DIGITS:
        return int(value)  # exact, as in the advice of a LimitError
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise typer.BadParameter(f"{name}={value}: write a number such as 1e9, or {_NONE}")
    return number if name == "seconds" else int(number)


def _enter(context: typer.Context, options: list[str] | None) -> list[str] | None:
    """Put the limits in force for the rest of the command, which runs in a separate context."""
    if options and not context.resilient_parsing:
        start_budget(_limits(options))
    return options


def _distrust(context: typer.Context, untrusted: bool) -> bool:  # ruff: ignore[boolean-type-hint-positional-argument]  typer passes it
    """Put the limits for untrusted files in force, before each `--limit` changes one of them."""
    if untrusted and not context.resilient_parsing:
        start_budget(Limits.untrusted())
    return untrusted


UntrustedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--untrusted",
        is_eager=True,
        callback=_distrust,
        help="Use the strict limits for files of unknown origin; --limit changes one of them.",
    ),
]
LimitOption: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        callback=_enter,
        help=f"Set a limit: {', '.join(Limits._fields)}. The value {_NONE} removes it. May be repeated.",
    ),
]
