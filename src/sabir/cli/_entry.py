"""Where the program `sabir` begins: without the libraries of its extra it says what to install."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIBRARIES = ("typer", "click", "rich")  # those of the extra `cli`, and what typer itself needs of them
_NOT_INSTALLED = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default on the program's arguments; returns the exit code.

    Without the libraries of the extra `cli`, a line on standard error names the extra.
    """
    try:
        from sabir.cli import _app  # ruff: ignore[import-outside-top-level]  the libraries may be missing
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        message = f"error: the program `sabir` needs {error.name}; install it with `pip install 'sabir[cli]'`"
        print(message, file=sys.stderr)  # ruff: ignore[print]  this is where messages go
        return _NOT_INSTALLED
    return _app.main(arguments)
