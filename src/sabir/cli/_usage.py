"""Exit codes, the same for every command, and how a command reports invalid usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sabir.cli._screen import plain

if TYPE_CHECKING:
    from typing import NoReturn

FAULTY, UNREADABLE = 1, 2
"""1: the model is at fault (an error was found, a run failed, results differ). 2: the command could not be
carried out (wrong usage, an unreadable file, a limit)."""


def refuse(message: str) -> NoReturn:
    """Leave the program with exit code 2 and a message on standard error."""
    write_error(f"error: {message}")
    raise typer.Exit(UNREADABLE)


def write_error(line: str) -> None:
    """Write a line to standard error."""
    typer.echo(plain(line), err=True)
