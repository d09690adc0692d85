"""The roofline of this machine: the peak of floating-point operations and the memory bandwidth of a team.

Two kernels measure them once; the results are in the cache.
"""

from __future__ import annotations

import hashlib
import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.compilation.backends.cpu.emit.limits import ROUNDS, memory_test_text, multiply_test_text
from sabir.compilation.disk import cache
from sabir.compilation.native import Control, Library, execute, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.native import Team
    from sabir.ir import Array

_KIND = "roofline"
_FORMAT = "1"  # version of the way of measuring
_MEMORY = 1 << 28  # bytes that are read: more than caches hold
_ROUNDS = 1 << 16  # loop iterations: about a millisecond, so that other programs do not disturb all runs
_LEAST = 2  # runs: the first one has page faults
_PERIOD = 0.3  # seconds for which a kernel is repeated
_MOST = 1e18  # no machine exceeds it: a larger number in the cache is damaged


class Roofline(NamedTuple):
    """The peak of operations on `float` per second, and of bytes from memory per second.

    >>> Roofline(flops=100e9, bandwidth=10e9).seconds(2_000_000_000, 400_000_000)
    0.04
    """

    flops: float
    bandwidth: float

    def seconds(self, flops: int, moved: int) -> float:
        """Return the least time in seconds for `flops` operations and `moved` bytes."""
        return max(flops / self.flops, moved / self.bandwidth)


def roofline(team: Team) -> Roofline:
    """Return the roofline of a team, from the cache or measured, which takes about a second.

    Raises UnsupportedError if the kernels cannot be compiled.
    """
    key = _key(team)
    found = cache().get(_KIND, key, verify=True)
    known = None if found is None else _read(bytes(found))
    if known is None:
        known = _measured(team)
        cache().put(_KIND, key, json.dumps(known).encode())
    return known


def _key(team: Team) -> bytes:
    target = team.target
    parts = (_FORMAT, target.triple, target.cpu, target.features, str(usable_cores()), str(team.threads))
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _read(data: bytes) -> Roofline | None:
    """Return the roofline in a cache entry; None if the entry is invalid."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    numbers = cast("list[Any]", found) if isinstance(found, list) else []
    if len(numbers) != len(Roofline._fields) or not all(type(n) is float and 0 < n < _MOST for n in numbers):
        return None
    return Roofline(*numbers)


def _measured(team: Team) -> Roofline:
    lanes = team.target.vector_bits // 32
    (multiply, operations), (read, step) = multiply_test_text(lanes), memory_test_text(lanes)
    library = Library.load([multiply, read], team.target)
    results: Array = np.zeros((team.threads, lanes), np.float32)
    memory: Array = np.ones(_MEMORY // 4, np.float32)

    def done() -> int:
        """Return the operations of a run, which uses fewer threads if another run has the workers."""
        return int(np.count_nonzero(results[:, 0])) * _ROUNDS * operations

    flops = _rate(team, library.addresses[0], _ROUNDS, [results], done)
    bandwidth = _rate(team, library.addresses[1], _MEMORY // step, [results, memory], lambda: _MEMORY)
    return Roofline(flops, bandwidth)


def _rate(team: Team, address: int, rounds: int, buffers: list[Array], work: Callable[[], int]) -> float:
    """Return the highest rate of a kernel in a period, in work per second; buffer 0 is for results."""
    block: Array = np.array(ROUNDS.pack({"rounds": rounds}), np.int64)
    row: Array = np.array([[address, block.ctypes.data, 0]], np.int64)
    table: Array = np.array([b.ctypes.data for b in buffers], np.int64)
    rates: list[float] = []
    spent = 0.0
    while len(rates) < _LEAST or spent < _PERIOD:
        buffers[0][:] = 0
        started = time.perf_counter()
        execute(team, row.ctypes.data, 0, 1, table.ctypes.data, Control(), lambda: None)
        seconds = time.perf_counter() - started
        rates.append(work() / seconds)
        spent += seconds
    return max(rates)
