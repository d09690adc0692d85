"""The threads that run plans: teams, runs, and the cancellation of runs.

A plan is an array of rows: see `_driver`. The workers of a team are daemon threads that enter the driver once
and stay in it: they need no interpreter lock, and never delay the end of the process. All sessions with the
same number of threads share the workers of one crew, which ends when the last session drops or releases its
team. A forked child process has none of its parent's threads: its first run starts new workers.

A run uses the workers if they are idle, and its thread also computes the shares of late workers. Otherwise it
runs alone on the calling thread: kernels divide their work into shares, and results do not depend on the
number of shares. A run returns to Python when a slice is over, so that Python handles signals, such as
Ctrl-C, and the caller can check deadlines.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compilation.native._block import SLOTS, new_block
from sabir.compilation.native._driver import END, WORK, driver_text
from sabir.compilation.native._objects import Library
from sabir.compilation.native._system import clock_kind, services

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.compilation.native._block import Block
    from sabir.compilation.native._system import Services
    from sabir.compilation.native._target import Target


class _Driver(NamedTuple):
    run: Any
    library: Library  # keeps the function in memory
    run_address: int

    def serve(self, team: int, task: int) -> None:
        """Run a task without a plan: `WORK` or `END`."""
        self.run(team, None, task, task + 1, None, None)


_drivers: dict[Target, _Driver] = {}  # their code stays in memory for the life of the process


def _driver(target: Target) -> _Driver:
    """Return the driver for this processor; it is loaded on first use."""
    found = _drivers.get(target)
    if found is None:
        library = Library.load([text_of_driver(target)], target)
        word = ctypes.c_void_p  # for row numbers too: ctypes converts it twice as fast as c_int64
        run = ctypes.CFUNCTYPE(ctypes.c_int64, word, word, word, word, word, word)
        (address,) = library.addresses
        found = _drivers[target] = _Driver(run(address), library, address)
    return found


class Control:
    """A word in memory that cancels runs; `address` is for the driver. A cancelled control stays cancelled.

    >>> control = Control()
    >>> control.cancel()
    >>> control.cancelled
    True
    """

    __slots__ = ("_word", "address")

    def __init__(self) -> None:
        self._word = ctypes.c_int64(0)
        self.address = ctypes.addressof(self._word)

    def cancel(self) -> None:
        """Make the runs with this control stop after their current row; any thread may call it."""
        self._word.value = 1

    @property
    def cancelled(self) -> bool:
        """Whether `cancel` was called."""
        return self._word.value != 0


class _Crew:
    """The workers that all teams of one size share, and the block of memory that controls them."""

    def __init__(self, threads: int, target: Target, given: Services) -> None:
        self._threads, self.target = threads, target
        self._services = given
        self._blocks: list[Block] = []  # also older ones, which a run of another thread may still use
        self._renew()

    def _renew(self) -> None:
        self.block = new_block(self._services, self._threads)
        self._blocks.append(self.block)
        self.address = int(self.block.ctypes.data)
        self._end = weakref.finalize(self, _finish, self.target, self.block, self.address)
        self._end.atexit = False  # workers do not delay the end of the process
        self.started = self._threads <= 1

    @functools.cached_property
    def driver(self) -> _Driver:
        """The driver; it is loaded on first use."""
        return _driver(self.target)

    def start(self) -> None:
        """Start the workers, once; if the system refuses some, runs do without these."""
        _ = self.driver  # before the lock: it may wait for LLVM
        with _lock:
            if self.started or sys.is_finalizing():
                return
            self.started = True
        try:
            workers = _start(self.target, self.block, self.address, self._threads)
        except BaseException:  # such as KeyboardInterrupt: the next run starts new workers
            self._end()
            self._renew()
            raise
        self.block[SLOTS["workers"]] = workers  # from now on runs use them

    def forget(self) -> None:
        """Reset the crew in a forked process, where the workers do not exist."""
        self._end.detach()
        self._renew()


def _start(target: Target, block: Block, address: int, threads: int) -> int:
    """Start the `threads - 1` workers; return how many the system permitted."""
    workers = 0
    with contextlib.suppress(RuntimeError):
        for number in range(1, threads):
            worker = threading.Thread(
                target=_work, args=(target, block, address), name=f"sabir-{threads}-{number}", daemon=True
            )
            worker.start()
            workers += 1
    return workers


def _work(target: Target, _block: Block, address: int) -> None:
    _driver(target).serve(address, WORK)  # the argument keeps the block alive until it returns


def _finish(target: Target, _block: Block, address: int) -> None:
    if target in _drivers:  # else no worker has entered it
        _drivers[target].serve(address, END)


class Team:
    """Threads that run plans together; `team` returns one for a session.

    >>> from sabir.compilation.native import host
    >>> with_two = team(2, host())
    >>> with_two.threads
    2
    """

    __slots__ = ("__weakref__", "_crew", "threads")

    def __init__(self, threads: int, crew: _Crew) -> None:
        self.threads = threads
        self._crew = crew

    def run(self, plan_address: int, first: int, last: int, buffers_address: int, control: Control) -> int:
        """Run the rows from `first` to before `last`, one after another; return the next row.

        The result is `last`, or less if the control is cancelled or a slice of 20 ms is over: then call again
        from there. The caller keeps plan, buffers and control alive until the call returns.
        """
        crew = self._crew
        if not crew.started:
            crew.start()
        return crew.driver.run(crew.address, plan_address, first, last, buffers_address, control.address)

    def entry(self) -> tuple[int, int]:
        """Start the team; return the addresses of the driver's function and of the team's block.

        The second address changes in a forked child process: see `memory`.
        """
        crew = self._crew
        if not crew.started:
            crew.start()
        return crew.driver.run_address, crew.address

    @property
    def target(self) -> Target:
        """The processor that the threads run on."""
        return self._crew.target

    @property
    def memory(self) -> int:
        """The address of the team's block."""
        return self._crew.address

    def release(self) -> None:
        """Release the workers: they end at once if no other team uses them. Later runs use one thread.

        Dropping the team does the same. Runs of other threads that still use this team are not affected.
        """
        self._crew = _single(self.target)


