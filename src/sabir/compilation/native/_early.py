"""Early compilation: threads generate code for kernels of a plan that is still being built."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from sabir.compilation.native._emitting import Emission, helping_threads
from sabir.compilation.native._llvm import LOCK
from sabir.compilation.native._objects import Source, is_made, key_of, symbol_of

if TYPE_CHECKING:
    from typing import Self

    from sabir.compilation.native._target import Target

_WAITING = 2  # queued kernels for each thread; when all kernels are known, the longest come first


class EarlyKernels:
    """Kernels for a processor whose compilation starts while their plan is built; a context of one thread.

    `Library.load` takes over the started kernels. Those that it does not take are dropped when the context
    ends.

    >>> from sabir.compilation.native import EarlyKernels, Library, Source, host
    >>> nothing = Source('nothing', lambda: 'define void @kernel() { ret void }')
    >>> with EarlyKernels(host()) as early:
    ...     early.begin(nothing)
    ...     library = Library.load([nothing], host(), early=early)
    >>> len(library.addresses)
    1
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._has_lock = self._is_over = False
        self._emission: Emission | None = None
        self.symbols: set[str] = set()  # of the started kernels

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            if self._emission is not None:
                self._emission.end()
        finally:
            self.taken()

    @functools.cached_property
    def _helpers(self) -> int:
        return helping_threads()  # cached: it reads files of the system, and is needed for each kernel

    def has_room(self) -> bool:
        """Return whether threads could be idle unless another kernel is started."""
        if self._is_over:
            return False
        if not self._has_lock:  # while another thread compiles, no kernel starts early
            self._has_lock = LOCK.acquire(blocking=False)
        if self._emission is None:
            return self._has_lock
        return self._emission.waiting < _WAITING * self._helpers

    def begin(self, source: Source) -> None:
        """Start to compile a kernel if there is room; raises UnsupportedError for an invalid text."""
        if not self.has_room():
            return
        key = key_of(source, self._target)
        symbol = symbol_of(key)
        if symbol in self.symbols or is_made(key):
            return
        if self._helpers < 1:
            self._is_over = True
            return
        if self._emission is None:
            self._emission = Emission(self._helpers, self._target)
        self._emission.add(symbol, source.text())
        self.symbols.add(symbol)

    def taken(self) -> Emission | None:
        """Return the emission of the started kernels, None if there are none; no more kernels can start.

        The caller must hold the lock of LLVM until it ends the emission.
        """
        emission, self._emission, self._is_over = self._emission, None, True
        if self._has_lock:
            self._has_lock = False
            LOCK.release()
        return emission
