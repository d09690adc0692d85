"""Libraries of the extra `text`, imported where a model first needs them."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from sabir.base import UnsupportedError


def library(name: str, operator: str) -> Any:
    """Return a module of the extra `text`; raises UnsupportedError where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnsupportedError(f"{operator} needs {name}: pip install sabir[text]") from error


def is_installed(name: str) -> bool:
    """Whether a module of the extra `text` can be imported."""
    return importlib.util.find_spec(name) is not None
