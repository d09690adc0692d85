"""`sabir convert`: write a model in another format."""

from __future__ import annotations

from pathlib import Path  # ruff: ignore[typing-only-standard-library-import]  typer reads it at run time
from typing import Annotated

import typer

from sabir.base import UnsupportedError

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption
from sabir.cli._models import STREAM, load_any, print_model
from sabir.cli._screen import bytes_text, plain
from sabir.serial import FORMATS, format_by_name, format_named, format_of, save

EXAMPLES = (
    "sabir convert model.onnx model.json",
    "sabir convert model.textproto model.onnx",
    "sabir convert model.onnx - --to onnxtxt | less",
    "cat model.onnx | sabir convert - model.onnxtxt",
    "sabir convert checkpoint.bin model.onnx --from protobuf",
)
_FORMAT = f"One of {', '.join(FORMATS)}."


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The model, or - for standard input.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The new file, or - for standard output.")],
    *,
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
    force: Annotated[
        bool, typer.Option("--force", help="Replace IN even if its extension names another format.")
    ] = False,
    _: LimitOption = None,
) -> None:
    """Write a model in another format.

    The extension of a file names its format: .onnx is protobuf, .textproto and .json are the text formats of
    protobuf, .onnxtxt is the ONNX text syntax. Nothing is lost, except the bits of NaN values in the two text
    formats of protobuf.
    """
    if target == STREAM:
        named, chosen = None, format_named(format or "protobuf")
    elif format:
        named, chosen = format_of(target), format_named(format)
    else:
        named = chosen = format_by_name(target) or "protobuf"
    if named not in {chosen, None} and _is_same(source, target) and not force:
        raise UnsupportedError(
            f"{target}: this would replace the input by a model in the format {chosen}, but its extension "
            f"names {named}; choose another name for OUT, or add --force"
        )
    model = load_any(source, format=origin)
    if target == STREAM:
        size = print_model(model, chosen)
    else:
        save(model, target, format=chosen)
        size = target.stat().st_size
    name = "standard output" if target == STREAM else plain(target)
    typer.echo(f"saved {name} ({chosen}, {bytes_text(size)})", err=True)


def _is_same(source: Path, target: Path) -> bool:
    return source.exists() and target.exists() and source.samefile(target)
