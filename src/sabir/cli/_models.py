"""Models from and to files and standard streams, in the format that each extension names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabir.base import UnsupportedError
from sabir.cli._screen import Screen, bytes_text, plain
from sabir.cli._usage import refuse
from sabir.files import replace_file
from sabir.serial import dumps, format_by_name, load, loads, save

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model

STREAM = Path("-")
"""The argument that means standard input or standard output."""

_NAMES = "in the format that its extension names: .onnx, .textproto, .json or .onnxtxt"


def _known(path: Path | None) -> Path | None:
    """Raise UnsupportedError for an unknown extension, before any work is done."""
    if path is not None and path != STREAM:
        format_by_name(path)
    return path


def _for_text(path: Path | None) -> Path | None:
    """Raise UnsupportedError for a name that no command would read as the text syntax."""
    if path is not None and path != STREAM and format_by_name(path) not in {None, "onnxtxt"}:
        message = "this extension names another format than the text syntax (.onnxtxt); use `sabir convert`"
        raise UnsupportedError(f"{path}: {message}")
    return path


# typer reads these at run time, so the commands share them
ModelPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="MODEL", help=f"A model, {_NAMES}; - is standard input.")
]
OldPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="OLD", help=f"The old model, {_NAMES}; - is standard input.")
]
NewPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="NEW", help="The new model, in any of these formats.")
]
ModelPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="MODEL", help=f"Models, each {_NAMES}; - is standard input.")
]
_OUTPUT = typer.Option(
    "--output",
    "-o",
    metavar="FILE",
    callback=_known,
    help=f"Write the model here, {_NAMES}; - is standard output.",
)
OutputPath: TypeAlias = Annotated[Path | None, _OUTPUT]
RequiredOutputPath: TypeAlias = Annotated[Path, _OUTPUT]
TextPath: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", callback=_for_text, help="Write the text here (.onnxtxt)."
    ),
]


def load_any(path: Path, *, format: str | None = None) -> Model:  # ruff: ignore[builtin-argument-shadowing]  as load's
    """Return the model in a file or on standard input; raises FileError, WireError or ParseError."""
    if path != STREAM:
        return load(path, format=format)
    return loads(sys.stdin.buffer.read(), format=format)


def save_any(model: Model, path: Path) -> None:
    """Write a model to a file, in the format that its extension names, or to standard output as protobuf.

    Raises FileError or WireError; UnsupportedError where standard output is a terminal.
    """
    if path == STREAM:
        print_model(model, "protobuf")
    else:
        save(model, path)


def print_model(model: Model, format: str) -> int:  # ruff: ignore[builtin-argument-shadowing]  as dumps'
    """Write a model to standard output, and return the number of bytes.

    Raises UnsupportedError for the bytes of protobuf on a terminal.
    """
    on_terminal = sys.stdout.isatty()
    if format == "protobuf" and on_terminal:
        raise UnsupportedError(
            "protobuf is binary, and is not written to a terminal; redirect it, name a file, or use "
            "`sabir convert MODEL - --to onnxtxt`"
        )
    data = dumps(model, format=format)
    if on_terminal:
        Screen().lines(map(plain, data.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
    return len(data)


def save_text(chunks: Iterable[str], path: Path) -> None:
    """Write the chunks of a text to a file in one step; raises FileError."""
    replace_file(path, (chunk.encode("utf-8", "surrogateescape") for chunk in chunks))


def shown(path: Path) -> str:
    """Return a path as messages name it."""
    return "standard input" if path == STREAM else plain(path)


def report_screen(output: Path | None) -> Screen:
    """Return where a command reports: standard error where its model goes to standard output."""
    return Screen(error=output == STREAM)


def refuse_two_reports(output: Path, *, as_json: bool) -> None:
    """Refuse `-o -` with `--json`: both write to standard output."""
    if as_json and output == STREAM:
        refuse("-o - writes the model to standard output, where --json writes the report; name a file")


def report_saved(screen: Screen, output: Path) -> None:
    """Say where a model was saved, and how large it is."""
    if output != STREAM:
        screen.line(f"saved {plain(output)} ({bytes_text(output.stat().st_size)})")
