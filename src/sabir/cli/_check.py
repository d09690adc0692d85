"""`sabir check`: what is wrong with models."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import typer

from sabir.base import SabirError
from sabir.check import findings
from sabir.cli._models import ModelPaths, load_any
from sabir.cli._screen import Screen, counted, plain

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.base import Finding

EXAMPLES = ("sabir check model.onnx", "sabir check models/*.onnx")
_COLOURS = {"error": "red", "warning": "yellow"}


def check(
    models: ModelPaths,
) -> None:
    """Tell what is wrong with models.

    Checks what a runtime must know: names, operators and how they are called, types and shapes. Each
    finding is one line: where, the rule, what is wrong, what to do. The exit code is 1 where there are
    errors.
    """
    screen = Screen()
    sound = [_is_sound(screen, path) for path in models]
    if not all(sound):
        raise typer.Exit(1)


def _is_sound(screen: Screen, path: Path) -> bool:
    """Tell what is wrong with one model; return whether a runtime may take it."""
    where, counts = plain(path), Counter[str]()
    try:
        for finding in findings(load_any(path)):
            counts[finding.severity] += 1
            screen.line(f"{where}: {_line(screen, finding)}")
    except SabirError as error:  # the other models are still worth a look
        message = str(error).removeprefix(f"{path}: ")
        screen.line(f"{where}: {screen.paint('error', fg='red')}: {plain(message)}")
        return False
    told = " and ".join(counted(count, severity) for severity, count in sorted(counts.items()))
    screen.line(f"{told or 'no problems'} found in {where}")
    return not counts["error"]


def _line(screen: Screen, finding: Finding) -> str:
    severity = screen.paint(finding.severity, fg=_COLOURS[finding.severity])
    hint = f" ({plain(finding.hint)})" if finding.hint else ""
    return f"{plain(finding.location)}: {severity} {finding.rule}: {plain(finding.message)}{hint}"
