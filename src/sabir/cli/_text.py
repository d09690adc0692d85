"""`sabir text`: a model in the ONNX text syntax."""

from __future__ import annotations

from typing import Annotated

import typer

from sabir.cli._models import ModelPath, TextPath, load_any, save_text
from sabir.cli._screen import Screen
from sabir.syntax import LISTED_ELEMENTS, text_chunks

EXAMPLES = (
    "sabir text model.onnx",
    "sabir text model.onnx -o model.onnxtxt",
    "sabir text model.onnx --elide --no-metadata | less",
    "sabir run model.onnxtxt",
)


def text(
    model: ModelPath,
    *,
    output: TextPath = None,
    elide: Annotated[
        bool | None,
        typer.Option(
            "--elide/--all",
            help=f"Write only the number of elements of a tensor or list of more than {LISTED_ELEMENTS}, or "
            "write all. By default a terminal gets the short form, and a file or a pipe everything.",
            show_default=False,
        ),
    ] = None,
    metadata: Annotated[
        bool | None,
        typer.Option(
            "--metadata/--no-metadata",
            help="Write the metadata of graphs, functions, nodes, values and tensors, and long texts, or "
            "leave the metadata out. By default everything has it, and the short form not.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a model in the ONNX text syntax.

    Every command can read the text from a file with the extension .onnxtxt, .onnxtext or .txt, unless
    it is the short form. Exporters write the source lines of each node into the metadata: --no-metadata
    makes such a text readable, also in a file.
    """
    screen = Screen()
    short = screen.is_terminal and output is None if elide is None else elide
    chunks = text_chunks(load_any(model), elide=LISTED_ELEMENTS if short else None, metadata=metadata)
    if output is not None:
        save_text(chunks, output)
    else:
        screen.chunks(chunks)
