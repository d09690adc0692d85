"""`sabir set-dims`: fix, rename and free the dimensions of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sabir.base import FeedError, counted, quote
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    report_screen,
    save_any,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import plain
from sabir.cli._usage import FAULTY
from sabir.inference import change_model_dims

if TYPE_CHECKING:
    from sabir.cli._screen import Screen
    from sabir.inference import ChangedDims
    from sabir.ir import Model

EXAMPLES = (
    "sabir set-dims model.onnx batch=4 -o fixed.onnx",
    "sabir set-dims model.onnx batch=4 seq=tokens -o fixed.onnx",
    "sabir set-dims model.onnx 'image[0]=batch' --repair -o dynamic.onnx",
)
_UNKNOWN = "?"
_MOST_MENDED = 10  # constants listed


def set_dims(
    model: ModelPath,
    dims: Annotated[
        list[str],
        typer.Argument(
            metavar="DIM=SIZE...",
            help="A dimension variable, or INPUT[AXIS] for an axis that is a number or unknown; the size is "
            "a number, the name of a variable, an expression such as 2*N, or ? for unknown.",
        ),
    ],
    *,
    output: RequiredOutputPath,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair",
            help="Replace constants that contain the old size of an input's axis, such as the target of a "
            "Reshape, by ones that follow the new size.",
        ),
    ] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Fix, rename or free dimensions, in every type of a model.

    The types of computed values follow. A size in a constant, such as the target of a Reshape, stays unless
    --repair is passed: each place that contradicts the new dimensions is reported, and the exit code is 1.
    The model is written all the same.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded, screen = load_any(model), report_screen(output)
    changed = change_model_dims(
        loaded, dict(map(_pair, dims)), repair=repair, registry=registry_of(operators, documents)
    )
    save_any(changed.model, output)
    if as_json:
        write_json(_as_json(changed))
    else:
        _show(screen, loaded, changed)
        report_saved(screen, output)
    if changed.problems:
        raise typer.Exit(FAULTY)


def _pair(word: str) -> tuple[str, int | str | None]:
    name, is_pair, size = word.rpartition("=")
    if not is_pair or not name or not size:
        raise FeedError(f"{quote(word)}: write a dimension as NAME=SIZE, such as batch=4 or 'image[0]=batch'")
    if size.isascii() and size.isdigit():
        return name, int(size)
    return name, None if size == _UNKNOWN else size


def _ports(model: Model) -> dict[str, str]:
    values = (*model.graph.inputs, *model.graph.outputs)
    return {v.name: str(v.type or "of unknown type") for v in values if v is not None}


def _show(screen: Screen, old: Model, changed: ChangedDims) -> None:
    before, after = _ports(old), _ports(changed.model)
    rows = [(plain(n), plain(t), "→", plain(after[n])) for n, t in before.items() if t != after[n]]
    screen.table(rows, "cyan")
    for mended in changed.mended[:_MOST_MENDED]:
        entries, replacement = ", ".join(mended.old), ", ".join(mended.new)
        screen.line(plain(f"{mended.location}: [{entries}] is now [{replacement}]"))
    if len(changed.mended) > _MOST_MENDED:
        screen.line(f"and {counted(len(changed.mended) - _MOST_MENDED, 'other constant')}")
    for problem in changed.problems:
        hint = f"; {problem.hint}" if problem.hint else ""
        screen.line(plain(f"{problem.location}: {problem.message}{hint}"))


def _as_json(changed: ChangedDims) -> dict[str, Any]:
    return {
        "types": _ports(changed.model),
        "mended": [
            {"location": str(m.location), "old": list(m.old), "new": list(m.new)} for m in changed.mended
        ],
        "problems": [
            {"location": str(p.location), "message": p.message, "hint": p.hint} for p in changed.problems
        ],
    }
