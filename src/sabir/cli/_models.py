"""Models from and to files of any format, as their names tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabir.base import replace_file
from sabir.serial import load, save

if TYPE_CHECKING:
    from sabir.ir import Model

_NAMES = "as its name tells: .onnx, .textproto, .json or .onnxtxt"

# what typer reads must be there at run time, so the commands share these rather than spell them
ModelPath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="MODEL", help=f"A model in any of the formats, {_NAMES}.")
]
ModelPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="MODEL", help=f"Models, each in a format {_NAMES}.")
]
OutputPath: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result here.")
]


def load_any(path: Path) -> Model:
    """Return the model in a file; raises FileError, WireError or ParseError, each naming the file."""
    return load(path)


def save_any(model: Model, path: Path) -> None:
    """Write a model to a file, in the format that its name tells; raises FileError or WireError."""
    save(model, path)


def save_text(written: str, path: Path) -> None:
    """Write a text to a file in one step; raises FileError."""
    replace_file(path, [written.encode("utf-8", "surrogateescape")])
