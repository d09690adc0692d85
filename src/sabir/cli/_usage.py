"""Exit codes of the commands that judge: whether a model is at fault, or what was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sabir.cli._screen import plain

if TYPE_CHECKING:
    from typing import NoReturn

FAULTY, UNREADABLE = 1, 2


def refuse(message: str) -> NoReturn:
    """Leave the program with a message on standard error, for what cannot be done as it was asked."""
    tell(f"error: {message}")
    raise typer.Exit(UNREADABLE)


def tell(line: str) -> None:
    """Write a line to standard error."""
    typer.echo(plain(line), err=True)
