"""The memory that the threads of a team share: where each number is, and a new block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from sabir.compilation.native._system import Services

Block: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

LINE = 16  # numbers in two cache lines: processors fetch them in pairs

SLOTS = {
    # constant while the team lives
    "syscall": 0,  # 0 where there is no futex
    "futex": 1,  # the number of that system call
    "turn": 2,  # gives the processor to another thread
    "nap": 3,  # sleeps for a number of units
    "longest_nap": 4,
    "clock": 5,
    "fine": 6,  # the clock for waiting
    "coarse": 7,  # the clock for slices
    "slice": 8,  # how long a run goes on before it returns
    "spin": 9,  # how long a thread polls
    "patience": 10,  # how long it polls and gives its turn to others, before it sleeps
    "workers": 11,  # how many threads work for the callers; 0 until they are started
    # each on lines of its own, for they are written at different times
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
    "opened": 5 * LINE + 6,  # the gate of its first row
    "next": 6 * LINE,  # the row after the last one that is done
    # of each thread, on lines of its own: the number of the row in which one of its shares was claimed last,
    # and how many of them
    "claims": 7 * LINE,
}
ALIGNMENT = 8 * LINE
"""The address of a block is a multiple of so many bytes."""
CLOSED = 1
"""The gate of a new team."""

# parts of a second
_SLICE, _SPIN, _PATIENCE = 50, 250_000, 20_000


def new_block(given: Services, threads: int) -> Block:
    """Return the memory of a team of so many threads, which use some services of the system."""
    size = SLOTS["claims"] + threads * LINE
    memory = np.zeros(size + ALIGNMENT // 8, np.int64)
    skipped = -int(memory.ctypes.data) % ALIGNMENT // 8
    block = memory[skipped : skipped + size]
    for name in ("syscall", "futex", "turn", "nap", "longest_nap", "clock", "fine", "coarse"):
        block[SLOTS[name]] = getattr(given, name)
    for name, part in (("slice", _SLICE), ("spin", _SPIN), ("patience", _PATIENCE)):
        block[SLOTS[name]] = given.second // part
    block[SLOTS["gate"] :].view(np.int32)[0] = CLOSED
    return block