def text_of_driver(target: Target) -> str:
    """Return the LLVM module of the driver for a processor and this operating system."""
    return driver_text(target.architecture, clock_kind())


def load_driver(target: Target) -> None:
    """Load the driver before the first run; raises what `Library.load` raises."""
    _driver(target)


def team(threads: int, target: Target) -> Team:
    """Return a team of `threads` threads on this processor, including the caller of a run.

    Workers start with the first run.

    >>> from sabir.compilation.native import host
    >>> team(1, host()).threads
    1
    """
    return Team(threads, _single(target) if threads <= 1 else _crew(threads, target))


def execute(
    team: Team,
    plan_address: int,
    first: int,
    last: int,
    buffers_address: int,
    control: Control,
    check: Callable[[], object],
) -> int:
    """Run the rows from `first` to before `last`, and call `check` between slices; return the next row.

    The result is `last`, or less if the control is cancelled. `check` may raise to abort the run, for example
    after a deadline.
    """
    row = team.run(plan_address, first, last, buffers_address, control)
    while row < last and not control.cancelled:
        check()
        row = team.run(plan_address, row, last, buffers_address, control)
    return row


_lock = threading.RLock()  # reentrant: a signal handler may run a plan, too
_crews: weakref.WeakValueDictionary[tuple[int, Target], _Crew] = weakref.WeakValueDictionary()


@functools.cache
def _single(target: Target) -> _Crew:
    """Return the crew without workers."""
    return _Crew(1, target, services())


def _crew(threads: int, target: Target) -> _Crew:
    with _lock:
        crew = _crews.get((threads, target))
        if crew is None:
            crew = _crews[threads, target] = _Crew(threads, target, services())
        return crew


def _begin_child() -> None:
    global _lock  # ruff: ignore[global-statement]  another thread of the parent may hold the old one
    _lock = threading.RLock()
    for crew in list(_crews.values()):
        crew.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)
