"""The threads of numpy's BLAS, bounded while runs last.

The number of threads belongs to the process, and runs overlap: each request is valid until its run ends, the
smallest one applies, and after the last the libraries have their former numbers again.
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class ThreadLimit:
    """A request to use at most `threads` threads, from its creation until `release`, or the end of a `with`.

    A request that is dropped without a release, as by an interrupt, releases itself.
    """

    def __init__(self, threads: int) -> None:
        key = _REQUESTS.add(threads)
        self.release: Callable[[], Any] = weakref.finalize(self, _REQUESTS.drop, key)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.release()


class _Requests:
    """The requests in force, and the libraries that they apply to."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # a finalizer may run inside
        self._threads: dict[int, int] = {}
        self._keys = 0
        self._before: list[
            tuple[Any, int]
        ] = []  # the libraries, each with its number before the first request

    def add(self, threads: int) -> int:
        with self._lock:
            if not self._threads:
                self._restore()  # in case an interrupt prevented it after the last release
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
