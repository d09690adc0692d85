"""`sabir add-outputs` and `sabir inputs`: other outputs and inputs of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import FeedError, NotFoundError, listed_names, quote, suggest
from sabir.cli._edited import save_edited
from sabir.cli._files import read_value

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._json import JsonOption

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption, UntrustedOption
from sabir.cli._models import ModelPath, RequiredOutputPath, load_any, refuse_two_reports
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._usage import refuse
from sabir.editing import add_outputs as with_outputs
from sabir.editing import initializers_to_inputs, inputs_to_initializers
from sabir.serial import Normalization

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Model

ALL = "all"

OUTPUTS_EXAMPLES = (
    "sabir add-outputs model.onnx hidden attention -o observed.onnx",
    "sabir add-outputs model.onnx --all -o observed.onnx",
)
INPUTS_EXAMPLES = (
    "sabir inputs model.onnx --from-initializer weight --from-initializer bias -o open.onnx",
    "sabir inputs model.onnx --from-initializer all --keep-defaults -o open.onnx",
    "sabir inputs model.onnx --to-initializer mask=mask.npy -o fixed.onnx",
)


def add_outputs(
    model: ModelPath,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[VALUE...]", help="Values of the main graph.")
    ] = None,
    *,
    output: RequiredOutputPath,
    every: Annotated[
        bool, typer.Option("--all", help="Everything that a node of the main graph computes.")
    ] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Let a model also return values that its nodes compute."""
    refuse_two_reports(output, as_json=as_json)
    if bool(values) == every:
        refuse("name values, or use --all, and not both")
    loaded = load_any(model)
    changed = with_outputs(loaded, values or ALL, registry=registry_of(operators, documents))
    save_edited(changed, output, loaded, as_json=as_json)


def inputs(
    model: ModelPath,
    *,
    output: RequiredOutputPath,
    opened: Annotated[
        list[str] | None,
        typer.Option(
            "--from-initializer",
            metavar="NAME",
            help="An initializer that becomes an input, or `all`. May be repeated.",
        ),
    ] = None,
    keep_defaults: Annotated[
        bool,
        typer.Option(
            "--keep-defaults", help="Keep the data of these as defaults, so that a run may leave them out."
        ),
    ] = False,
    fixed: Annotated[
        list[str] | None,
        typer.Option(
            "--to-initializer",
            metavar="NAME=FILE",
            help="An input that becomes constant: its value in a .npy, .npz or .pb file. May be repeated.",
        ),
    ] = None,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Make initializers inputs, and inputs constants.

    A dimension variable of an input that becomes constant gets the size of its value, in the whole model.
    """
    refuse_two_reports(output, as_json=as_json)
    if not (opened or fixed):
        refuse("there is nothing to change; use --from-initializer or --to-initializer")
    loaded = load_any(model)
    changed = loaded
    if fixed:
        values = _values(loaded, fixed)
        changed = inputs_to_initializers(loaded, values, registry=registry_of(operators, documents))
    if opened:
        names = ALL if opened == [ALL] else opened
        changed = initializers_to_inputs(changed, names, keep_defaults=keep_defaults)
    save_edited(changed, output, loaded, as_json=as_json)


def _values(model: Model, words: Sequence[str]) -> dict[str, object]:
    """Read the values of inputs from NAME=FILE."""
    types = {value.name: value.type for value in model.graph.inputs}
    found: dict[str, object] = {}
    for name, path in map(_pair, words):
        if name not in types:
            near = suggest(name, types) or f"; its inputs are {listed_names(types)}"
            raise NotFoundError(f"the model has no input {quote(name)}{near}")
        found[name] = read_value(path, types[name], name, Normalization())
    return found


def _pair(word: str) -> tuple[str, Path]:
    name, is_pair, path = word.partition("=")
    if not is_pair or not name or not path:
        raise FeedError(f"{quote(word)}: write an input and its file as NAME=FILE, such as mask=mask.npy")
    return name, Path(path)
