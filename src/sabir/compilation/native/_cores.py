"""The number of processor cores that this process may use."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST_TEXT = 1 << 16  # characters of a file below /proc or /sys; those read here have a line or two a group


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: its affinity, bounded by the CPU quota of its cgroups.

    A quota of 2.5 cores is 2: threads that wait for each other are slowed down to the last of them. `root` is
    where /proc and /sys are.
    """
    cores = _affinity()
    quotas = list(_quotas(root))
    return max(1, min([cores, *(int(q) for q in quotas)]))


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        with contextlib.suppress(OSError):
            return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the cores that each cgroup around this process allows."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from _above(root / "sys/fs/cgroup", path, _quota_v2)
        elif "cpu" in controllers.split(","):
            for mount in (controllers, "cpu"):
                yield from _above(root / "sys/fs/cgroup" / mount, path, _quota_v1)


def _above(mount: Path, path: str, quota: Callable[[Path], float | None]) -> Iterator[float]:
    """Yield the quotas of a group and those around it; in a container the path may be the host's."""
    parts = [part for part in path.split("/") if part not in {"", ".", ".."}]
    for count in range(len(parts) + 1):
        found = quota(mount.joinpath(*parts[:count]))
        if found is not None:
            yield found


def _quota_v2(group: Path) -> float | None:
    """Return the quota in `cpu.max`: `200000 100000`, or `max 100000` for none."""
    return _ratio(*[*_text(group / "cpu.max").split(), "", ""][:2])


def _quota_v1(group: Path) -> float | None:
    return _ratio(_text(group / "cpu.cfs_quota_us"), _text(group / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    try:
        microseconds, each = int(quota), int(period)
    except ValueError:
        return None
    return microseconds / each if microseconds > 0 and each > 0 else None


def _text(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_TEXT).strip()
    except OSError:
        return ""
