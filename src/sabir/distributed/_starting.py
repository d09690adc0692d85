"""Ray, connected to a cluster or started on this machine."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
from __future__ import annotations

import importlib
from typing import Any

from sabir.base import UnsupportedError


def connected(module: str = "ray") -> tuple[Any, bool]:
    """Return a module of Ray, connected to a cluster, and whether Ray was started here for this.

    A program that is connected to a cluster stays so; otherwise Ray starts on this machine. Raises
    UnsupportedError where Ray is not installed.

    >>> import sys
    >>> sys.modules['ray'] = None
    >>> connected()
    Traceback (most recent call last):
        ...
    sabir.UnsupportedError: this needs Ray; install it with `pip install 'sabir[ray]'`
    >>> del sys.modules['ray']
    """
    try:
        ray, found = importlib.import_module("ray"), importlib.import_module(module)
    except ImportError:
        raise UnsupportedError("this needs Ray; install it with `pip install 'sabir[ray]'`") from None
    if ray.is_initialized():
        return found, False
    ray.init(include_dashboard=False, logging_level="error", log_to_driver=False)
    return found, True
