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
from sabir.serial import FORMATS, dumps, format_named, format_of, load, loads, save

if TYPE_CHECKING:
    from sabir.ir import Model

EXAMPLES = (
    "sabir convert model.onnx model.json",
    "sabir convert model.textproto model.onnx",
    "sabir convert model.onnx - --format onnxtxt | less",
    "cat model.onnx | sabir convert - model.onnxtxt",
)
_STREAM = Path("-")
_FORMAT = f"One of {', '.join(FORMATS)}"


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="The model, or - for standard input.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The new file, or - for standard output.")],
    *,
    format: Annotated[  # ruff: ignore[builtin-argument-shadowing]  the option's name
        str | None, typer.Option("--format", metavar="FORMAT", help=f"{_FORMAT}; else as OUT is called.")
    ] = None,
    origin: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help=f"{_FORMAT}; else as IN is called.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Write over IN in a format that its name does not tell.")
    ] = False,
    _: LimitOption = None,
) -> None:
    """Write a model in another format; nothing is lost.

    By name, .onnx is protobuf, .textproto and .json are protobuf's texts, .onnxtxt is the ONNX text syntax.
    """
    named = None if target == _STREAM else format_of(target)
    chosen = format_named(format) if format else named or "protobuf"
    if named not in {chosen, None} and _is_same(source, target) and not force:
        raise UnsupportedError(
            f"{target}: this would put {chosen} in the place of the input, whose name tells {named}; "
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
        raise UnsupportedError("protobuf is no text for a terminal; choose another --format, or a file")
    data = dumps(model, format=chosen)
    if on_terminal:
        Screen().lines(map(plain, data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")))
        return len(data)
    sys.stdout.buffer.write(data)
    return len(data)


def _is_same(source: Path, target: Path) -> bool:
    return source.exists() and target.exists() and source.samefile(target)
