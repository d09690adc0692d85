"""Names of a package that are imported on first use, so that importing the package is fast."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from sabir.base._collector import without_collector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def importing_later(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package (PEP 562): `names` maps each name to its module."""

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with without_collector():  # what modules define stays
            found = getattr(importlib.import_module(f"{package}.{names[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find
