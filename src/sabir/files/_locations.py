"""What the location of external data may be: a relative POSIX path to a file below the model's folder."""

from __future__ import annotations

import os
import re

from sabir.base import ExternalDataError, quote

_MAX_LENGTH = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Windows opens a device under these names in any folder, whatever ending follows
_DEVICES = frozenset({
    "con", "prn", "aux", "nul", "conin$", "conout$",
    *(f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"),
})  # fmt: skip
_ON_WINDOWS = os.name == "nt"


def parts_of(location: str, *, windows: bool = _ON_WINDOWS) -> list[str]:
    """Return the components of a location; raises ExternalDataError for one that may leave the folder.

    `windows` also refuses names that on Windows alone are not names of files.
    """
    problem = _problem(location) or (_windows_problem(location) if windows else "")
    if problem:
        raise ExternalDataError(f"external data: the location {quote(location)} {problem}")
    return _components(location)


def is_device_name(name: str) -> bool:
    """Return whether Windows opens a device under this name, in any folder."""
    return name.partition(".")[0].rstrip(" ").lower() in _DEVICES


def _components(location: str) -> list[str]:
    return [p for p in location.split("/") if p not in {"", "."}]


def _problem(location: str) -> str:
    """Return what is wrong with a location on every system; empty where nothing is."""
    if not location or len(location) > _MAX_LENGTH:
        return f"must have 1 to {_MAX_LENGTH} characters"
    if "\\" in location or _CONTROL.search(location):
        return "has a backslash or a control character"
    if location.startswith("/") or (location[1:2] == ":" and location[0].isascii() and location[0].isalpha()):
        return "must be relative to the model's folder"
    if ".." in location.split("/"):
        return "must stay in the model's folder: `..` leads out of a folder"
    if location.rpartition("/")[2] in {"", "."}:
        return "must name a file, and ends like the name of a folder"
    try:
        os.fsencode(location)
    except UnicodeEncodeError:
        return "cannot be the name of a file"
    return ""


def _windows_problem(location: str) -> str:
    """Return what Windows would open instead of the file that a location names; empty where nothing."""
    if ":" in location:
        return "has a colon, which on Windows names a drive or a stream of a file"
    for part in _components(location):
        if part[-1] in ". ":
            return f"has the component {quote(part)}: Windows drops the dots and spaces at its end"
        if is_device_name(part):
            return f"has the component {quote(part)}: Windows opens a device under that name"
    return ""
