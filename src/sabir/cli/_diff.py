"""`sabir diff`: what changed between two models, and whether the declared version is enough for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import SchemaError
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import STREAM, NewPath, OldPath, load_any
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, plain
from sabir.cli._usage import FAULTY, refuse
from sabir.comparison import compare, version_text

if TYPE_CHECKING:
    from sabir.base import Location
    from sabir.comparison import Comparison

EXAMPLES = (
    "sabir diff old.onnx new.onnx",
    "sabir diff old.onnx new.onnx --verbose",
    "cat new.onnx | sabir diff old.onnx - --json",
)
_MOST_SHOWN = 5  # changes of one kind
_COLOURS = {"major": "red", "minor": "yellow", "patch": "cyan", "none": "white"}


def diff(
    old: OldPath,
    new: NewPath,
    *,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Write one line for each change, even if there are many of a kind."),
    ] = False,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Show what changed between two models.

    Lists the changes, and says whether the version of NEW has the increment that they require.

    Inputs and outputs are compared by name, everything else by structure and contents: names of inner values
    and the order of nodes do not matter. The exit code is 0 if the model version of NEW has the increment
    that the changes require, 1 if it is too small, 2 if a model cannot be read.
    """
    if old == new == STREAM:
        refuse("only one of the two models can be standard input")
    try:
        registry = registry_of(operators, documents)
        comparison = compare(load_any(old), load_any(new), registry=registry)
    except SchemaError as error:  # without an order of its nodes a model cannot be compared
        refuse(str(error))
    if as_json:
        write_json({"old": str(old), "new": str(new), **_as_json(comparison)})
    else:
        _show(comparison, verbose=verbose)
    if not comparison.is_enough:
        raise typer.Exit(FAULTY)


def _show(comparison: Comparison, *, verbose: bool) -> None:
    screen = Screen()
    for line in comparison.report(most=None if verbose else _MOST_SHOWN):
        word, *rest = plain(line).split(" ", 1)
        screen.line(" ".join([screen.paint(word, fg=_COLOURS.get(word)), *rest]))


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "declared": {
            "old": version_text(comparison.declared.old),
            "new": version_text(comparison.declared.new),
        },
        "required": comparison.required,
        "enough": comparison.is_enough,
        "changes": [
            {
                "kind": change.kind,
                "bump": change.bump,
                "message": change.message,
                "reason": change.reason,
                "old": _text(change.old),
                "new": _text(change.new),
            }
            for change in comparison.changes
        ],
    }


def _text(location: Location | None) -> str | None:
    return None if location is None else str(location)
