"""The rows of a native plan: each the address of a kernel, that of its block of arguments, and `FINE` or 0.

In a fine row threads claim several shares each, so that a fast core does more than a slow one.

Entries that run in turn have a row for each turn. Such a row points to two numbers: that of the turn, and
the address of the block, which all turns share.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.compilation.native import FINE
from sabir.compilation.plan.entries import Mismatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.compilation.plan.entries import Turns
    from sabir.ir import Array

_MOST_ROWS = 1 << 21  # of entries that run in turn: 32 bytes each
_WORD = 8


class KernelCall(NamedTuple):
    """A kernel with its block: the number of its entry, how often it runs, and in turn with which others.

    `fine` says that the work of a thread is worth several shares.
    """

    entry: int
    kernel: int
    block: Sequence[int]
    turns: Turns | None
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
    for _, group in groupby(enumerate(calls), key=lambda n: n[1].turns):
        groups.append([place for place, _ in group])
    turned = sum(len(g) * calls[g[0]].times for g in groups if calls[g[0]].turns is not None)
    if turned > _MOST_ROWS:
        raise Mismatch(f"{turned} steps are too many for one plan")
    memory: Array = np.empty(int(starts[-1]) + 2 * turned, np.int64)
    memory[: starts[-1]] = [n for call in calls for n in call.block]
    found: list[Array] = [np.empty((0, 4), np.int64)]
    free = int(starts[-1])
    for places in groups:
        first = calls[places[0]]
        blocks = memory.ctypes.data + _WORD * starts[places]
        if first.turns is not None:
            pairs = memory[free : free + 2 * len(places) * first.times].reshape(first.times, len(places), 2)
            pairs[..., 0] = np.arange(first.times)[:, None]
            pairs[..., 1] = blocks
            blocks = memory.ctypes.data + _WORD * np.arange(free, free + pairs.size, 2)
            free += pairs.size
        rows: Array = np.empty((first.times, len(places), 4), np.int64)
        rows[..., 0] = [calls[place].kernel for place in places]
        rows[..., 1] = blocks.reshape(first.times, len(places))
        rows[..., 2] = [FINE if calls[place].fine else 0 for place in places]
        rows[..., 3] = [calls[place].entry for place in places]
        found.append(rows.reshape(-1, 4))
    table = np.concatenate(found)
    return NativeRows(np.ascontiguousarray(table[:, :3]), memory, np.ascontiguousarray(table[:, 3]))
