"""`--json`: the report of a command as one JSON value on standard output."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any, TypeAlias, cast

import typer

JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Write the report as JSON.")]


def write_json(data: Any) -> None:
    """Write a value to standard output; numbers that JSON lacks become the strings `NaN` and `Infinity`."""
    typer.echo(json.dumps(as_finite(data), indent=2, allow_nan=False))


def as_finite(data: Any) -> Any:
    """Return a value for JSON: numbers that it lacks become the strings `NaN` and `Infinity`."""
    match data:
        case float() if not math.isfinite(data):
            return "NaN" if math.isnan(data) else f"{'-' if data < 0 else ''}Infinity"
        case dict():
            return {key: as_finite(value) for key, value in cast("dict[str, Any]", data).items()}
        case list() | tuple():
            return [as_finite(value) for value in cast("list[Any]", data)]
        case _:
            return data
