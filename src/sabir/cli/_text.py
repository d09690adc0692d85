"""`sabir text`: a model in the ONNX text syntax."""

from __future__ import annotations

from sabir.cli._models import ModelPath, TextPath, load_any, save_text
from sabir.cli._screen import Screen, plain
from sabir.syntax import text as text_of

EXAMPLES = (
    "sabir text model.onnx | less",
    "sabir text model.onnx -o model.onnxtxt",
    "sabir run model.onnxtxt",
)


def text(
    model: ModelPath,
    *,
    output: TextPath = None,
) -> None:
    """Write a model in the ONNX text syntax.

    Every command reads such a text from a file with the extension .onnxtxt, .onnxtext or .txt.
    """
    written = text_of(load_any(model))
    if output is not None:
        save_text(written, output)
        return
    screen = Screen()
    lines = written.removesuffix("\n").split("\n")  # no other sign ends a line of the syntax
    screen.lines(map(plain, lines) if screen.is_terminal else lines)
