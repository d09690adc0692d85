"""Sabir: the whole ONNX system in Python.

model = sabir.load("model.onnx")
session = sabir.Session(model)
outputs = session.run({"x": array})
"""

from typing import TYPE_CHECKING, Any

# first, and from here: deep in a chain of imports numpy's own take a third longer
import numpy as np  # ruff: ignore[unused-import]  # pyright: ignore[reportUnusedImport] - for its effect alone

from sabir._version import __version__
from sabir.base import (
    CheckError,
    EvaluationError,
    ExternalDataError,
    FeedError,
    FileError,
    InferenceError,
    LimitError,
    Limits,
    ParseError,
    SabirError,
    SabirWarning,
    SchemaError,
    UnsupportedError,
    WireError,
    importing_later,
)
from sabir.ir import Builder, Listed, Model

if TYPE_CHECKING:
    from sabir.checking import check, findings
    from sabir.evaluation import evaluate
    from sabir.inference import infer
    from sabir.inlining import inline
    from sabir.runtime import Session
    from sabir.serial import dumps, load, loads, save
    from sabir.syntax import parse, text

# imported when first asked for: nobody waits for what a program does not use
_LATER = {
    "check": "checking", "findings": "checking", "evaluate": "evaluation", "infer": "inference",
    "inline": "inlining", "Session": "runtime", "dumps": "serial", "load": "serial", "loads": "serial",
    "save": "serial", "parse": "syntax", "text": "syntax",
}  # fmt: skip

__getattr__ = importing_later(__name__, _LATER)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def _complete(model: Model) -> None:
    """Type the outputs of a model that a builder made; inference is imported for the first one."""
    from sabir.inference import type_outputs  # ruff: ignore[import-outside-top-level]  as all of `_LATER`

    type_outputs(model)


def _listing(item: Any) -> str:
    """Return what `print` shows of a model object; the syntax is imported for the first one."""
    from sabir.syntax import listing  # ruff: ignore[import-outside-top-level]  as all of `_LATER`

    return listing(item)


Builder.complete = _complete
Listed.listing = _listing

__all__ = [
    "Builder",
    "CheckError",
    "EvaluationError",
    "ExternalDataError",
    "FeedError",
    "FileError",
    "InferenceError",
    "LimitError",
    "Limits",
    "Model",
    "ParseError",
    "SabirError",
    "SabirWarning",
    "SchemaError",
    "Session",
    "UnsupportedError",
    "WireError",
    "__version__",
    "check",
    "dumps",
    "evaluate",
    "findings",
    "infer",
    "inline",
    "load",
    "loads",
    "parse",
    "save",
    "text",
]
