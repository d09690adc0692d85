"""Bounds on what a test may take: time, and memory where the system tells it."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import sabir

MEMORY = 3 << 29  # 1.5 GiB
SECONDS = 10.0
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
_ASK = "5"  # what proc(5) says to write to begin a new peak


@contextlib.contextmanager
def bounded(seconds=SECONDS, memory=MEMORY):
    """Fail where what is done inside takes longer, or adds more to the process at its peak."""
    before = _peak(anew=True)
    began = time.process_time()
    yield  # ruff: ignore[fallible-context-manager]  an error inside is the test's own
    took, grown = time.process_time() - began, _peak() - before
    assert took < seconds, f"{took:.1f} s"
    assert grown < memory, f"{grown >> 20} MiB"


@contextlib.contextmanager
def untrusted():
    """Let jobs that name no limits run under those for untrusted files."""
    sabir.set_default_limits(sabir.Limits.untrusted())
    try:
        yield
    finally:
        sabir.set_default_limits(None)


def _peak(*, anew=False):
    """The most bytes that the process held since the peak was set back; 0 where nothing tells."""
    if not _CLEAR.exists():
        return 0
    if anew:
        _CLEAR.write_text(_ASK, encoding="ascii")
    return int(_STATUS.read_text(encoding="ascii").partition("VmHWM:")[2].split()[0]) << 10
