"""Arrays of evaluated calls: views of kernel memory as operands, and copies of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from sabir.elements import element
from sabir.schema import as_results, is_moving

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from sabir.compilation.plan.entries import Buffer
    from sabir.compilation.plan.layout import RunSizes
    from sabir.evaluation import BoundCall
    from sabir.ir import Array

EXACT = frozenset("biuO")
"""Kinds of numpy dtypes for which evaluated calls cause no floating-point warnings."""


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


def copies_of(others: Iterable[Any]) -> Callable[[Array], bool]:
    """Return what tells which arrays of results must be copied, one after another.

    These are views, arrays that cannot be written, the `others`, and results that there were before.

    >>> x = np.zeros(2)
    >>> copied = copies_of([x])
    >>> y = np.zeros(2)
    >>> copied(x), copied(y), copied(y)
    (True, False, True)
    """
    known = set(map(id, others))

    def is_foreign(array: Array) -> bool:
        if array.base is not None or not array.flags.writeable or id(array) in known:
            return True
        known.add(id(array))
        return False

    return is_foreign


def keep_results(values: list[Any], outputs: Sequence[int], found: Any) -> None:
    """Keep the results of a call in the slots of its outputs; a number becomes an array."""
    for slot, value in zip(outputs, as_results(found), strict=False):
        is_number = isinstance(value, np.generic)
        values[slot] = np.asarray(cast("Array", value)) if is_number else value


class DirectCalls:
    """Evaluated calls of fast runs, made in order and without checks on the values of slots.

    `warns` says whether one of them may cause a floating-point warning; these are then ignored.
    """

    def __init__(self, calls: Sequence[BoundCall], exact: Collection[int]) -> None:
        """Take the calls; the operands in the slots `exact` have no floating-point numbers."""
        self._calls = [(call.function, call.inputs, call.outputs) for call in calls]
        self.warns = any(not is_moving(c.function) and not {*exact}.issuperset(c.inputs) for c in calls)

    def make(self, values: list[Any]) -> None:
        """Make the calls: their results go to their slots."""
        if not self.warns:
            self._make(values)
            return
        with np.errstate(all="ignore"):
            self._make(values)

    def _make(self, values: list[Any]) -> None:
        for function, inputs, outputs in self._calls:
            found = function(*[values[slot] for slot in inputs])
            if type(found) is np.ndarray:
                values[outputs[0]] = found
            else:
                keep_results(values, outputs, found)


def contains_arrays(value: Any) -> bool:
    """Return whether a value is an array, or a list or dictionary that contains one.

    All items of a sequence have one type, so the first that is neither None nor empty decides.

    >>> contains_arrays([None, [], [np.zeros(2)]]), contains_arrays([{}, {1: 0.5}])
    (True, False)
    """
    if isinstance(value, np.ndarray):
        return True
    if not isinstance(value, (list, dict)):
        return False
    entries = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
    for item in entries:
        if isinstance(item, (list, dict)):
            if contains_arrays(cast("Any", item)):
                return True
            if item and isinstance(item, dict):
                return False
        elif item is not None:
            return isinstance(item, np.ndarray)
    return False


__all__ = ["View", "contains_arrays", "copies_of", "keep_results", "shape_and_dtype", "with_copies"]
