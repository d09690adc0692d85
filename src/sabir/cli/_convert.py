"""`sabir convert`: a model from one format to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sabir.base import UnsupportedError

# ruff: ignore[typing-only-first-party-import]  typer reads it at run time
from sabir.cli._limits import LimitOption
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.serial import FORMATS, dumps, format_by_name, format_named, format_of, load, loads, save

if TYPE_CHECKING:
    from sabir.ir import Model

EXAMPLES = (
    "sabir convert model.onnx model.json",
    "sabir convert model.textproto model.onnx",
    "sabir convert model.onnx - --to onnxtxt | less",
    "cat model.onnx | sabir convert - model.onnxtxt",
    "sabir convert checkpoint.bin model.onnx --from protobuf",
)
_STREAM = Path("-")
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
        bool, typer.Option("--force", help="Replace IN even in a format that its extension does not name.")
    ] = False,
    _: LimitOption = None,
) -> None:
    """Write a model in another format.

    The extension of a file names its format: .onnx is protobuf, .textproto and .json are protobuf's texts,
    .onnxtxt is the ONNX text syntax. Nothing is lost, except that the two texts of protobuf do not tell one
    NaN from another.
    """
    if target == _STREAM:
        named, chosen = None, format_named(format or "protobuf")
    elif format:
        named, chosen = format_of(target), format_named(format)
    else:
        named = chosen = format_by_name(target) or "protobuf"
    if named not in {chosen, None} and _is_same(source, target) and not force:
        raise UnsupportedError(
            f"{target}: the input would be replaced by a model as {chosen}, but its extension names {named}; "
            "give OUT another name, or add --force"
        )
    model = _read(source, origin)
    if target == _STREAM:
        size = _print(model, chosen)
    else:
        save(model, target, format=chosen)
        size = target.stat().st_size
    shown = "standard output" if target == _STREAM else plain(target)
    typer.echo(f"saved {shown} ({chosen}, {bytes_text(size)})", err=True)


def _read(source: Path, origin: str | None) -> Model:
    if source != _STREAM:
        return load(source, format=origin)
    return loads(sys.stdin.buffer.read(), format=origin)


def _print(model: Model, chosen: str) -> int:
    on_terminal = sys.stdout.isatty()
    if chosen == "protobuf" and on_terminal:
        raise UnsupportedError(
            "protobuf is binary, and is not written to a terminal; choose another format with --to, or a file"
        )
    data = dumps(model, format=chosen)
    if on_terminal:
        Screen().lines(map(plain, data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")))
        return len(data)
    sys.stdout.buffer.write(data)
    return len(data)


def _is_same(source: Path, target: Path) -> bool:
    return source.exists() and target.exists() and source.samefile(target)
