"""What the machine, and the control groups around this process, allow it to use."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_TEXT = 1 << 16  # characters of a file below /proc or /sys; those read here have a line or two a group


def usable_memory(root: Path = Path("/")) -> int | None:
    """Return how many bytes of memory this process may use, or None where the system does not say.

    It is the physical memory, bounded by the limits of its control groups. `root` contains /proc and /sys.
    """
    found = [n for n in [_physical_memory(), *_group_limits(root)] if n]
    return min(found, default=None)


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[tuple[bool, Path]]:
    """Yield the control groups around this process, and whether each belongs to version 2.

    In a container the path of the process may be the host's, so every prefix of the path is tried.
    """
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            mounts, is_second = ["."], True
        elif controller in controllers.split(","):
            mounts, is_second = [controllers, controller], False
        else:
            continue
        parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
        for mount in mounts:
            for count in range(len(parts) + 1):
                yield is_second, (root / "sys/fs/cgroup" / mount).joinpath(*parts[:count])


def read_text(path: Path) -> str:
    """Return the stripped text of a small file of the system, or nothing where it cannot be read."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_TEXT).strip()
    except OSError:
        return ""


def _group_limits(root: Path) -> Iterator[int]:
    """Yield the limits of memory of all control groups around this process; `max` is none."""
    for is_second, group in control_groups("memory", root):
        text = read_text(group / ("memory.max" if is_second else "memory.limit_in_bytes"))
        if text.isdecimal():
            yield int(text)


def _physical_memory() -> int | None:
    if sys.platform == "win32":
        return _windows_memory()
    with contextlib.suppress(OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None


def _windows_memory() -> int | None:
    import ctypes  # ruff: ignore[import-outside-top-level]  Windows alone needs it

    class Status(ctypes.Structure):
        """`MEMORYSTATUSEX` of the Windows API."""

        _fields_ = (
            ("length", ctypes.c_uint32),
            ("load", ctypes.c_uint32),
            ("total", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    status = Status(length=ctypes.sizeof(Status))
    kernel = getattr(ctypes, "windll").kernel32  # ruff: ignore[get-attr-with-constant]  Windows alone has it
    return int(status.total) if kernel.GlobalMemoryStatusEx(ctypes.byref(status)) else None
