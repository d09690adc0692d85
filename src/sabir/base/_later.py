"""The names of a package: those that are imported on first use, and those that `dir` lists."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from sabir.base._collector import without_collector

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


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


def listing_public(package: str, packages: Sequence[str] = ()) -> Callable[[], list[str]]:
    """Return the `__dir__` of a package: its public names, and the subpackages that have public names too.

    What a package imports for its own use is not listed.
    """

    def listed() -> list[str]:
        names = vars(sys.modules[package])
        return sorted({*names["__all__"], *packages, *(name for name in names if name.startswith("__"))})

    return listed
