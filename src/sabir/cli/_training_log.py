"""The course of a training as a table and as a picture."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sabir.training import Epoch

_VALIDATION = "validation_"


def columns(epochs: Sequence[Epoch]) -> dict[str, list[float]]:
    """Return the numbers of every epoch by name; those of the validation have a prefix."""
    rows = [{**e.results, **{f"{_VALIDATION}{n}": v for n, v in e.validation.items()}} for e in epochs]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name, float("nan")) for row in rows] for name in names}


def write_log(path: Path, epochs: Sequence[Epoch]) -> None:
    """Write a line of comma-separated values for each epoch; raises FileError."""
    text, found = io.StringIO(newline=""), columns(epochs)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["epoch", "steps", "seconds", *found])
    for index, epoch in enumerate(epochs):
        numbers = [repr(values[index]) for values in found.values()]
        writer.writerow([epoch.number, epoch.steps, f"{epoch.seconds:.3f}", *numbers])
    replace_file(path, [text.getvalue().encode()])


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


__all__ = ["plotting", "write_log", "write_plot"]
