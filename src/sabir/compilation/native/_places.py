"""The folder of the cache: where it is, and whether it is safe to execute what it contains."""

from __future__ import annotations

import os
import re
import stat
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

from sabir.base import SabirWarning, quote

FOLDER, SIZE = "SABIR_CACHE", "SABIR_CACHE_SIZE"
_OFF = "off"
_DEFAULT = 1 << 30
_AMOUNT = re.compile(r"(\d{1,18})\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_UNITS = ("", "k", "m", "g", "t")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_warned: set[str] = set()


class CacheFolder(NamedTuple):
    """The folder of the cache and its bound in bytes; without a folder nothing is cached."""

    folder: Path | None
    limit: int


def place() -> CacheFolder:
    """Return where the environment says that the cache is."""
    return CacheFolder(_folder(), _limit())


def warn_once(message: str) -> None:
    """Warn about the cache, once in a process for each message."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, SabirWarning, stacklevel=2)


def unsafe(status: os.stat_result) -> str:
    """Return why a folder cannot be trusted with machine code; an empty text where it can."""
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    problem = _written_by_others(status)
    return f"{problem}; remove what it contains, then `chmod go-w` it" if "mode" in problem else problem


def unsafe_file(status: os.stat_result) -> str:
    """Return why an entry cannot be trusted with machine code; an empty text where it can.

    `status` is that of the opened file: a safe folder may contain files that others wrote before it was safe.
    """
    problem = _written_by_others(status)
    if not problem and stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        return f"it has {status.st_nlink} names, and may change under another one"
    return problem


def _written_by_others(status: os.stat_result) -> str:
    if not hasattr(os, "geteuid"):  # Windows: the profile of a user belongs to that user
        return ""
    if status.st_uid not in {os.geteuid(), 0}:  # the administrator may change any process anyway
        return f"it belongs to another user (number {status.st_uid})"
    if status.st_mode & _OTHERS_WRITE:
        return f"others may write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _folder() -> Path | None:
    chosen = os.environ.get(FOLDER, "")
    if chosen.lower() == _OFF:
        return None
    try:
        folder = Path(chosen).expanduser() if chosen else _user_folder() / "sabir"
        return folder.absolute()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a user without a home
        warn_once(
            f"compiled models are not cached: there is no home folder; set {FOLDER} to a folder, or to off"
        )
        return None


def _user_folder() -> Path:
    """Return the folder of the user's caches, by the custom of the system."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA", "")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return configured if configured.is_absolute() else Path.home() / ".cache"


def _limit() -> int:
    chosen = os.environ.get(SIZE, "")
    if not chosen:
        return _DEFAULT
    amount = _AMOUNT.fullmatch(chosen.strip())
    if amount is None:
        warn_once(
            f"{SIZE} is {quote(chosen)}, which is no size such as 500M or 2GiB; the cache may have 1 GiB"
        )
        return _DEFAULT
    return int(amount[1]) << (10 * _UNITS.index(amount[2].lower()))
