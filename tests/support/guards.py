"""Memory between pages that nobody may touch, for the tensors of the compiled engine.

After `install`, a read or write outside of a tensor ends the process. Tensors lie at the end of their pages, where
an access past the last element is found, or with `Guards.before` at the begin.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sabir.compilation.cache import weights as _weights
from sabir.compilation.engine.compiled import Compiled
from sabir.compilation.plan import layout as _instance
from sabir.compilation.plan.entries import Entry
from sabir.compilation.runtime import binding as _binding
from sabir.compilation.runtime import fast as _fast
from sabir.compilation.runtime import program as _program
from sabir.compilation.runtime import running as _running

if TYPE_CHECKING:
    import sabir

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None, use_errno=True)
_UNIQUE = itertools.count(1)
_STEP = 1 << 20  # bytes: more than twice the number of arenas


class Guards:
    """Where memory is put."""

    before: ClassVar[bool] = False  # at the begin of its pages, or at their end
    holes: ClassVar[dict[int, list[tuple[int, int]]]] = {}  # of arenas, by their size: pages to guard


def _protect(address: int, size: int) -> None:
    failed = _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), 0)
    assert not failed, ctypes.get_errno()


def memory(size: int) -> np.ndarray:
    """So many bytes between two guarded pages."""
    pages = -(-max(size, 1) // PAGE)
    mapped = np.frombuffer(mmap.mmap(-1, (pages + 2) * PAGE), np.uint8)
    address = mapped.ctypes.data
    _protect(address, PAGE)
    _protect(address + (pages + 1) * PAGE, PAGE)
    start = PAGE if Guards.before else (pages + 1) * PAGE - size
    return mapped[start : start + size]


def allocated(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array in guarded memory, filled with what no test expects."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    flat = memory(size)
    flat[...] = 0xA5
    return np.ndarray(shape, dtype, flat)


def guarded(array: Any) -> np.ndarray:
    """A copy in guarded memory."""
    copy = allocated(array.shape, array.dtype) if array.dtype.kind != "O" else array
    copy[...] = array
    return copy


def guarded_feed(x: Any) -> Any:
    """A copy of a feed in guarded memory, with the same order of elements and the same gaps between them."""
    if not isinstance(x, np.ndarray) or x.dtype.kind == "O" or not x.size:
        return x
    ends = [(size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)]
    first, last = sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)
    base = memory(last - first + x.itemsize)
    copy = np.ndarray(x.shape, x.dtype, base, -first, x.strides)
    copy[...] = x
    return copy


def aligned(size: int) -> np.ndarray:
    """Memory that begins at a multiple of 64; an arena has guards between its tensors, too."""
    if size in Guards.holes:
        found = np.frombuffer(mmap.mmap(-1, size), np.uint8)
        for start, length in Guards.holes.pop(size):
            _protect(found.ctypes.data + start, length)
        return found
    rounded = -(-size // 64) * 64
    return memory(rounded)[:size]


def arena(part: Any, sizes: Any) -> tuple[dict, int]:
    """An arena whose tensors share no page."""
    at, offsets, holes = PAGE, {}, [(0, PAGE)]
    for buffer in part.owned:
        size = max(sizes(buffer.size), 1)
        pages = -(-size // PAGE) * PAGE
        # a packed tensor is a multiple of 64 bytes, and so is its offset; others may lie anywhere
        offsets[buffer] = at if Guards.before else at + pages - size
        holes.append((at + pages, PAGE))
        at += pages + PAGE
    # by which `aligned` finds the holes again: no other arena has this size, and scratch memory has an even one
    total = -(-at // _STEP) * _STEP + 2 * next(_UNIQUE) + 1
    Guards.holes[total] = holes
    return offsets, total


class Numpy:
    """numpy, whose copies of constants are guarded."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def ascontiguousarray(array: np.ndarray) -> np.ndarray:
        """A guarded copy."""
        return guarded(array)


def install() -> None:
    """Let the engine take all memory from here."""
    for module in (_binding, _instance, _program, _running, _weights):
        for function in (allocated, aligned):
            if hasattr(module, function.__name__):
                setattr(module, function.__name__, function)
    _instance._arena = arena
    _fast._EMPTY = allocated
    _program.np = Numpy()
    bind = _binding.Binding.bind

    def guarded_bind(self: Any, buffer: Any, array: np.ndarray) -> None:
        bind(self, buffer, array if buffer.kind in {"input", "output"} else guarded(array))

    _binding.Binding.bind = guarded_bind


def is_native(session: sabir.Session) -> bool:
    """Whether a plan of the session has a kernel."""
    engine = session._engine
    if not isinstance(engine, Compiled):
        return False
    plans = [p.plan for p in engine._plans]
    return any(isinstance(e, Entry) for plan in plans for e in plan.entries)
