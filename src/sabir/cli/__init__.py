"""The program `sabir`: one module for each command, and what the commands share.

It needs the extra `cli`; without it `main` says so.
"""

from typing import TYPE_CHECKING

from sabir.base import importing_later, listing_public
from sabir.cli._entry import main

if TYPE_CHECKING:
    from sabir.cli._app import app

_LATER = {"app": "_app"}

__getattr__ = importing_later(__name__, _LATER)
__dir__ = listing_public(__name__)

__all__ = ["app", "main"]
