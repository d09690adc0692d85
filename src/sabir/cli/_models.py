"""Models from and to files, in the format that the extension of each names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabir.base import UnsupportedError
from sabir.files import replace_file
from sabir.serial import format_by_name, load, save

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sabir.ir import Model

_NAMES = "in the format that its extension names: .onnx, .textproto, .json or .onnxtxt"


def _known(path: Path | None) -> Path | None:
    """Raise UnsupportedError for an unknown extension, before any work is done."""
    if path is not None:
        format_by_name(path)
    return path


def _for_text(path: Path | None) -> Path | None:
    """Raise UnsupportedError for a name that no command would read as the text syntax."""
    if path is not None and format_by_name(path) not in {None, "onnxtxt"}:
        told = "this extension names another format than the text syntax, which is .onnxtxt; `sabir convert`"
        raise UnsupportedError(f"{path}: {told} writes each format")
    return path


# what typer reads must be there at run time, so the commands share these rather than spell them
ModelPath: TypeAlias = Annotated[Path, typer.Argument(metavar="MODEL", help=f"A model, {_NAMES}.")]
ModelPaths: TypeAlias = Annotated[list[Path], typer.Argument(metavar="MODEL", help=f"Models, each {_NAMES}.")]
OutputPath: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", callback=_known, help=f"Write the model here, {_NAMES}."),
]
TextPath: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", callback=_for_text, help="Write the text here (.onnxtxt)."
    ),
]


def load_any(path: Path) -> Model:
    """Return the model in a file; raises FileError, WireError or ParseError, each naming the file."""
    return load(path)


def save_any(model: Model, path: Path) -> None:
    """Write a model to a file, in the format that its extension names; raises FileError or WireError."""
    save(model, path)


def save_text(chunks: Iterable[str], path: Path) -> None:
    """Write the chunks of a text to a file in one step; raises FileError."""
    replace_file(path, (chunk.encode("utf-8", "surrogateescape") for chunk in chunks))
