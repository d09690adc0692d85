"""Which data files a model uses."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeAlias

from sabir.base import SabirError
from sabir.files import PIECE
from sabir.ir import ExternalTensor, all_tensors
from sabir.serial._external import Folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sabir.ir import Model

Identity: TypeAlias = tuple[int, int]

_KEY = b"location"  # every text of a model with external data contains this word
_LARGEST_TEXT = 1 << 31


def identity_of(status: os.stat_result) -> Identity:
    """Return the device and number of a file, which distinguish it from all others."""
    return status.st_dev, status.st_ino


def data_files_of(model: Model) -> Iterator[tuple[Folder, str, os.stat_result]]:
    """Yield each existing data file that a model uses: its folder, its location and its status."""
    seen: set[tuple[int, str]] = set()
    for tensor, *_ in all_tensors(model):
        if not isinstance(tensor, ExternalTensor) or not isinstance(tensor.opener, Folder):
            continue
        folder, location = tensor.opener, tensor.entries.get("location", "")
        if (id(folder), location) not in seen:
            seen.add((id(folder), location))
            with contextlib.suppress(SabirError):
                yield folder, location, folder.look(location)


def mentions_external_data(path: Path) -> bool:
    """Return whether a file, which may be any large text, can be a model with external data."""
    end = b""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_TEXT:
                return False
            while piece := file.read(PIECE):
                if _KEY in end + piece:
                    return True
                end = piece[-len(_KEY) :]
    except OSError:
        pass
    return False
