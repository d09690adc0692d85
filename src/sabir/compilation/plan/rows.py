"""The rows of a native plan: (address of a kernel, address of its block of arguments, flags).

In a fine row each thread claims several shares, so that a fast core computes more than a slow one.

A row of control flow has the flag `CONTROL`: its kernel decides whether the next row is the following one, or
the one at the distance that the upper bits of the flags have. So branches and loops are parts of a plan.

Entries in a loop have a row for each iteration. Such a row points to the arguments `ITERATION`: all
iterations share a block.
"""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.compilation.plan.entries import Mismatch
from sabir.compilation.plan.signature import KernelSignature

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.plan.entries import EntryLoop
    from sabir.ir import Array

FINE = 8
"""The flag of a row in which each thread has several shares."""
CONTROL = 16
"""The flag of a row of control flow."""
DISTANCE = 32
"""The first bit of the distance to the row that a row of control flow may continue at."""
_MOST_ROWS = 1 << 21  # of entries in a loop: 32 bytes each
_WORD = 8
ITERATION = KernelSignature(iteration="number", block="address")
"""The arguments of a kernel in a loop of entries: number of the iteration, address of its block."""


class KernelCall(NamedTuple):
    """A kernel with its block of arguments, the number of its entry, and its loop.

    `times` is how often it runs. If it is `fine`, a thread claims several shares. A call of control flow may
    jump to the first row of the entry `target`, or of the next one that has rows.
    """

    entry: int
    kernel: int
    block: Sequence[int]
    loop: EntryLoop | None
    times: int
    fine: bool = False
    target: int | None = None


class NativeRows(NamedTuple):
    """The rows, the memory that their blocks are in, and the number of the entry of each row."""

    rows: Array
    memory: Array
    owners: Array


def rows_of(calls: Sequence[KernelCall]) -> NativeRows:
    """Return the rows of calls; raises Mismatch if there are too many."""
    starts = np.cumsum([0, *(len(call.block) for call in calls)], dtype=np.int64)
    groups: list[list[int]] = []
    for _, group in groupby(enumerate(calls), key=lambda n: n[1].loop):
        groups.append([place for place, _ in group])
    iterations = sum(len(g) * calls[g[0]].times for g in groups if calls[g[0]].loop is not None)
    if iterations > _MOST_ROWS:
        raise Mismatch(f"{iterations} steps are too many for one plan")
    memory: Array = np.empty(int(starts[-1]) + ITERATION.words * iterations, np.int64)
    memory[: starts[-1]] = [n for call in calls for n in call.block]
    found: list[Array] = [np.empty((0, 4), np.int64)]
    free = int(starts[-1])
    for numbers in groups:
        first = calls[numbers[0]]
        blocks = memory.ctypes.data + _WORD * starts[numbers]
        if first.loop is not None:
            shape = first.times, len(numbers), ITERATION.words
            headers = memory[free : free + math.prod(shape)].reshape(shape)
            headers[..., ITERATION.find("iteration")[0]] = np.arange(first.times)[:, None]
            headers[..., ITERATION.find("block")[0]] = blocks
            blocks = memory.ctypes.data + _WORD * np.arange(free, free + headers.size, ITERATION.words)
            free += headers.size
        rows: Array = np.empty((first.times, len(numbers), 4), np.int64)
        rows[..., 0] = [calls[number].kernel for number in numbers]
        rows[..., 1] = blocks.reshape(first.times, len(numbers))
        rows[..., 2] = [FINE if calls[number].fine else 0 for number in numbers]
        rows[..., 3] = [calls[number].entry for number in numbers]
        found.append(rows.reshape(-1, 4))
    table = np.concatenate(found)
    for call in calls:
        if call.target is not None:
            row, target = np.searchsorted(table[:, 3], (call.entry, call.target)).tolist()
            table[row, 2] = CONTROL + ((target - row) << DISTANCE)
    return NativeRows(np.ascontiguousarray(table[:, :3]), memory, np.ascontiguousarray(table[:, 3]))


def blocks_of(rows: Array) -> list[int]:
    """Return for each row the first row of its block: rows that jump run with all rows between them.

    A run from the first row of a block ends behind its last row.
    """
    found, first, last = list[int](), 0, -1
    for row, flags in enumerate(rows[:, 2].tolist()):
        if row > last:
            first = row
        if flags & CONTROL:
            last = max(last, row + (flags >> DISTANCE) - 1)
        found.append(first)
    return found
