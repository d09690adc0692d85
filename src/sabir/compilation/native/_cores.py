"""The number of processor cores that this process may use."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from sabir.base import control_groups, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator


def usable_cores(root: Path = Path("/")) -> int:
    """Return the number of cores this process may use: its affinity, bounded by the CPU quota of its cgroups.

    A quota of 2.5 cores counts as 2: threads that wait for each other are as slow as the slowest. `root` is
    the folder of /proc and /sys.
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
    """Yield the quota in cores of each control group that contains this process, if it has one."""
    for is_second, group in control_groups("cpu", root):
        quota = _quota_v2(group) if is_second else _quota_v1(group)
        if quota is not None:
            yield quota


def _quota_v2(group: Path) -> float | None:
    """Return the quota in cores from `cpu.max`: `200000 100000` is 2, `max 100000` is None."""
    return _ratio(*[*read_text(group / "cpu.max").split(), "", ""][:2])


def _quota_v1(group: Path) -> float | None:
    return _ratio(read_text(group / "cpu.cfs_quota_us"), read_text(group / "cpu.cfs_period_us"))


def _ratio(quota: str, period: str) -> float | None:
    try:
        microseconds, each = int(quota), int(period)
    except ValueError:
        return None
    return microseconds / each if microseconds > 0 and each > 0 else None
