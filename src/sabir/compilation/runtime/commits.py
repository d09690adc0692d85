"""The end of a run that writes results over feeds."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


class Commit(Generic[T]):
    """Permits a run to write results over feeds, and reports whether it has done so.

    `prepare` is called with all results before a kernel runs; it may raise to refuse them, and its result is
    kept as `prepared`. Native code sets `done` when the last result is written, so an exception after that,
    such as KeyboardInterrupt, loses nothing.

    >>> commit = Commit(len)
    >>> commit.done
    False
    """

    __slots__ = ("_prepare", "_word", "address", "prepared")

    def __init__(self, prepare: Callable[[Mapping[str, Any]], T]) -> None:
        self._prepare = prepare
        self.prepared: T | None = None
        self._word = ctypes.c_int64(0)
        self.address = ctypes.addressof(self._word)

    def prepare(self, results: Mapping[str, Any]) -> None:
        """Call the function of the constructor with all results; raises what that raises."""
        self.prepared = self._prepare(results)

    @property
    def done(self) -> bool:
        """Whether the results are written."""
        return self._word.value != 0


__all__ = ["Commit"]
