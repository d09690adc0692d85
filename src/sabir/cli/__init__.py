"""The program `sabir`: one module for each command, and what the commands share."""

from sabir.cli._app import app, main

__all__ = ["app", "main"]
