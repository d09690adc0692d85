"""`sabir extract` and `sabir split`: parts of a model as models."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import Annotated

import typer

from sabir.cli._edited import edited_json, save_edited, show_edited
from sabir.cli._json import JsonOption, write_json

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import (
    STREAM,
    ModelPath,
    RequiredOutputPath,
    load_any,
    refuse_two_reports,
    report_saved,
    save_any,
)
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen
from sabir.cli._usage import refuse
from sabir.editing import extract as extract_part
from sabir.editing import split as split_model
from sabir.serial import format_by_name

EXTRACT_EXAMPLES = (
    "sabir extract model.onnx --from hidden --to logits -o part.onnx",
    "sabir extract model.onnx --to features -o backbone.onnx",
    "sabir extract model.onnx --from mask --from hidden -o head.onnx",
)
SPLIT_EXAMPLES = (
    "sabir split model.onnx --at features -o backbone.onnx head.onnx",
    "sabir split model.onnx --at hidden --at mask -o first.onnx second.onnx --json",
)


def extract(
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="VALUE",
            help="An input of the part; by default those that it needs. May be repeated.",
        ),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "--to", metavar="VALUE", help="An output of the part; by default all outputs. May be repeated."
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write the part of a model between values as a model.

    Constants and functions follow. If the outputs depend on an input of the model that --from does not list,
    the path to it is shown, nothing is written, and the exit code is 2. Values of a branch or of the body of
    a loop make that graph the main graph, and what it captures becomes inputs.
    """
    refuse_two_reports(output, as_json=as_json)
    loaded = load_any(model)
    registry = registry_of(operators, documents)
    part = extract_part(loaded, inputs=inputs or None, outputs=outputs or None, registry=registry)
    save_edited(part, output, loaded, as_json=as_json)


def split(
    model: ModelPath,
    *,
    at: Annotated[
        list[str],
        typer.Option("--at", metavar="VALUE", help="A value that the first model returns. May be repeated."),
    ],
    output: Annotated[
        tuple[Path, Path],
        typer.Option("--output", "-o", metavar="FIRST SECOND", help="Write the two models here."),
    ],
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write a model as two that compute the same in sequence.

    The second model reads outputs of the first one under the same names, and inputs of the model. If it
    would need another value that the first one computes, the path to it is shown, nothing is written, and
    the exit code is 2.
    """
    for path in output:
        if path == STREAM:
            refuse("two models cannot be written to standard output; name two files")
        format_by_name(path)  # raises for an unknown extension
    if output[0] == output[1]:
        refuse("the two models need different files")
    loaded = load_any(model)
    halves = split_model(loaded, at=at, registry=registry_of(operators, documents))
    screen = Screen()
    for part, path in zip(halves, output, strict=True):
        save_any(part, path)
        if not as_json:
            show_edited(screen, part, loaded)
            report_saved(screen, path)
    if as_json:
        write_json([edited_json(part, loaded) for part in halves])
