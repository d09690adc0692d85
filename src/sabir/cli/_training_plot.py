"""The course of a training as a picture."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from sabir.base import UnsupportedError
from sabir.cli._training_curves import loss_curves
from sabir.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sabir.training import Epoch


def plotting() -> Any:
    """Return the module that draws; raises UnsupportedError where it is not installed."""
    try:
        from matplotlib import figure  # ruff: ignore[import-outside-top-level]  # pyright: ignore[reportMissingImports, reportUnknownVariableType] - an extra that one option needs
    except ImportError:
        message = "--plot draws with matplotlib; install it with `pip install 'sabir[plot]'`"
        raise UnsupportedError(message) from None
    return figure  # pyright: ignore[reportUnknownVariableType] - as above


def write_plot(path: Path, epochs: Sequence[Epoch]) -> None:
    """Draw the loss over the epochs into a PNG file; raises UnsupportedError, FileError."""
    picture = plotting().Figure(figsize=(8, 5), layout="constrained")
    axes = picture.subplots()
    for name, values in loss_curves(epochs).items():
        axes.plot([e.number for e in epochs], values, label=name)
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    axes.legend()
    data = io.BytesIO()
    picture.savefig(data, format="png", dpi=150)
    replace_file(path, [data.getvalue()])


__all__ = ["plotting", "write_plot"]
