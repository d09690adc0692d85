"""The texts of the kernels of a plan."""

from __future__ import annotations

import hashlib
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING

from sabir.compilation import kernels
from sabir.compilation._plan import StoredKernel
from sabir.compilation.kernels import (
    Attention,
    Cumulation,
    Descent,
    Nest,
    Packing,
    Product,
    Recurrence,
    Scattering,
    Selection,
    Sliding,
    attention_text,
    cumulation_text,
    descent_text,
    nest_text,
    packing_text,
    product_text,
    recurrence_text,
    scattering_text,
    selection_text,
    sliding_text,
)
from sabir.compilation.native import Source

if TYPE_CHECKING:
    from sabir.compilation._plan import Spec


def text_of(spec: Spec) -> str:
    """Return the LLVM module of a kernel."""
    match spec:
        case Nest():
            return nest_text(spec)
        case Product():
            return product_text(spec)
        case Attention():
            return attention_text(spec)
        case Packing():
            return packing_text(spec)
        case Cumulation():
            return cumulation_text(spec)
        case Descent():
            return descent_text(spec)
        case Scattering():
            return scattering_text(spec)
        case Selection():
            return selection_text(spec)
        case Recurrence():
            return recurrence_text(spec)
        case Sliding():
            return sliding_text(spec)
        case StoredKernel():
            raise TypeError("a kernel from the disk has no text")


def source_of(spec: Spec) -> Source:
    """Return the text of a kernel, to be written if the kernel is in no cache."""
    return Source(f"{writers()} {spec!r}", partial(text_of, spec))


@cache
def writers() -> str:
    """Return a digest of the modules that write the texts of kernels."""
    digest = hashlib.sha256()
    for file in sorted(resources.files(kernels).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            digest.update(file.read_bytes())
    return digest.hexdigest()


__all__ = ["source_of", "text_of"]
