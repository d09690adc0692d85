"""The threads of numpy's BLAS, bounded while runs last.

The number of threads is the process's, and runs overlap: each request stands until its run ends, the least
one holds, and after the last the libraries get back what they had.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadLimit:
    """A request to use at most `threads` threads, from its making until `release`.

    One that is dropped without a release, as an interrupt may do, releases itself.
    """

    def __init__(self, threads: int) -> None:
        key = _REQUESTS.add(threads)
        self.release: Callable[[], Any] = weakref.finalize(self, _REQUESTS.drop, key)


class _Requests:
    """The requests in force, and the libraries that they hold for."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may run inside
        self._threads: dict[int, int] = {}
        self._keys = 0
        self._before: list[tuple[Any, int]] = []  # the libraries, with what each had before the first request

    def add(self, threads: int) -> int:
        with self._lock:
            if not self._threads:
                self._restore()  # where an interrupt came between the last release and this
                self._before = [(library, library.num_threads) for library in _libraries()]
            self._keys += 1
            self._threads[self._keys] = threads
            self._apply()
            return self._keys

    def drop(self, key: int) -> None:
        with self._lock:
            self._threads.pop(key, None)
            if self._threads:
                self._apply()
            else:
                self._restore()

    def _apply(self) -> None:
        least = min(self._threads.values())
        for library, _ in self._before:
            library.set_num_threads(least)

    def _restore(self) -> None:
        for library, before in self._before:
            library.set_num_threads(before)
        self._before = []


_REQUESTS = _Requests()


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries of the process; numpy has loaded its own by now."""
    # ruff: ignore[import-outside-top-level]  20 ms that only this option needs
    from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs] - it has none

    controller: Any = ThreadpoolController()
    return controller.lib_controllers
