"""The block of memory that the threads of a team share: its 64-bit fields, and its creation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from sabir.compilation.native._system import Services

Block: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

LINE = 16  # 64-bit numbers in two cache lines: processors fetch lines in pairs

SLOTS = {
    # constant while the team lives
    "syscall": 0,  # address of the function; 0 if there is no futex
    "futex": 1,  # the number of the futex system call
    "sched_yield": 2,  # address of the function that yields the processor to another thread
    "nap": 3,  # address of the function that sleeps for a number of units
    "longest_nap": 4,  # units
    "clock": 5,  # address of the function that reads a clock
    "fine": 6,  # number of the clock for waiting
    "coarse": 7,  # number of the clock for slices
    "slice": 8,  # clock ticks after which a run returns to Python
    "spin": 9,  # clock ticks for which a thread polls
    "patience": 10,  # clock ticks for which it polls and yields, before it sleeps
    "workers": 11,  # number of worker threads; 0 until they are started
    # each on separate cache lines, because they are written at different times
    "gate": LINE,
    "arrived": 2 * LINE,
    "busy": 3 * LINE,
    "present": 4 * LINE,
    # the run
    "plan": 5 * LINE,
    "first": 5 * LINE + 1,
    "last": 5 * LINE + 2,
    "buffers": 5 * LINE + 3,
    "control": 5 * LINE + 4,
    "deadline": 5 * LINE + 5,
    "opened": 5 * LINE + 6,  # the gate number of its first row
    "next": 6 * LINE,  # the row after the last finished one
    # for each thread, on separate cache lines: the gate number of the last row with a claim of its shares, in
    # the upper 32 bits, and the number of claimed shares
    "claims": 7 * LINE,
}
ALIGNMENT = 8 * LINE
"""The alignment of a block in bytes."""
CLOSED = 1
"""The gate of a new team."""

# the slice, spin and patience times are a second divided by these
_SLICE, _SPIN, _PATIENCE = 50, 250_000, 20_000


def new_block(given: Services, threads: int) -> Block:
    """Return a new block for a team of `threads` threads; `given` are the services of the system."""
    size = SLOTS["claims"] + threads * LINE
    memory = np.zeros(size + ALIGNMENT // 8, np.int64)
    skipped = -int(memory.ctypes.data) % ALIGNMENT // 8
    block = memory[skipped : skipped + size]
    for name in ("syscall", "futex", "sched_yield", "nap", "longest_nap", "clock", "fine", "coarse"):
        block[SLOTS[name]] = getattr(given, name)
    for name, part in (("slice", _SLICE), ("spin", _SPIN), ("patience", _PATIENCE)):
        block[SLOTS[name]] = given.second // part
    block[SLOTS["gate"] :].view(np.int32)[0] = CLOSED
    return block
