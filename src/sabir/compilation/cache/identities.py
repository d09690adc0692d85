"""Identities of bytes without reading them: a mapped file by its status, `bytes` by their address."""

from __future__ import annotations

import functools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.files import MappedFile

if TYPE_CHECKING:
    from sabir.ir import Array

_SETTLED = (
    2.0  # seconds: a file that changed later than this ago may change again within one tick of its time stamp
)
_MOUNTS = Path("/proc/self/mountinfo")
# file systems of Linux that do not update the time of a file that is written through a mapping
_TIMELESS = frozenset({"devtmpfs", "hugetlbfs", "ramfs", "tmpfs"})


def identity_of(array: Array) -> tuple[str | None, bool]:
    """Return an identity of the bytes of an array, and whether it is valid beyond this process."""
    owner = owner_of(array)
    place = int(array.ctypes.data)
    if isinstance(owner, MappedFile):
        file = identity_of_file(owner)
        if file is not None:
            return f"{file} {place - int(np.frombuffer(owner, np.uint8).ctypes.data)}", True
    return (f"memory {place}", False) if isinstance(owner, (bytes, MappedFile)) else (None, False)


def identity_of_file(file: MappedFile) -> str | None:
    """Return an identity of the contents of a file; None as for `identity_of_status`."""
    return identity_of_status(os.fstat(file.descriptor))


def identity_of_status(status: os.stat_result) -> str | None:
    """Return an identity of the contents of a file from its status.

    It is None for a file that changed a moment ago, and on a file system whose times miss changes.
    """
    if max(status.st_mtime, status.st_ctime) + _SETTLED >= time.time() or _is_timeless(status.st_dev):
        return None
    return f"file {status.st_dev}.{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


@functools.lru_cache(maxsize=64)
def _is_timeless(device: int) -> bool:
    """Return whether a file system does not update the time of a file that is written through a mapping."""
    try:
        lines = _MOUNTS.read_text("utf-8", "replace").splitlines()
    except OSError:  # not Linux
        return False
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = {
        kind.split(" ", 1)[0]
        for mount, _, kind in (line.partition(" - ") for line in lines)
        if mount.split(" ")[2:3] == [wanted]
    }
    return not found.isdisjoint(_TIMELESS)


def owner_of(array: Array) -> object:
    """Return the object that owns the memory of an array."""
    owner: Any = array
    while isinstance(owner, (np.ndarray, memoryview)):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    return owner
