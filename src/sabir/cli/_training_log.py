"""The course of a training as a table and as a picture."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from sabir.base import FeedError, FileError, UnsupportedError
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sabir.training import Epoch, TrainingSession

_VALIDATION = "validation_"
_DIGITS = 18  # of the number of an epoch


def columns(epochs: Sequence[Epoch]) -> dict[str, list[float]]:
    """Return the numbers of every epoch by name; those of the validation have a prefix."""
    rows = [{**e.results, **{f"{_VALIDATION}{n}": v for n, v in e.validation.items()}} for e in epochs]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, float("nan")) for row in rows] for name in names}


class TrainingLog:
    """The results of all epochs as comma-separated values, in a file that is replaced after each epoch."""

    def __init__(self, path: Path, session: TrainingSession, *, validates: bool) -> None:
        """Write the names of the columns, and the rows of the epochs that the session has made before.

        Raises FileError, and FeedError where the file of a training that goes on has other columns.
        """
        index = session.evaluating if validates else None
        results = session.scalars_of(session.updating)
        validation = [] if index is None else session.scalars_of([index])
        self._names = [*results, *(f"{_VALIDATION}{name}" for name in validation)]
        header, done = ["epoch", "steps", "seconds", *self._names], session.position[0]
        self._path = path
        self._rows = [header, *_rows_before(path, header, done)]
        self._write()

    def add(self, epoch: Epoch) -> None:
        """Add the row of an epoch; raises FileError."""
        numbers = {name: repr(values[0]) for name, values in columns([epoch]).items()}
        shown = [numbers.get(name, "nan") for name in self._names]
        self._rows.append([str(epoch.number), str(epoch.steps), f"{epoch.seconds:.3f}", *shown])
        self._write()

    def _write(self) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(self._rows)
        replace_file(self._path, [text.getvalue().encode()])


def _rows_before(path: Path, header: list[str], done: int) -> list[list[str]]:
    """Return the rows of a log for the first `done` epochs, none where there is no log."""
    if not done or not path.exists():
        return []
    try:
        text = path.read_text("utf-8")
        rows = list(csv.reader(text.splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise FileError(f"{path}: cannot be read as a log to go on with: {error}") from error
    if not rows or rows[0] != header:
        raise FeedError(
            f"{path}: the training goes on, and this log has other columns than {', '.join(header)}; "
            "choose another file"
        )
    return [
        row
        for row in rows[1:]
        if row and len(row[0]) <= _DIGITS and row[0].isdecimal() and int(row[0]) <= done
    ]


def plotting() -> Any:
    """Return the module that draws; raises UnsupportedError where it is not installed."""
    try:
        from matplotlib import figure  # ruff: ignore[import-outside-top-level]  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - an extra that one option needs
    except ImportError:
        message = "--plot draws with matplotlib; install it with `pip install 'sabir[plot]'`"
        raise UnsupportedError(message) from None
    return figure  # pyright: ignore[reportUnknownVariableType] - as above


def write_plot(path: Path, epochs: Sequence[Epoch]) -> None:
    """Draw the loss over the epochs into a PNG file; raises UnsupportedError, FileError."""
    picture = plotting().Figure(figsize=(8, 5), layout="constrained")
    axes = picture.subplots()
    for name, values in columns(epochs).items():
        if name.removeprefix(_VALIDATION) == "loss":
            axes.plot([e.number for e in epochs], values, label=name.replace("_", " "))
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    axes.legend()
    data = io.BytesIO()
    picture.savefig(data, format="png", dpi=150)
    replace_file(path, [data.getvalue()])


__all__ = ["TrainingLog", "plotting", "write_plot"]
