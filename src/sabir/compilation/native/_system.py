"""The services of the operating system that the driver uses: function addresses, system call, clock numbers.

On Linux threads sleep in a futex. On macOS, on Windows, and on processors whose futex call number is not
listed here, they sleep for short times, with `usleep` or `Sleep`. Linux can do the same on request, so the
tests cover this way of sleeping; nothing is tested on macOS and Windows themselves.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import time
from typing import NamedTuple

_FUTEX = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238}
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_COARSE = 6  # CLOCK_MONOTONIC_COARSE of Linux; the time module has no name for it
_ROUGHEST = 0.011  # seconds; with a coarser clock, a slice could last too long
_SECOND = 1_000_000_000


class Services(NamedTuple):
    """Addresses of functions of the system (0: none), and their parameters; `SLOTS` explains them."""

    syscall: int
    futex: int
    sched_yield: int
    nap: int
    longest_nap: int
    clock: int
    fine: int
    coarse: int
    second: int
    """Ticks of the clock in a second."""


def machine() -> str:
    """Return the processor's name: `x86_64`, `aarch64`, …."""
    name = platform.machine().lower()
    return _MACHINES.get(name, name)


def clock_kind() -> str:
    """Return the kind of the clock function, the argument of `clock_text`."""
    return "ticks" if sys.platform == "win32" else "timespec"


def services(*, futex: bool = True) -> Services:
    """Return the services of this system; `futex` False means that threads do not use it."""
    if sys.platform == "win32":
        return _windows()
    libc = ctypes.CDLL(None)
    number = _FUTEX.get(machine(), 0) if futex and sys.platform == "linux" else 0
    return Services(
        syscall=_address(libc, "syscall") if number else 0,
        futex=number,
        sched_yield=_address(libc, "sched_yield"),
        nap=_address(libc, "usleep"),
        longest_nap=4000,
        clock=_address(libc, "clock_gettime"),
        fine=time.CLOCK_MONOTONIC,
        coarse=_coarse_clock(),
        second=_SECOND,
    )


def _coarse_clock() -> int:
    if sys.platform != "linux":
        return time.CLOCK_MONOTONIC
    try:
        return _COARSE if time.clock_getres(_COARSE) < _ROUGHEST else time.CLOCK_MONOTONIC
    except OSError:  # an old kernel, or an emulated one
        return time.CLOCK_MONOTONIC


def _windows() -> Services:
    kernel = ctypes.CDLL("kernel32")
    second = ctypes.c_int64()
    kernel.QueryPerformanceFrequency(ctypes.byref(second))
    return Services(
        syscall=0,
        futex=0,
        sched_yield=_address(kernel, "SwitchToThread"),
        nap=_address(kernel, "Sleep"),
        longest_nap=1,
        clock=_address(kernel, "QueryPerformanceCounter"),
        fine=0,
        coarse=0,
        second=second.value,
    )


def _address(library: ctypes.CDLL, name: str) -> int:
    return ctypes.cast(library[name], ctypes.c_void_p).value or 0
