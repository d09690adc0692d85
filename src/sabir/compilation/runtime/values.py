"""Arrays of evaluated calls: views of kernel memory as operands, and copies of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.elements import element

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import RunSizes
    from sabir.ir import Array


class View(NamedTuple):
    """A tensor in the memory of a buffer; strides and offset count bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, read: tuple[Buffer, Any, Any, Any], offsets: Mapping[Buffer, int], sizes: RunSizes) -> View:
        """Return the view for `read`, a buffer with offset, strides and shape in elements.

        `offsets` has the byte offsets of the buffers in an arena.
        """
        buffer, offset, strides, shape = read
        dtype = element(buffer.element).dtype
        steps = tuple(sizes(stride) * dtype.itemsize for stride in strides)
        start = sizes(offset) * dtype.itemsize + offsets.get(buffer, 0)
        return cls(dtype, tuple(map(sizes, shape)), steps, start)

    def array(self, memory: Array) -> Array:
        """Return the tensor in `memory` (bytes) as a read-only array."""
        if 0 in self.shape:
            return np.empty(self.shape, self.dtype)
        found: Array = np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides)
        found.flags.writeable = False
        return found


def shape_and_dtype(buffer: Buffer, sizes: RunSizes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and the dtype of the array in a buffer."""
    return tuple(map(sizes, buffer.shape)), element(buffer.element).dtype


def with_copies(value: Any, is_foreign: Callable[[Array], bool]) -> Any:
    """Return a value in which arrays that satisfy `is_foreign` are replaced by copies.

    >>> with_copies([np.zeros(2), {}], lambda array: array.size < 2)[1]
    {}
    """
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return array.copy() if is_foreign(array) else array
    if not contains_arrays(value):
        return value
    if isinstance(value, list):
        return [with_copies(item, is_foreign) for item in cast("list[Any]", value)]
    return {key: with_copies(item, is_foreign) for key, item in cast("dict[Any, Any]", value).items()}


def contains_arrays(value: Any) -> bool:
    """Return whether a value is an array, or a list or dictionary that contains one.

    All items of a sequence have one type, so the first that is neither None nor empty decides.

    >>> contains_arrays([None, [], [np.zeros(2)]]), contains_arrays([{}, {1: 0.5}])
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return True
    if isinstance(value, dict):
        value = list(cast("dict[Any, Any]", value).values())
    if not isinstance(value, list):
        return False
    for item in cast("list[Any]", value):
        if contains_arrays(item):
            return True
        if item is not None and not isinstance(item, list) and item != {}:
            return False
    return False


__all__ = ["View", "contains_arrays", "shape_and_dtype", "with_copies"]
