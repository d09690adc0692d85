"""The LLVM IR of a kernel, and its source for the cache."""

from __future__ import annotations

import hashlib
import importlib
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

from sabir.compilation.backends import cpu
from sabir.compilation.backends.cpu.families import families
from sabir.compilation.native import Source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from sabir.compilation.plan.entries import Kernel


def text_of(kernel: Kernel) -> str:
    """Return the LLVM module of a kernel; its family declares the function that emits it."""
    module, _, function = families().writers[type(kernel).__name__].partition(":")
    return getattr(importlib.import_module(module), function)(kernel)


def source_of(kernel: Kernel) -> Source:
    """Return the source of a kernel: a name for caches, and a function that emits its LLVM module."""
    return Source(f"{writers()} {kernel!r}", partial(text_of, kernel))


@cache
def writers() -> str:
    """Return a digest of the modules of this backend, which emit the texts of kernels."""
    digest = hashlib.sha256()
    for file in _modules(resources.files(cpu)):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _modules(folder: Traversable) -> Iterator[Traversable]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name.endswith(".py"):
            yield item
        elif item.is_dir() and item.name != "__pycache__":
            yield from _modules(item)
