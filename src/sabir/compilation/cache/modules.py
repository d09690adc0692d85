"""A digest of the modules of Sabir, a part of every key of the cache."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

from sabir._version import __version__


@functools.cache
def modules() -> str | None:
    """Return a digest of the modules of Sabir, by their sizes and times; None if they are not files.

    For an installed package the status of its RECORD, which the installer writes, represents all modules.
    """
    folder = Path(__file__).parents[2]
    record = folder.parent / f"sabir-{__version__}.dist-info" / "RECORD"
    try:
        found = [_shown(os.fspath(record), record.stat())]
    except OSError:
        found = sorted(_sources(os.fspath(folder))) if folder.is_dir() else []
    return hashlib.sha256("\n".join(found).encode(errors="surrogatepass")).hexdigest() if found else None


def _sources(folder: str) -> list[str]:
    found: list[str] = []
    folders = [folder]
    while folders:  # for a thousand files, a generator for each folder is a fourth slower
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                name = entry.name
                if name.endswith(".py"):
                    found.append(_shown(entry.path, entry.stat()))
                elif "." not in name and name != "__pycache__" and entry.is_dir():
                    folders.append(entry.path)
    return found


def _shown(path: str, status: os.stat_result) -> str:
    return f"{path} {status.st_size} {status.st_mtime_ns} {status.st_ino}"
