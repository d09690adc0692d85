"""`sabir convert`: write a model in another format, or for other versions."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import UnsupportedError
from sabir.cli._inline import show_inlining
from sabir.cli._json import JsonOption, write_json
from sabir.cli._limits import LimitOption, UntrustedOption  # ruff: ignore[typing-only-first-party-import]  typer reads them at run time
from sabir.cli._models import STREAM, load_any, print_model
from sabir.cli._operators import OperatorsOption, OpsetDocumentsOption, registry_of
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.cli._usage import refuse
from sabir.cli._versions import IrOption, OpsetsOption, conversion_json, opsets_of, show_conversion
from sabir.conversion import convert_and_report
from sabir.inlining import inline_domains
from sabir.serial import FORMATS, format_by_name, format_named, format_of, save

if TYPE_CHECKING:
    from sabir.ir import Model

EXAMPLES = (
    "sabir convert model.onnx model.json",
    "sabir convert model.textproto model.onnx",
    "sabir convert model.onnx - --to onnxtxt | less",
    "cat model.onnx | sabir convert - model.onnxtxt",
    "sabir convert checkpoint.bin model.onnx --from protobuf",
    "sabir convert model.onnx older.onnx --opset 13",
    "sabir convert model.onnx older.onnx --opset 17 --opset ai.onnx.ml=3 --ir-version 8",
    "sabir convert model.onnx --opset 11 --dry-run",
    "sabir convert optimized.onnx portable.onnx --standard-only",
)
_FORMAT = f"One of {', '.join(FORMATS)}."


def convert(  # ruff: ignore[too-many-arguments]  each is an option of the command
    source: Annotated[Path, typer.Argument(metavar="IN", help="The model, or - for standard input.")],
    target: Annotated[
        Path | None,
        typer.Argument(metavar="OUT", help="The new file, or - for standard output.", show_default=False),
    ] = None,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT", help="The same as OUT, as in other commands."),
    ] = None,
    format: Annotated[  # ruff: ignore[builtin-argument-shadowing]  the option's name
        str | None,
        typer.Option(
            "--to", "--format", metavar="FORMAT", help=f"{_FORMAT} By default the extension of OUT."
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option("--from", metavar="FORMAT", help=f"{_FORMAT} By default the extension of IN."),
    ] = None,
    opsets: OpsetsOption = None,
    ir_version: IrOption = None,
    cast: Annotated[
        bool,
        typer.Option(
            "--cast", help="Compute in a wider type where an older operator does not admit the element type."
        ),
    ] = False,
    standard_only: Annotated[
        bool,
        typer.Option(
            "--standard-only",
            help="Write operators outside the standard, such as those of onnxruntime, in operators of "
            "the standard.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what --opset would change; write no file.")
    ] = False,
    operators: OperatorsOption = None,
    documents: OpsetDocumentsOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace IN even if its extension names another format.")
    ] = False,
    as_json: JsonOption = False,
    _: LimitOption = None,
    __: UntrustedOption = False,
) -> None:
    """Write a model in another format or opset.

    The extension of a file names its format: .onnx is protobuf, .textproto and .json are the text formats of
    protobuf, .onnxtxt is the ONNX text syntax. Nothing is lost, except the bits of NaN values in the two text
    formats of protobuf.

    With --opset the calls that changed between the versions are rewritten. If a node cannot be expressed in
    the target version, all such nodes are listed, nothing is written, and the exit code is 1. The same holds
    for --standard-only and calls that operators of the standard do not express.
    """
    versions = opsets_of(opsets)
    if target is not None and output is not None:
        refuse("OUT and -o both name the new file; use one of them")
    target = target or output
    if target is None and not dry_run:
        refuse("name the file to write, or add --dry-run")
    if as_json and target == STREAM and not dry_run:
        refuse("--json writes to standard output, and so does OUT; name a file")
    chosen = "" if target is None or dry_run else _format_of(source, target, format, force=force)
    model = load_any(source, format=origin)
    if standard_only:
        written = inline_domains(model, registry=registry_of(operators, documents))
        show_inlining(Screen(error=True), written)
        model = written.model
    if versions or ir_version is not None or dry_run:
        found = convert_and_report(
            model,
            opsets=versions,
            ir_version=ir_version,
            cast=cast,
            registry=registry_of(operators, documents),
        )
        if as_json:
            write_json(conversion_json(model, found))
        else:
            show_conversion(Screen(error=not dry_run), model, found)
        model = found.model
    if target is not None and not dry_run:
        _write(model, target, chosen)


def _write(model: Model, target: Path, chosen: str) -> None:
    if target == STREAM:
        size = print_model(model, chosen)
    else:
        save(model, target, format=chosen)
        size = target.stat().st_size
    name = "standard output" if target == STREAM else plain(target)
    typer.echo(f"saved {name} ({chosen}, {bytes_text(size)})", err=True)


def _format_of(source: Path, target: Path, stated: str | None, *, force: bool) -> str:
    """Return the format of OUT; raises UnsupportedError where it would replace IN in another format."""
    if target == STREAM:
        return format_named(stated or "protobuf")
    named = format_by_name(target) if not stated else format_of(target)
    chosen = format_named(stated) if stated else named or "protobuf"
    if named not in {chosen, None} and _is_same(source, target) and not force:
        raise UnsupportedError(
            f"{target}: this would replace the input by a model in the format {chosen}, but its extension "
            f"names {named}; choose another name for OUT, or add --force"
        )
    return chosen


def _is_same(source: Path, target: Path) -> bool:
    return source.exists() and target.exists() and source.samefile(target)
