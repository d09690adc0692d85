"""Memory for large results, which values of the run had that are no longer alive.

The system clears each page of memory that it hands out, and takes it back soon: for a large value this takes
as long as an addition that writes it. So a run keeps such memory for its later values, and for the next run.
"""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from sabir.opsets.typing import Array

LEAST = 1 << 17  # bytes of a result; the allocator keeps smaller pieces itself
_MOST = 1 << 28  # bytes that one run keeps for later values
_CLASSES = 4  # bits of a size that count: pieces are at most an eighth larger than what they hold
_ALIGNMENT = 64  # bytes, the width of the largest vectors


class SpareMemory:
    """The memory of the large results of one run after another; a run has it for itself.

    A piece is spare when no array refers to it: numpy lets each view refer to the array that owns its memory.
    What has left a run, such as a result, therefore never returns.
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._pieces: dict[int, list[_Piece]] = {}
        self._of_last_run: dict[int, list[_Piece]] = {}
        self._size = 0

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """Let `empty` take memory from here, in this thread; at the end, free what the run has not used."""
        outer = _PRESENT.spare
        _PRESENT.spare = self
        try:
            yield
        finally:
            _PRESENT.spare = outer
            self._of_last_run = {
                size: [piece for piece in pieces if piece.is_spare()] for size, pieces in self._pieces.items()
            }
            self._pieces, self._size = {}, 0

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
        """Return an array of `size` bytes, whose contents are undefined."""
        unit = 1 << max(0, size.bit_length() - _CLASSES)
        size = -(-size // unit) * unit
        pieces = self._pieces.setdefault(size, [])
        for piece in pieces:
            if piece.is_spare():
                return piece.array(shape, dtype)
        earlier = self._of_last_run.get(size)
        if self._size + size > _MOST:
            return np.empty(shape, dtype)
        pieces.append(earlier.pop() if earlier else _Piece(size))
        self._size += size
        return pieces[-1].array(shape, dtype)


class _Piece:
    """Memory of one array at a time."""

    __slots__ = ("_memory", "_start")

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size + _ALIGNMENT, np.uint8)
        self._start = -self._memory.ctypes.data % _ALIGNMENT

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.ndarray(shape, dtype, self._memory, self._start)

    def is_spare(self) -> bool:
        return self.references() == _ALONE

    def references(self) -> int:
        return getrefcount(self._memory)


class _Present(threading.local):
    """The memory of the run that this thread is in."""

    spare: SpareMemory | None = None


_PRESENT = _Present()
_ALONE = _Piece(0).references()  # of memory that only its piece refers to


def empty(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array for a result, row by row, whose contents are undefined."""
    spare = _PRESENT.spare
    if spare is None or dtype.hasobject:
        return np.empty(shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if size < LEAST else spare.array(tuple(shape), dtype, size)


def computed(function: Callable[..., Array], *operands: Array) -> Array:
    """Return `function(*operands)`; spare memory serves large operands of one type, if it is a ufunc."""
    for x in operands:
        if x.nbytes >= LEAST:
            break
    else:
        return function(*operands)
    dtype = operands[0].dtype
    if not isinstance(function, np.ufunc) or not _keeps_type(function, dtype.char * len(operands)):
        return function(*operands)
    shape = np.broadcast(*operands).shape
    for x in operands:  # else numpy keeps the order of their memory
        if x.dtype is not dtype or (x.ndim and not x.flags.c_contiguous):
            return function(*operands)
    return function(*operands, out=empty(shape, dtype))


@functools.cache
def _keeps_type(function: np.ufunc, operands: str) -> bool:
    """Whether the result has the type of the operands, whose letters are in `operands`."""
    return f"{operands}->{operands[0]}" in function.types
