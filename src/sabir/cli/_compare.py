"""Results of a run compared with those of a test data set: `input_0.pb` …, `output_0.pb` … in a folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.base import FeedError, FileError
from sabir.cli._files import read_message
from sabir.cli._screen import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sabir.evaluation import ModelPort

_FILE = re.compile(r"(input|output)_(\d+)\.pb")
_SET = re.compile(r"test_data_set_(\d+)")


class DataSet(NamedTuple):
    """One data set: its folder, the feeds by input name, and the expected results by output name."""

    path: Path
    feeds: dict[str, Any]
    expected: dict[str, Any]


class Comparison(NamedTuple):
    """How one result differs from the expected one; `problem` is "" where it is within the tolerances."""

    name: str
    largest: float  # absolute difference; NaN where there is no number to compare
    relative: float
    problem: str = ""


def data_sets(folder: Path, inputs: Sequence[ModelPort], outputs: Sequence[ModelPort]) -> Iterator[DataSet]:
    """Yield the data set in a folder, or each `test_data_set_N` in it, by number.

    Raises FileError where there is none, FeedError for a file that does not fit the model's ports.
    """
    folders = [folder]
    if folder.is_dir() and not any(_FILE.fullmatch(p.name) for p in folder.iterdir()):
        numbered = [(m, p) for p in folder.iterdir() if (m := _SET.fullmatch(p.name))]
        folders = [p for _, p in sorted(numbered, key=lambda pair: int(pair[0][1]))]
    if not folders or not folders[0].is_dir():
        raise FileError(f"{folder}: there is no test data here: no input_0.pb, no folder test_data_set_0")
    for one in folders:
        yield DataSet(one, _values(one, "input", inputs), _values(one, "output", outputs))


def _values(folder: Path, kind: str, ports: Sequence[ModelPort]) -> dict[str, Any]:
    """Return the values in the numbered files of a folder, by the names of the ports of these numbers."""
    numbered = {int(m[2]): p for p in folder.iterdir() if (m := _FILE.fullmatch(p.name)) and m[1] == kind}
    found: dict[str, Any] = {}
    for number, path in sorted(numbered.items()):
        if number >= len(ports):
            raise FeedError(f"{path}: the model has only {len(ports)} {kind}s")
        found[ports[number].name] = read_message(path, ports[number].type)
    return found


def compare(name: str, value: Any, expected: Any, rtol: float, atol: float) -> Comparison:
    """Compare a result with the expected one, sequences and maps item by item; NaN equals NaN."""
    match expected:
        case None:
            return Comparison(name, 0, 0, "" if value is None else "there is a value, and none is expected")
        case list():
            return _of_items(name, value, dict(enumerate(cast("list[Any]", expected))), rtol, atol)
        case dict():
            return _of_items(name, value, cast("dict[Any, Any]", expected), rtol, atol)
        case _:
            return _of_arrays(name, value, np.asarray(expected), rtol, atol)


def _of_items(name: str, value: Any, expected: dict[Any, Any], rtol: float, atol: float) -> Comparison:
    items = dict(enumerate(cast("list[Any]", value))) if isinstance(value, list) else value
    if not isinstance(items, dict) or items.keys() != expected.keys():
        return Comparison(name, np.nan, np.nan, "the keys or the number of items differ")
    got = cast("dict[Any, Any]", items)
    parts = [compare(f"{name}[{key!r}]", got[key], item, rtol, atol) for key, item in expected.items()]
    problem = next((f"{p.name}: {p.problem}" for p in parts if p.problem), "")
    return Comparison(
        name, max((p.largest for p in parts), default=0), max((p.relative for p in parts), default=0), problem
    )


def _of_arrays(name: str, value: Any, expected: Any, rtol: float, atol: float) -> Comparison:
    array = np.asarray(value)
    if value is None or array.dtype != expected.dtype or array.shape != expected.shape:
        shown = "nothing" if value is None else f"{array.dtype}{list(array.shape)}"
        problem = f"{shown}, expected {expected.dtype}{list(expected.shape)}"
        return Comparison(name, np.nan, np.nan, problem)
    if expected.dtype.kind in "OUSb":
        wrong = int(np.count_nonzero(array != expected))
        different = float(wrong > 0)
        return Comparison(name, different, different, f"{wrong:,} elements differ" if wrong else "")
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    got, wanted = array.astype(wide), expected.astype(wide)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        difference = np.where(_alike(got, wanted), 0, np.abs(got - wanted))
        allowed = atol + rtol * np.abs(wanted)
        wrong = int(np.count_nonzero(~(difference <= allowed)))
        relative = np.where(difference == 0, 0, difference / np.abs(wanted))
    problem = f"{wrong:,} of {array.size:,} elements differ by more than the tolerance" if wrong else ""
    return Comparison(name, _largest(difference), _largest(relative), problem)


def _alike(one: Any, other: Any) -> Any:
    """Return where two arrays are equal, infinities and NaN included."""
    return (one == other) | (np.isnan(one) & np.isnan(other))


def _largest(numbers: Any) -> float:
    return float(np.max(numbers)) if numbers.size else 0.0


def listed(comparisons: Sequence[Comparison]) -> list[tuple[str, ...]]:
    """Return the cells of a table of comparisons."""
    rows = [
        (plain(c.name), f"{c.largest:.3g}", f"{c.relative:.3g}", plain(c.problem or "equal"))
        for c in comparisons
    ]
    return [("output", "largest difference", "relative", ""), *rows]
