"""Memory of arrays that is used again.

The system clears each page of memory that it hands out, and takes it back soon: for a large array this takes
as long as an addition that writes it.
"""

from __future__ import annotations

import contextlib
import math
import threading
from sys import getrefcount
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    Array = np.ndarray[Any, np.dtype[Any]]

ALIGNMENT = 64  # bytes, the width of the largest vectors
LARGE_ARRAY = 1 << 17  # bytes; the allocator keeps smaller pieces itself

_MOST_OF_RUN = 1 << 28  # bytes that one run keeps for later values
_CLASSES = 4  # bits of a size that count: pieces are at most an eighth larger than what they hold
_MOST_BLOCKS = 4
_MOST_STATES = 2  # the present state, and the one that is written


# ---------------------------------------------------------------- arrays and their memory


def is_only_reference(container: Any, key: Any) -> bool:
    """Return whether only `container` refers to its item, an array that owns its memory.

    A view refers to the array that owns its memory, so there is none either.

    >>> state = {'w': np.zeros(2)}
    >>> is_only_reference(state, 'w')
    True
    >>> view = state['w'][:1]
    >>> is_only_reference(state, 'w')
    False
    """
    return _references(container, key) == _ONE


def _references(container: Any, key: Any) -> int:
    return getrefcount(container[key])


_ONE = _references([np.empty(0)], 0)


def owns_memory(array: Array) -> bool:
    """Return whether the memory of an array is its own: two such arrays share nothing.

    >>> owns_memory(np.zeros(3)), owns_memory(np.zeros(3)[1:])
    (True, False)
    """
    return array.base is None and array.flags.owndata


def aligned_start(memory: Array) -> int:
    """Return the first byte of some memory whose address is a multiple of `ALIGNMENT`.

    >>> memory = np.empty(1000, np.uint8)
    >>> (memory.ctypes.data + aligned_start(memory)) % ALIGNMENT
    0
    """
    return -int(memory.ctypes.data) % ALIGNMENT


# ---------------------------------------------------------------- values of one run after another


class SpareMemory:
    """The memory of the large results of one run after another; a run has it for itself.

    A piece is spare when no array refers to it. What has left a run, such as a result, therefore never
    returns.

    >>> spare = SpareMemory()
    >>> with spare.in_use():
    ...     address = new_array((400, 400), np.dtype(np.float32)).ctypes.data
    ...     address == new_array((400, 400), np.dtype(np.float32)).ctypes.data
    True
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._pieces: dict[int, list[_Piece]] = {}
        self._of_last_run: dict[int, list[_Piece]] = {}
        self._size = 0

    @contextlib.contextmanager
    def in_use(self) -> Generator[None]:
        """Let `new_array` take memory from here, in this thread; at the end, free what is not used."""
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
        if self._size + size > _MOST_OF_RUN:
            return np.empty(shape, dtype)
        pieces.append(earlier.pop() if earlier else _Piece(size))
        self._size += size
        return pieces[-1].array(shape, dtype)


class _Piece:
    """Memory of one array at a time."""

    __slots__ = ("_memory", "_start")

    def __init__(self, size: int) -> None:
        memory: Array = np.empty(size + ALIGNMENT, np.uint8)
        self._memory, self._start = [memory], aligned_start(memory)

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        return np.ndarray(shape, dtype, self._memory[0], self._start)

    def is_spare(self) -> bool:
        return is_only_reference(self._memory, 0)


class _Present(threading.local):
    """The memory of the run that this thread is in."""

    spare: SpareMemory | None = None


_PRESENT = _Present()


def new_array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """Return an array for a result, row by row, whose contents are undefined.

    Large ones are in the spare memory that is in use, where there is any.

    >>> new_array((2, 3), np.dtype(np.int8)).shape
    (2, 3)
    """
    spare = _PRESENT.spare
    if spare is None or dtype.hasobject:
        return np.empty(shape, dtype)
    size = math.prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if size < LARGE_ARRAY else spare.array(tuple(shape), dtype, size)


# ---------------------------------------------------------------- blocks that their users give back


class SpareBlocks:
    """Memory that runs no longer need, for runs with the same needs; several threads may take and give.

    >>> blocks = SpareBlocks(lambda size: np.empty(size, np.uint8))
    >>> block = blocks.take(100)
    >>> blocks.give(block)
    >>> blocks.take(100) is block
    True
    """

    def __init__(self, allocate: Callable[[int], Array]) -> None:
        """Keep nothing yet; `allocate` returns so many bytes."""
        self._allocate = allocate
        self._free: dict[int, list[Array]] = {}

    def take(self, size: int) -> Array:
        """Return so many bytes; raises what the allocation raises."""
        try:
            return self._free[size].pop()
        except (KeyError, IndexError):
            return self._allocate(size)

    def give(self, memory: Array) -> None:
        """Keep memory that nothing reads any more."""
        if sum(map(len, self._free.values())) >= _MOST_BLOCKS:
            self._free = {}
        self._free.setdefault(memory.size, []).append(memory)

    def clear(self) -> None:
        """Let go of all memory."""
        self._free = {}


# ---------------------------------------------------------------- results of one step after another


class SpareArrays:
    """The arrays that were results of earlier runs, by name.

    An array is used again only where nothing but this object refers to it. A session that does not write into
    such arrays gets none any more.

    >>> spares = SpareArrays()
    >>> spares.keep({'w': np.zeros(2)}, spares.free())
    >>> spares.free()
    {'w': array([0., 0.])}
    """

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._kept: dict[str, list[Array]] = {}
        self._are_used = True

    def free(self) -> dict[str, Array]:
        """Return an array for each name that has one which nothing else refers to."""
        found: dict[str, Array] = {}
        for name, arrays in self._kept.items():
            for place in range(len(arrays)):
                if is_only_reference(arrays, place):
                    found[name] = arrays[place]
                    break
        return found

    def keep(self, results: Mapping[str, Any], offered: Mapping[str, Array]) -> None:
        """Keep the results of a run that could write into the arrays `offered`."""
        if any(results[name] is not array for name, array in offered.items()):
            self._are_used = False
            self._kept.clear()
        if not self._are_used:
            return
        for name, result in results.items():
            if name not in offered and isinstance(result, np.ndarray) and result.base is None:
                arrays = self._kept.setdefault(name, [])
                arrays.append(cast("Array", result))
                del arrays[:-_MOST_STATES]


__all__ = [
    "ALIGNMENT",
    "LARGE_ARRAY",
    "SpareArrays",
    "SpareBlocks",
    "SpareMemory",
    "aligned_start",
    "is_only_reference",
    "new_array",
    "owns_memory",
]
