"""The texts of the kernels of a plan."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

from sabir.compilation import kernels
from sabir.compilation.kernels import text_of
from sabir.compilation.native import Source

if TYPE_CHECKING:
    from sabir.compilation.kernels import Kernel


def source_of(kernel: Kernel) -> Source:
    """Return the text of a kernel, to be written if the kernel is in no cache."""
    return Source(f"{writers()} {kernel!r}", partial(text_of, kernel))


@cache
def writers() -> str:
    """Return a digest of the modules that write the texts of kernels."""
    digest = hashlib.sha256()
    for file in sorted(resources.files(kernels).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


__all__ = ["source_of"]
