"""The command line: `sabir show`, `run`, `check`, `infer`, `text` and `demo`."""

from sabir.cli._app import app, main

__all__ = ["app", "main"]
