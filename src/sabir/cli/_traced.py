"""`sabir run --trace`: all values of one run, as a table, JSON, or files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from sabir.base import SabirError, counted
from sabir.cli._json import write_json
from sabir.cli._results import ValueFolder
from sabir.cli._screen import Screen, cut, plain
from sabir.cli._usage import FAULTY
from sabir.debugging import trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from sabir.cli._feeds import Feeds
    from sabir.debugging import FirstNan, TracedValue
    from sabir.ir import Model

_LONGEST = 60
_COLUMNS = ("value", "type", "minimum", "maximum", "mean", "NaN", "infinite", "node")


def run_traced(
    model: Model, feeds: Feeds, *, dump: Path | None, as_json: bool, options: Mapping[str, Any]
) -> None:
    """Run a model, and report every value; leaves the program with exit code 1 if a NaN stopped the run.

    `options` are those of `trace`. If the run fails, the values before that are reported first.
    """
    seen: list[TracedValue] = []
    folder = None if dump is None else ValueFolder(dump)

    def observe(value: TracedValue, array: Any) -> None:
        seen.append(value)
        if folder is not None:
            folder.save(value.name, array)

    nan: FirstNan | None = None
    values = {name: feed.value for name, feed in feeds.values.items()}
    try:
        nan = trace(model, values, observe=observe, **options).nan
    except SabirError:
        if not as_json:
            _show(seen, feeds)
        raise
    if as_json:
        write_json(_as_json(seen, nan, feeds))
    else:
        _show(seen, feeds)
        _show_end(seen, nan, dump)
    if nan is not None:
        raise typer.Exit(FAULTY)


def _show(values: Sequence[TracedValue], feeds: Feeds) -> None:
    screen = Screen()
    screen.lines(screen.paint(f"   note: {plain(note)}", dim=True) for note in feeds.assumed)
    screen.table([_COLUMNS, *map(_row, values)], "cyan", "", *["right"] * 5, "dim")


def _show_end(values: Sequence[TracedValue], nan: FirstNan | None, dump: Path | None) -> None:
    screen = Screen()
    if dump is not None:
        screen.line(f"saved {counted(len(values), 'value')} in {plain(dump)}")
    if nan is None:
        return
    maker = f"{nan.value.node} computed" if nan.value.node else "The run was given"
    screen.line(f"{plain(maker)} the first NaN: {plain(nan.value)}")
    screen.lines(f"   operand {plain(operand)}" for operand in nan.operands)


def _row(value: TracedValue) -> tuple[str, ...]:
    found = value.statistics
    numbers = ("", "", "") if found is None else tuple(map(_number, found[:3]))
    counts = (f"{count:,}" if count else "" for count in (value.nans, value.infinities))
    return (cut(value.name, _LONGEST), plain(value.type), *numbers, *counts, cut(value.node, _LONGEST))


def _number(number: float | None) -> str:
    return "" if number is None else f"{number:.4g}"


def _as_json(values: Sequence[TracedValue], nan: FirstNan | None, feeds: Feeds) -> dict[str, Any]:
    return {
        "assumed": list(feeds.assumed),
        "values": list(map(_value_as_json, values)),
        "nan": nan
        and {"value": _value_as_json(nan.value), "operands": list(map(_value_as_json, nan.operands))},
    }


def _value_as_json(value: TracedValue) -> dict[str, Any]:
    found = value.statistics
    data: dict[str, Any] = {"name": value.name, "node": value.node, "type": value.type}
    if found is None:
        return data
    return data | {
        "min": found.minimum,
        "max": found.maximum,
        "mean": found.mean,
        "nans": value.nans,
        "infinities": value.infinities,
    }
