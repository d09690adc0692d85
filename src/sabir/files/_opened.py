"""A file that was opened once: its bytes, and what it was then, whatever the path leads to later."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from sabir.files._reading import open_file, view_of

if TYPE_CHECKING:
    from pathlib import Path


class OpenedFile(NamedTuple):
    """The path of a file, its bytes, and its status when it was opened."""

    path: Path
    data: memoryview
    status: os.stat_result


def opened_file(path: Path, *, mapped: bool = True) -> OpenedFile:
    """Return the bytes of a file, of which a large one is mapped; raises FileError.

    >>> from pathlib import Path
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile() as file:
    ...     _ = file.write(b'data')
    ...     file.flush()
    ...     bytes(opened_file(Path(file.name)).data)
    b'data'
    """
    descriptor = open_file(path)
    try:
        return OpenedFile(path, view_of(descriptor, str(path), mapped=mapped), os.fstat(descriptor))
    finally:
        os.close(descriptor)
