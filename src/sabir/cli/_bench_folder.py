"""`sabir bench FOLDER`: every model of a folder, each in a process of its own, as one table and as a page."""

from __future__ import annotations

import json
import statistics
import subprocess  # ruff: ignore[suspicious-subprocess-import]  this Python, with arguments that are not a shell's
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import typer

from sabir.base import FileError, UnsupportedError, counted
from sabir.cli._json import as_finite, write_json
from sabir.cli._progress import counting_bar
from sabir.cli._screen import Screen, bytes_text, cut, plain
from sabir.cli._usage import FAULTY, UNREADABLE, refuse
from sabir.drawing import Number, heading, note, page, seconds_text, table
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FORMATS = (".html", ".md", ".json")
_MODELS = frozenset({".onnx", ".onnxtxt", ".textproto"})
_OF_ONE_MODEL = {"inputs": "--input", "shapes": "--shape"}
_OF_THIS_PROCESS = frozenset({"model", "output", "as_json"})
_GIGA = 1e9
_MOST_ERROR = 160  # characters


@dataclass(frozen=True)
class Row:
    """One model of the folder: the report of `sabir bench --json` in `found`, or an `error`."""

    name: str
    found: dict[str, Any]
    error: str = ""

    @property
    def is_faulty(self) -> bool:
        """Whether the model did not run, or the results of the programs differ."""
        return bool(self.error or self.found.get("differences"))

    @property
    def ratio(self) -> float | None:
        """The time of the other program divided by ours; None without another one."""
        return self.found.get("ratio")

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table but the name; an error has one cell."""
        if self.error:
            return (self.error,)
        first, *others = self.found["programs"]
        rate, of_peak = first["flops_per_second"], first["of_peak"]
        evaluated, memory = self.found["evaluated"], first["memory"]
        return (
            seconds_text(first["p50"]),
            seconds_text(first["p99"]),
            *(seconds_text(other["p50"]) for other in others),
            *([f"{self.ratio:.2f}"] if self.ratio is not None else []),
            "" if rate is None else f"{rate / _GIGA:.3g}",
            "" if of_peak is None else f"{of_peak:.0%}",
            "" if memory is None else bytes_text(memory),
            "" if evaluated is None else str(evaluated),
        )


def bench_folder(context: typer.Context, folder: Path, output: Path | None, *, as_json: bool) -> None:
    """Measure the models of a folder with the options of the command, and report them in one table.

    What an interrupt leaves undone is not in the table, which is written all the same. Raises FileError for
    a folder without models, UnsupportedError for an output of another format.
    """
    for parameter, option in _OF_ONE_MODEL.items():
        if context.params.get(parameter):
            refuse(f"{option} names an input of one model; for a folder use --dim")
    if output is not None and output.suffix.lower() not in FORMATS:
        raise UnsupportedError(f"{output}: the table is written as {', '.join(FORMATS)}")
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in _MODELS and p.is_file())
    if not paths:
        raise FileError(f"{folder}: there is no model in this folder ({', '.join(sorted(_MODELS))})")
    rows: list[Row] = []
    options = [*_options(context), "--json"]
    interrupted = False
    with counting_bar("measuring") as progress:
        try:
            for path in paths:
                progress(len(rows), len(paths))
                rows.append(_measured(path, options))
        except KeyboardInterrupt:
            interrupted = True
    if output is not None:
        replace_file(output, [_written(rows, folder, output.suffix.lower()).encode()])
    if as_json:
        write_json(_as_json(rows))
    else:
        _report(rows, paths, folder, output)
    if interrupted:
        raise KeyboardInterrupt
    if any(row.is_faulty for row in rows):
        raise typer.Exit(FAULTY)


def _options(context: typer.Context) -> Iterable[str]:
    """Yield the options of the command line, as a command for one model takes them."""
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if name in _OF_THIS_PROCESS or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        option = max(parameter.opts, key=len)
        if isinstance(value, bool):
            yield option if value else max(parameter.secondary_opts, key=len)
        else:
            for one in cast("list[object]", value) if isinstance(value, list) else [value]:
                yield from (option, str(one))


def _measured(path: Path, options: Sequence[str]) -> Row:
    """Return the row of a model, measured in a process of its own."""
    command = [sys.executable, "-m", "sabir.cli", "bench", str(path.absolute()), *options]
    done = subprocess.run(  # ruff: ignore[subprocess-without-shell-equals-true]  this Python
        command, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    if done.returncode in {0, FAULTY} and done.stdout.startswith("{"):
        return Row(path.name, json.loads(done.stdout))
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")] or [
        f"the process ended with {done.returncode}"
    ]
    if done.returncode == UNREADABLE and not done.stdout and "no such option" in lines[-1]:
        raise UnsupportedError(lines[-1].removeprefix("error: "))
    return Row(path.name, {}, cut(lines[-1].removeprefix("error: "), _MOST_ERROR))


def _head(rows: Sequence[Row]) -> tuple[str, ...]:
    measured = [row.found["programs"] for row in rows if not row.error]
    peers = [str(program["name"]) for program in measured[0][1:]] if measured else []
    return (
        "model",
        "p50",
        "p99",
        *peers,
        *(["ratio"] if peers else []),
        "GFLOP/s",
        "of peak",
        "memory",
        "evaluated",
    )


def _mean(rows: Sequence[Row]) -> str:
    ratios = [row.ratio for row in rows if row.ratio is not None]
    if not ratios:
        return ""
    mean = statistics.geometric_mean(ratios)
    return f"geometric mean of {counted(len(ratios), 'ratio')}: {mean:.2f}; the least: {min(ratios):.2f}"


def _report(rows: Sequence[Row], paths: Sequence[Path], folder: Path, output: Path | None) -> None:
    screen = Screen()
    done = "" if len(rows) == len(paths) else f"{len(rows)} of "
    screen.line(f"{screen.paint(plain(folder), bold=True)}: {done}{counted(len(paths), 'model')}")
    good = [(plain(row.name), *row.cells()) for row in rows if not row.error]
    if good:
        screen.table([_head(rows), *good], "cyan", *["right"] * (len(good[0]) - 1))
    screen.lines(f"   {plain(row.name)}: {plain(row.error)}" for row in rows if row.error)
    screen.lines(
        f"   {plain(row.name)}: the results differ: {plain(problem)}"
        for row in rows
        for problem in row.found.get("differences", ())
    )
    if mean := _mean(rows):
        screen.line(f"   {mean}")
    if output is not None:
        screen.line(f"saved {plain(output)}")


def _as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [{"model": row.name, **row.found, **({"error": row.error} if row.error else {})} for row in rows]


def _written(rows: Sequence[Row], folder: Path, suffix: str) -> str:
    match suffix:
        case ".json":
            return json.dumps(as_finite(_as_json(rows)), indent=2) + "\n"
        case ".md":
            return _markdown(rows, folder)
        case _:
            return _page(rows, folder)


def _markdown(rows: Sequence[Row], folder: Path) -> str:
    head = _head(rows)
    lines = [f"# {folder.absolute().name}", "", f"| {' | '.join(head)} |", f"|---|{'--:|' * (len(head) - 1)}"]
    for row in rows:
        cells = [cell.replace("|", "\\|") for cell in (plain(row.name), *row.cells())]
        lines.append(f"| {' | '.join([*cells, *[''] * (len(head) - len(cells))])} |")
    return "\n".join([*lines, "", _mean(rows), ""])


def _page(rows: Sequence[Row], folder: Path) -> str:
    """Return a page without scripts: the table, and below it what failed."""
    title = folder.absolute().name
    good = [(row.name, *map(Number, row.cells())) for row in rows if not row.error]
    failed = [(row.name, row.error) for row in rows if row.error]
    name, *others = _head(rows)
    return page(
        title,
        heading(f"{title}: {counted(len(rows), 'model')}"),
        table([name, *map(Number, others)], good, len(good)),
        table(["failed", "error"], failed, len(failed)),
        note(_mean(rows)) if _mean(rows) else "",
    )
