"""What modules of cases share."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from types import ModuleType

all_numeric_dtypes = [
    np.dtype(f"{kind}{size}").type
    for kind, sizes in (("i", (1, 2, 4, 8)), ("u", (1, 2, 4, 8)), ("f", (2, 4, 8)))
    for size in sizes
]


def import_recursive(package: ModuleType) -> None:
    """Import all modules of a package and of its packages."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)


__all__ = ["all_numeric_dtypes", "import_recursive"]
