"""Sabir: the whole ONNX system in Python.

model = sabir.load("model.onnx")
session = sabir.Session(model)
outputs = session.run({"x": array})
"""

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
)
from sabir.checking import check, findings
from sabir.evaluation import evaluate
from sabir.inference import infer
from sabir.inlining import inline
from sabir.ir import Builder, Model
from sabir.runtime import Session
from sabir.serial import dumps, load, loads, save
from sabir.syntax import parse, text

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
