"""Findings as text, as JSON, and as workflow commands of GitHub."""

from __future__ import annotations

import json
from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from sabir.base import counted
from sabir.checking import RULES
from sabir.cli._models import shown
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import write_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from sabir.base import Finding
    from sabir.repairing import Repair

_COLOURS = {"error": "red", "warning": "yellow"}
_MOST_SHOWN = 10  # repairs listed for one rule; a model may have ten thousand odd names
_MOST_PLACES = 3  # findings listed for one rule; of more, only the first


class Format(StrEnum):
    """The formats of a report."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class Report(Protocol):
    """Receives the findings of each model in turn."""

    def model(self, path: Path, found: Sequence[Finding], more: int) -> None:
        """Report the findings of a model; `--strict` would report `more` in addition."""
        ...

    def unreadable(self, path: Path, message: str) -> None:
        """Report why a file cannot be checked."""
        ...

    def repairs(self, path: Path, done: Sequence[Repair], saved: Path) -> None:
        """Report the repairs of a model, and where it was saved."""
        ...

    def end(self) -> None:
        """Write what can only be written after the last model."""
        ...


def report_as(kind: Format, *, verbose: bool = False, error: bool = False) -> Report:
    """Return the report for a format; only the text format merges findings of one rule.

    It writes to standard output; with `error` a text goes to standard error.
    """
    if kind is Format.TEXT:
        return TextReport(verbose=verbose, error=error)
    return JsonReport() if kind is Format.JSON else GithubReport()


class TextReport:
    """One line for each finding, or for each rule with many; then the sentences of the violated rules.

    With `verbose` every finding has a line.
    """

    def __init__(self, *, verbose: bool = False, error: bool = False) -> None:
        self._screen, self._verbose = Screen(error=error), verbose
        self._rules = {r.id: r for r in RULES}

    def model(self, path: Path, found: Sequence[Finding], more: int) -> None:
        """Write the findings, the sentences and the counts."""
        screen, where = self._screen, shown(path)
        screen.lines(f"{where}: {line}" for line in finding_lines(found, screen, verbose=self._verbose))
        violated = [self._rules[name] for name in dict.fromkeys(f.rule for f in found)]
        if violated:
            screen.table([(r.id, f"{r.law} ({r.source})") for r in violated], "bold")
        counts = Counter(f.severity for f in found)
        summary = " and ".join(counted(count, severity) for severity, count in sorted(counts.items()))
        hidden = f" ({more:,} more with --strict)" if more else ""
        screen.line(f"{summary or 'no problems'} found in {where}{hidden}")

    def unreadable(self, path: Path, message: str) -> None:
        """Write the message; further lines show the place in a text."""
        first, *rest = message.split("\n")
        self._screen.line(f"{shown(path)}: {self._screen.paint('error', fg='red')}: {plain(first)}")
        self._screen.lines(map(plain, rest))

    def repairs(self, path: Path, done: Sequence[Repair], saved: Path) -> None:
        """Write the repairs; those that change the model's interface are all listed."""
        write_repairs(path, done, saved, self._screen.line)

    def end(self) -> None:
        """Do nothing: everything is written."""


def finding_lines(found: Sequence[Finding], screen: Screen, *, verbose: bool) -> Iterator[str]:
    """Yield a line for each finding; without `verbose` one line for a rule with many findings."""
    counts = Counter(f.rule for f in found)
    merged = set[str]()
    for f in found:
        others = counts[f.rule] - 1
        if verbose or others < _MOST_PLACES:
            yield _line(f, screen)
        elif f.rule not in merged:
            merged.add(f.rule)
            yield f"{_line(f, screen)}; {others:,} more of {f.rule}, which --verbose lists"


def findings_json(found: Iterable[Finding]) -> list[dict[str, str]]:
    """Return findings for the report of a command that changes a model."""
    return [
        {"rule": f.rule, "severity": f.severity, "message": f.message, "location": str(f.location)}
        for f in found
    ]


def _line(finding: Finding, screen: Screen) -> str:
    severity = screen.paint(finding.severity, fg=_COLOURS[finding.severity])
    hint = f" ({plain(finding.hint)})" if finding.hint else ""
    return f"{plain(finding.location)}: {severity} {finding.rule}: {plain(finding.message)}{hint}"


class JsonReport:
    """One array of findings for all models; messages about files and repairs go to standard error."""

    def __init__(self) -> None:
        self._rules = {r.id: r for r in RULES}
        self._found: list[dict[str, Any]] = []

    def model(self, path: Path, found: Sequence[Finding], more: int) -> None:  # ruff: ignore[unused-method-argument]  for the text format alone
        """Collect the findings."""
        for f in found:
            rule = self._rules[f.rule]
            steps = [{"kind": s.kind, "index": s.place, "name": s.name} for s in f.location.steps]
            self._found.append({
                "path": str(path), "rule": f.rule, "severity": f.severity, "message": f.message,
                "hint": f.hint, "law": rule.law, "source": rule.source, "location": str(f.location),
                "steps": steps,
            })  # fmt: skip

    def unreadable(self, path: Path, message: str) -> None:
        """Write the message to standard error."""
        write_error(f"{path}: error: {message}")

    def repairs(self, path: Path, done: Sequence[Repair], saved: Path) -> None:
        """Write the repairs to standard error."""
        write_repairs(path, done, saved, write_error)

    def end(self) -> None:
        """Write the array."""
        Screen().line(json.dumps(self._found, indent=2))


class GithubReport:
    """Workflow commands, which GitHub shows in a pull request."""

    def __init__(self) -> None:
        self._screen = Screen()

    def model(self, path: Path, found: Sequence[Finding], more: int) -> None:  # ruff: ignore[unused-method-argument]  for the text format alone
        """Write a command for each finding."""
        for f in found:
            hint = f" ({f.hint})" if f.hint else ""
            self._command(f.severity, path, f.rule, f"{f.location}: {f.message}{hint}")

    def unreadable(self, path: Path, message: str) -> None:
        """Write a command for the file."""
        self._command("error", path, "unreadable", message)

    def repairs(self, path: Path, done: Sequence[Repair], saved: Path) -> None:
        """Write the repairs to standard error."""
        write_repairs(path, done, saved, write_error)

    def end(self) -> None:
        """Do nothing: all is written."""

    def _command(self, severity: str, path: Path, title: str, message: str) -> None:
        properties = f"file={_property(str(path))},title={_property(title)}"
        self._screen.line(f"::{severity} {properties}::{_data(message)}")


def write_repairs(path: Path, done: Sequence[Repair], saved: Path, write: Callable[[str], None]) -> None:
    """Write one line for each repair, at most ten of one rule unless they change the interface."""
    where, listed = shown(path), Counter[str]()
    for repair in done:
        listed[repair.rule] += not repair.interface
        if repair.interface or listed[repair.rule] <= _MOST_SHOWN:
            write(f"{where}: {plain(repair.location)}: repaired {repair.rule}: {plain(repair.message)}")
    for rule, count in sorted(listed.items()):
        if count > _MOST_SHOWN:
            write(f"{where}: and {counted(count - _MOST_SHOWN, 'more repair')} of {rule}")
    changed = sum(r.interface for r in done)
    if changed:
        names = f"{counted(changed, 'name')} of inputs and outputs changed"
        write(f"{where}: {names}: callers of the model must use the new names")
    write(f"{counted(len(done), 'repair')} made in {where}, saved as {plain(saved)}")


def _data(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return plain(escaped)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
