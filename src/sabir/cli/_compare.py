"""Results of a run compared with those of a test data set: `input_0.pb` …, `output_0.pb` … in a folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.base import FeedError, FileError
from sabir.cli._files import read_message
from sabir.cli._screen import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from sabir.debugging import Difference
    from sabir.evaluation import ModelPort

_FILE = re.compile(r"(input|output)_(\d+)\.pb")
_SET = re.compile(r"test_data_set_(\d+)")


class DataSet(NamedTuple):
    """One data set: its folder, the feeds by input name, and the expected results by output name."""

    path: Path
    feeds: dict[str, Any]
    expected: dict[str, Any]


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


def listed(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    """Return the cells of a table of differences."""
    rows = [
        (plain(c.name), f"{c.largest:.3g}", f"{c.relative:.3g}", plain(c.problem or "equal"))
        for c in differences
    ]
    return [("output", "largest difference", "relative", ""), *rows]
