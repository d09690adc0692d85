"""The course of a training as curves: in the terminal, and on a page with its settings."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, cast

from sabir.drawing import Number, chart_text, heading, line_chart, note, page, seconds_text, table
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from pathlib import Path

    from sabir.cli._screen import Screen
    from sabir.training import Epoch

_VALIDATION = "validation "
_MOST_EPOCHS = 10_000  # rows of the table
_FEWEST = 2  # epochs that make a curve
_MOST_COLUMNS = 80


def _curves(epochs: Sequence[Epoch], result: str | None = None) -> dict[str, list[float]]:
    """Return the numbers of every epoch by name, NaN where an epoch has none; of one result, or of all.

    Those of the validation have a prefix.
    """
    rows = [{**e.results, **{f"{_VALIDATION}{n}": v for n, v in e.validation.items()}} for e in epochs]
    names = dict.fromkeys(name for row in rows for name in row)
    return {
        name: [row.get(name, math.nan) for row in rows]
        for name in names
        if result is None or name.removeprefix(_VALIDATION) == result
    }


def loss_curves(epochs: Sequence[Epoch]) -> dict[str, list[float]]:
    """Return the curves of the loss: the result of that name, or else the first, as for early stopping."""
    results = epochs[-1].results if epochs else {}
    return _curves(epochs, "loss" if "loss" in results else next(iter(results), "loss"))


def show_loss(screen: Screen, epochs: Sequence[Epoch]) -> None:
    """Draw the loss over the epochs, if there is a terminal and a curve to draw."""
    if not screen.is_terminal or len(epochs) < _FEWEST:
        return
    lines = chart_text(_numbers(epochs), loss_curves(epochs), min(_MOST_COLUMNS, screen.width))
    if screen.can_show("".join(lines)):
        screen.lines(lines)


@contextlib.contextmanager
def reporting(
    path: Path | None, title: str, settings: Mapping[str, object], epochs: Sequence[Epoch]
) -> Generator[None]:
    """Write a page about the epochs of the block when it ends, and about those before a failure."""
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if path is not None and (is_done or epochs):
            replace_file(path, [_page(title, settings, epochs).encode()])


def _page(title: str, settings: Mapping[str, object], epochs: Sequence[Epoch]) -> str:
    """Return a page with the curves of each result, a row for each epoch, and the settings."""
    results = dict.fromkeys(name for epoch in epochs for name in (*epoch.results, *epoch.validation))
    charts = [line_chart(name, _numbers(epochs), _curves(epochs, name)) for name in results]
    curves = _curves(epochs)
    rows = zip(*_columns(epochs), *([f"{n:.6g}" for n in curve] for curve in curves.values()), strict=True)
    given = [(name, _shown(value)) for name, value in settings.items() if value not in (None, [], False)]
    columns = tuple(map(Number, ("epoch", "steps", "time", *curves)))
    return page(
        title,
        heading(title),
        *charts,
        heading("Epochs"),
        table(columns, (tuple(map(Number, row)) for row in rows), _MOST_EPOCHS) or note("none"),
        heading("Settings"),
        table((), given),
    )


def _columns(epochs: Sequence[Epoch]) -> tuple[list[str], ...]:
    """Return the numbers, the steps and the times of epochs as texts."""
    numbers = [str(epoch.number) for epoch in epochs]
    return (
        numbers,
        [f"{epoch.steps:,}" for epoch in epochs],
        [seconds_text(epoch.seconds) for epoch in epochs],
    )


def _shown(value: object) -> str:
    return ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)


def _numbers(epochs: Sequence[Epoch]) -> list[float]:
    return [float(epoch.number) for epoch in epochs]


__all__ = ["loss_curves", "reporting", "show_loss"]
