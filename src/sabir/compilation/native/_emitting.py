"""Parallel code generation: one thread emits and optimizes texts, and others generate machine code.

The longest queued text is taken first, so that no thread finishes long after the others.

llvmlite holds a lock during each call of LLVM. Code generation takes most of the time. Each thread has a
separate target machine, and each module a separate context, so LLVM permits concurrent code generation.
Therefore this one function is called without the lock.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from queue import Empty, PriorityQueue, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from sabir.compilation.native._compile import checked, kernel_module
from sabir.compilation.native._cores import usable_cores
from sabir.compilation.native._llvm import LOCK, llvm
from sabir.compilation.native._target import machine, new_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from sabir.compilation.native._target import Target

_MOST_THREADS = 4
_FEW = 3  # with fewer kernels, threads cost more than they save
_MOST_WAITING = 16  # modules in memory: LLVM needs about 1 MB for each


def objects_of(
    texts: Sequence[tuple[str, Callable[[], str]]], target: Target, begun: Emission | None = None
) -> Generator[tuple[str, bytes]]:
    """Yield (symbol, object) of kernels in any order; `texts` are pairs of symbol and function for the text.

    If `begun` is an emission, its kernels are yielded as well, and it ends. Raises UnsupportedError as
    `object_of` does.
    """
    if begun is None and (len(texts) < _FEW or helping_threads() < 1):
        for symbol, text in texts:
            with kernel_module(text(), symbol, target) as module:
                image = checked(machine(target).emit_object(module))
            yield symbol, image
        return
    with LOCK:  # no fork while a thread is in LLVM
        work = begun or Emission(min(helping_threads(), len(texts) - 1), target)
        try:
            for symbol, text in texts:
                work.add(symbol, text())
                yield from work.taken(_MOST_WAITING)
            yield from work.taken(0)
        finally:
            work.end()


def helping_threads() -> int:
    """Return the number of threads that may generate code in addition to the calling thread."""
    return min(usable_cores(), _MOST_THREADS) - 1 if _library() is not None else 0


class Emission:
    """A queue of kernels that threads generate code for, until `end`.

    The caller holds the lock of LLVM for the life of the emission.
    """

    def __init__(self, helpers: int, target: Target) -> None:
        self._target = target
        self._tasks: PriorityQueue[_Task] = PriorityQueue()
        self._results: SimpleQueue[_Result] = SimpleQueue()
        self._modules: dict[str, contextlib.ExitStack] = {}  # of the kernels whose objects are not yet taken
        self._threads: list[threading.Thread] = []
        with contextlib.suppress(RuntimeError):  # if the system refuses threads, `taken` does the work
            for number in range(helpers):
                thread = threading.Thread(target=self._work, name=f"sabir-compiler-{number}")
                thread.start()
                self._threads.append(thread)

    def add(self, symbol: str, text: str) -> None:
        """Optimize a kernel, and add it to the queue; raises UnsupportedError for an invalid text."""
        with contextlib.ExitStack() as stack:
            module = stack.enter_context(kernel_module(text, symbol, self._target))
            self._modules[symbol] = stack.pop_all()
        self._tasks.put(_Task(-len(text), symbol, module))

    @property
    def waiting(self) -> int:
        """The number of kernels in the queue."""
        return self._tasks.qsize()

    def taken(self, most: int) -> Iterator[tuple[str, bytes]]:
        """Yield (symbol, object) of finished kernels; generate code here while more than `most` are open."""
        while len(self._modules) > most or (self._modules and not self._results.empty()):
            with contextlib.suppress(Empty):
                if self._results.empty():
                    self._results.put(_result_of(self._tasks.get_nowait(), self._target))
            result = self._results.get()
            self._modules.pop(result.symbol).close()
            yield result.symbol, result.checked()

    def end(self) -> None:
        """Drop queued kernels, join the threads even if the user interrupts, and free the modules."""
        try:
            with contextlib.suppress(Empty):
                while True:
                    self._tasks.get_nowait()
            for _ in self._threads:
                self._tasks.put(_END)
            for thread in self._threads:
                thread.join()
        except KeyboardInterrupt:
            self.end()
            raise
        while self._modules:
            self._modules.popitem()[1].close()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not _END:
            self._results.put(_result_of(task, self._target))


class _Task(NamedTuple):
    """The module of a kernel, and its priority in the queue: smaller is earlier."""

    place: int
    symbol: str
    module: Any


_END = _Task(0, "", None)


class _Result(NamedTuple):
    """The object of a kernel, or the error of its code generation."""

    symbol: str
    image: bytes | Exception

    def checked(self) -> bytes:
        """Return the object, or raise the error."""
        if isinstance(self.image, Exception):
            raise self.image
        return checked(self.image)


def _result_of(task: _Task, target: Target) -> _Result:
    try:
        return _Result(task.symbol, _emitted(task.module, target))
    except Exception as error:  # ruff: ignore[blind-except]  it is raised where the result is taken
        return _Result(task.symbol, error)


_own = threading.local()


def _emitted(module: Any, target: Target) -> bytes:
    """Return the object of a module, generated by the target machine of this thread."""
    library = _library()
    if getattr(_own, "target", None) != target:
        _own.target, _own.machine = target, new_machine(target)
    problem = ctypes.c_char_p()
    buffer = library.LLVMPY_TargetMachineEmitToMemory(_own.machine, module, 1, ctypes.byref(problem))
    if not buffer:
        raise RuntimeError(f"LLVM generated no code: {problem.value!r}")
    try:
        start, size = library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer)
        return ctypes.string_at(start, size)
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


@functools.cache
def _library() -> Any:
    """Return llvmlite's library without its locks; None if it does not have the functions."""
    word = ctypes.c_void_p
    try:
        library = ctypes.CDLL(llvm().ffi.lib._name)  # ruff: ignore[private-member-access]  as of a ctypes.CDLL
        emit, start = library.LLVMPY_TargetMachineEmitToMemory, library.LLVMPY_GetBufferStart
        size, dispose = library.LLVMPY_GetBufferSize, library.LLVMPY_DisposeMemoryBuffer
    except (AttributeError, OSError):
        return None
    emit.restype = start.restype = word
    start.argtypes = size.argtypes = dispose.argtypes = [word]
    size.restype = ctypes.c_size_t
    return library
