"""A lock that does not hold up child processes, and the runs that another thread may stop."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sabir.base import CancelledError, budget
from sabir.compilation.native import Control

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from sabir.base import Budget


class ProcessLock:
    """A reentrant lock of one process: a child made by `fork` finds it free, whoever held it in the parent.

    >>> from sabir.compilation.locks import ProcessLock
    >>> with ProcessLock() as lock:
    ...     lock is None
    True
    """

    __slots__ = ("_lock", "_process")

    def __init__(self) -> None:
        self._lock, self._process = threading.RLock(), os.getpid()

    def __enter__(self) -> None:
        if self._process != os.getpid():
            self._lock, self._process = threading.RLock(), os.getpid()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class Stops:
    """The runs of one session that are under way: `cancel` stops them all, those that come later go on.

    Native code looks at `control`, evaluated calls at the budget of their run.
    """

    def __init__(self) -> None:
        self.control = Control()
        self._budgets: dict[int, tuple[Budget, float | None]] = {}
        self._lock = ProcessLock()

    @contextmanager
    def run(self) -> Generator[Control]:
        """Let a run under the budget in force be stopped: it raises CancelledError, even if it could end."""
        present = budget()
        key = id(present)
        with self._lock:
            control = self.control
            outer = self._budgets.setdefault(key, (present, present.deadline))
        try:
            yield control
            if control.cancelled:
                raise CancelledError("the run was cancelled")
        finally:
            self._budgets.pop(key, None)
            present.deadline, present.cancelled = outer[1], False

    def cancel(self) -> None:
        """Stop the runs that are under way."""
        with self._lock:
            stopped, self.control = self.control, Control()
            budgets = [present for present, _ in self._budgets.values()]
        stopped.cancel()
        for present in budgets:
            present.cancel()

    def keep(self, control: Control, store: Callable[[], None]) -> None:
        """Call `store`, which keeps something for later runs, unless `control` was cancelled meanwhile."""
        with self._lock:
            if control is self.control:
                store()
