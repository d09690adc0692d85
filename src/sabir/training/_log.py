"""The course of a training in a file: a row of each epoch, as comma-separated values or as lines of JSON."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sabir.base import FeedError, FileError
from sabir.files import replace_file
from sabir.training._stopping import VALIDATION

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from sabir.training._fitting import Epoch
    from sabir.training._session import TrainingSession

_DIGITS = 18  # of the number of an epoch


class TrainingLog:
    """A callback of `fit` that writes the results of all epochs to a file, replaced after each epoch.

    The file has lines of JSON where its name ends in .jsonl, else comma-separated values. A row has the
    number of the epoch, the steps so far, the seconds of the epoch, the means of the results, and those of
    the validation with the prefix validation_. A number that is not finite is null in JSON.

    >>> model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
    ... g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1.0, -1.0}> { y = MatMul (x, w) }''')
    >>> session = sabir.TrainingSession(prepare(model, 'mse', optimizer=SGD(0.5)))
    >>> data = {'x': np.ones((4, 2), np.float32), 'label': np.ones((4, 1), np.float32)}
    >>> import json, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / 'course.jsonl'
    >>> found = session.fit(data, callbacks=[TrainingLog(path, session)])
    >>> json.loads(path.read_text())['loss']
    1.0
    """

    def __init__(
        self, path: str | os.PathLike[str], session: TrainingSession, *, validates: bool = False
    ) -> None:
        """Write the rows of the epochs that the session has made before, if the file has them.

        `validates` says that the training has data for validation. Raises FileError, and FeedError where the
        file of a training that goes on has other columns.
        """
        index = session.evaluating if validates else None
        results = session.scalars_of(session.updating)
        validation = [] if index is None else session.scalars_of([index])
        self._results = [*results, *(f"{VALIDATION}{name}" for name in validation)]
        self._names = ["epoch", "steps", "seconds", *self._results]
        self._path = Path(path)
        self._is_json = self._path.suffix.lower() == ".jsonl"
        self._rows = self._rows_before(session.position[0])
        self._write()

    def __call__(self, epoch: Epoch) -> None:
        """Add the row of an epoch; raises FileError."""
        numbers = {**epoch.results, **{f"{VALIDATION}{n}": v for n, v in epoch.validation.items()}}
        shown = [repr(float(numbers.get(name, math.nan))) for name in self._results]
        self._rows.append([str(epoch.number), str(epoch.steps), f"{epoch.seconds:.3f}", *shown])
        self._write()

    def _write(self) -> None:
        text = _json_lines(self._names, self._rows) if self._is_json else _csv([self._names, *self._rows])
        replace_file(self._path, [text.encode()])

    def _rows_before(self, done: int) -> list[list[str]]:
        """Return the rows of a log for the first `done` epochs, none where there is no log."""
        if not done or not self._path.exists():
            return []
        try:
            text = self._path.read_text("utf-8")
            tables = _read_json_lines(text) if self._is_json else _read_csv(text)
        except (OSError, ValueError, TypeError, RecursionError, csv.Error) as error:
            raise FileError(f"{self._path}: cannot be read as a log to go on with: {error}") from error
        if any(names != self._names for names, _ in tables) or not (tables or self._is_json):
            raise FeedError(
                f"{self._path}: the training goes on, and this log has other columns than "
                f"{', '.join(self._names)}; choose another file"
            )
        return [row for _, row in tables if row and _is_up_to(row[0], done)]


def _is_up_to(text: str, done: int) -> bool:
    """Return whether a text is the number of one of the first `done` epochs."""
    return len(text) <= _DIGITS and text.isdecimal() and int(text) <= done


def _csv(rows: Sequence[Sequence[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _read_csv(text: str) -> list[tuple[list[str], list[str]]]:
    """Return the names of the columns with each row; the first row is that of the names, and empty."""
    rows = list(csv.reader(text.splitlines()))
    return [(rows[0], []), *((rows[0], row) for row in rows[1:])] if rows else []


def _json_lines(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return an object for each row, whose numbers are the texts of the row."""
    objects = [
        ", ".join(
            f"{json.dumps(name)}: {text if math.isfinite(float(text)) else 'null'}"
            for name, text in zip(names, row, strict=True)
        )
        for row in rows
    ]
    return "".join(f"{{{line}}}\n" for line in objects)


def _read_json_lines(text: str) -> list[tuple[list[str], list[str]]]:
    """Return names and numbers, as texts, of the object in each line; raises ValueError, TypeError."""
    found: list[tuple[list[str], list[str]]] = []
    for line in text.splitlines():
        item: Any = json.loads(line, parse_float=str, parse_int=str)
        if not isinstance(item, dict):
            raise TypeError("a line is no object of JSON")
        row = cast("dict[str, Any]", item)
        found.append((list(row), [_number_text(value) for value in row.values()]))
    return found


def _number_text(value: Any) -> str:
    """Return the text of a number that JSON has, nan for null; raises ValueError."""
    text = "nan" if value is None else str(value)
    float(text)
    return text


__all__ = ["TrainingLog"]
