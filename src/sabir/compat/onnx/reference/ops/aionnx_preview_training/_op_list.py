"""The classes of the operators of the domain ai.onnx.preview.training, by name."""

from __future__ import annotations

from typing import Any

from sabir.compat.onnx.reference.ops._op_list import load_op
from sabir.opsets import STANDARD

_DOMAIN = "ai.onnx.preview.training"


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and STANDARD.find(_DOMAIN, name):
        return load_op(_DOMAIN, name)
    raise AttributeError(f"Sabir has no operator {name!r} in the domain {_DOMAIN}")
