"""External data: tensors that lie in files beside the model."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from sabir.base import ExternalDataError, FileError, open_inside, quote, view_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


class Folder:
    """Opens the external data of one model; each file is mapped once, when first read."""

    def __init__(self, path: Path | None) -> None:
        """Take the model's folder, or None for a model that came without one."""
        self.path = path
        self._files: dict[str, memoryview] = {}

    def __call__(self, entries: Mapping[str, str], size: int) -> memoryview:
        """Return the `size` bytes that a tensor's entries point at.

        Raises ExternalDataError where the file is missing, too short, or outside the folder.
        """
        location = entries.get("location", "")
        shown = f"external data {quote(location)}"
        offset, length = _number(entries, "offset", 0), _number(entries, "length", size)
        if length != size:
            raise ExternalDataError(
                f"{shown}: `length` is {length}, and the tensor's type and shape take {size} bytes"
            )
        data = self._open(location)
        if offset + size > len(data):
            needed = f"the tensor needs bytes {offset} to {offset + size}"
            raise ExternalDataError(f"{shown}: {needed}, and the file has {len(data)}")
        return data[offset : offset + size]

    def _open(self, location: str) -> memoryview:
        if self.path is None:
            told = f"external data {quote(location)}: the model came from no file"
            raise ExternalDataError(f"{told}; say in which `folder` its data lies")
        if location not in self._files:
            descriptor = open_inside(self.path, location)
            try:
                self._files[location] = view_of(descriptor, f"external data {quote(location)}")
            except FileError as error:
                raise ExternalDataError(str(error)) from error
            finally:
                os.close(descriptor)
        return self._files[location]


def _number(entries: Mapping[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text):
        raise ExternalDataError(
            f"external data: `{key}` must be a number of up to 19 digits, and is {quote(text)}"
        )
    return int(text)
