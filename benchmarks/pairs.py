"""Two source trees in turn: a process for each, which answers how long so many runs of its work take."""

from __future__ import annotations

import json
import os
import subprocess  # ruff: ignore[suspicious-subprocess-import]  each tree needs an interpreter of its own
import sys
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class RunFailed(SystemExit):
    """A script ended without an answer; its message is on standard error."""


class Side:
    """A script by one source tree. Its first answer, in seconds, is `first`; then it answers each line."""

    def __init__(self, tree: Path, cache: str, script: Sequence[str]) -> None:
        environment = os.environ | {"PYTHONPATH": str(tree), "SABIR_CACHE": cache}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
        self._process = subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  this Python
            [sys.executable, *script],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.first = self._answer()

    def block(self, runs: int) -> float:
        """Return the seconds that the script answers for so many runs."""
        _open(self._process.stdin).write(f"{runs}\n")
        _open(self._process.stdin).flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> float:
        line = _open(self._process.stdout).readline()
        if not line:
            raise RunFailed("a run failed: its message is above")
        return json.loads(line)


def _open(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise TypeError("the process has pipes")
    return stream
