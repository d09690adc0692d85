"""The rows of a native plan: each the address of a kernel, that of its block of arguments, and `FINE` or 0.

In a fine row threads claim several shares each, so that a fast core does more than a slow one.

Entries that run in turn have a row for each turn. Such a row points to the arguments `TURN`: all turns share
a block.
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
"""The third number of a row in which each thread has several shares."""
_MOST_ROWS = 1 << 21  # of entries that run in turn: 32 bytes each
_WORD = 8
TURN = KernelSignature(turn="number", block="address")
"""The arguments of a kernel that runs in turns: the number of the turn, and the address of its block."""


class KernelCall(NamedTuple):
    """A kernel with its block: the number of its entry, how often it runs, and in turn with which others.

    `fine` says that the work of a thread is worth several shares.
    """

    entry: int
    kernel: int
    block: Sequence[int]
    turns: EntryLoop | None
    times: int
    fine: bool = False


class NativeRows(NamedTuple):
    """The rows, the memory that they point into, and the number of the entry of each."""

    rows: Array
    memory: Array
    owners: Array


def rows_of(calls: Sequence[KernelCall]) -> NativeRows:
    """Return the rows of calls; raises Mismatch where there are too many."""
    starts = np.cumsum([0, *(len(call.block) for call in calls)], dtype=np.int64)
    groups: list[list[int]] = []
    for _, group in groupby(enumerate(calls), key=lambda n: n[1].loop):
        groups.append([place for place, _ in group])
    turned = sum(len(g) * calls[g[0]].times for g in groups if calls[g[0]].loop is not None)
    if turned > _MOST_ROWS:
        raise Mismatch(f"{turned} steps are too many for one plan")
    memory: Array = np.empty(int(starts[-1]) + TURN.words * turned, np.int64)
    memory[: starts[-1]] = [n for call in calls for n in call.block]
    found: list[Array] = [np.empty((0, 4), np.int64)]
    free = int(starts[-1])
    for places in groups:
        first = calls[places[0]]
        blocks = memory.ctypes.data + _WORD * starts[places]
        if first.loop is not None:
            shape = first.times, len(places), TURN.words
            turns = memory[free : free + math.prod(shape)].reshape(shape)
            turns[..., TURN.find("turn")[0]] = np.arange(first.times)[:, None]
            turns[..., TURN.find("block")[0]] = blocks
            blocks = memory.ctypes.data + _WORD * np.arange(free, free + turns.size, TURN.words)
            free += turns.size
        rows: Array = np.empty((first.times, len(places), 4), np.int64)
        rows[..., 0] = [calls[place].kernel for place in places]
        rows[..., 1] = blocks.reshape(first.times, len(places))
        rows[..., 2] = [FINE if calls[place].fine else 0 for place in places]
        rows[..., 3] = [calls[place].entry for place in places]
        found.append(rows.reshape(-1, 4))
    table = np.concatenate(found)
    return NativeRows(np.ascontiguousarray(table[:, :3]), memory, np.ascontiguousarray(table[:, 3]))
