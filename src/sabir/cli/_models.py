"""Models from and to files of either kind: ONNX, and the text syntax."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from sabir.base import ParseError, map_file, replace_file
from sabir.serial import load, save
from sabir.text import parse, text

if TYPE_CHECKING:
    from sabir.ir import Model

TEXT_SUFFIXES = frozenset({".onnxtxt", ".onnxtext", ".txt"})

# what typer reads must be there at run time, so the commands share these rather than spell them
ModelPath: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", help="An ONNX file, or one in the text syntax (.onnxtxt, .onnxtext, .txt)."
    ),
]
ModelPaths: TypeAlias = Annotated[
    list[Path], typer.Argument(metavar="MODEL", help="ONNX files, or ones in the text syntax.")
]
OutputPath: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result here.")
]


def load_any(path: Path) -> Model:
    """Return the model in a file; raises FileError, WireError or ParseError, each naming the file."""
    if not _is_text(path):
        return load(path)
    try:
        model = parse(bytes(map_file(path)).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ParseError(f"{path}: this is no text in UTF-8") from error
    except ParseError as error:
        raise ParseError(f"{path}: {error}") from error
    model.path = path.absolute()
    return model


def save_any(model: Model, path: Path) -> None:
    """Write a model to a file, as text where the suffix says so; raises FileError or WireError."""
    if _is_text(path):
        save_text(text(model), path)
    else:
        save(model, path)


def save_text(written: str, path: Path) -> None:
    """Write a text to a file in one step; raises FileError."""
    replace_file(path, [written.encode("utf-8", "surrogateescape")])


def _is_text(path: Path) -> bool:
    return path.suffix.lower() in TEXT_SUFFIXES
