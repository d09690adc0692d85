"""The registry of kernel families: each package in this folder that has a `family` module."""

from __future__ import annotations

import functools
import importlib.util
import pkgutil
from typing import TYPE_CHECKING

from sabir.compilation.backends import cpu
from sabir.compilation.fusion.families import Families, Family

if TYPE_CHECKING:
    from collections.abc import Iterator


@functools.cache
def families() -> Families:
    """Return the kernel families of the CPU backend."""
    return Families(_found())


def _found() -> Iterator[Family]:
    for module in pkgutil.iter_modules(cpu.__path__):
        name = f"{cpu.__name__}.{module.name}.family"
        if module.ispkg and importlib.util.find_spec(name) is not None:
            yield from importlib.import_module(name).FAMILIES
