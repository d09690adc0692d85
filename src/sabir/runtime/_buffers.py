"""Buffers of the caller's that a run writes its outputs into."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FeedError, owns_memory, quote
from sabir.evaluation import shared_array

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir import Array


def check_buffers(buffers: Mapping[str, Any], names: Iterable[str]) -> dict[str, Array]:
    """Return the buffers of a run with outputs of these names; raises FeedError for one that is no buffer."""
    known = list(names)
    found: dict[str, Array] = {}
    for name, buffer in buffers.items():
        if name not in known:
            shown = ", ".join(map(repr, known))
            raise FeedError(f"`out` has {quote(name)}, which is no output of this run; it has {shown}")
        array = _array(buffer, f"`out[{quote(name)}]`")
        flags = array.flags
        if not flags.c_contiguous or not flags.writeable:
            problem = "writeable" if flags.c_contiguous else "C-contiguous"
            raise FeedError(f"`out[{quote(name)}]` must be {problem}: give an array made by np.empty")
        found[name] = array
    _check_apart(found)
    return found


def _check_apart(buffers: Mapping[str, Array]) -> None:
    """Raise FeedError for two buffers that share memory.

    Different arrays that own their memory do not, which saves most comparisons: there may be many caches.
    """
    views = [name for name, buffer in buffers.items() if not owns_memory(buffer)]
    if len(set(map(id, buffers.values()))) < len(buffers):
        views = list(buffers)
    for one, other in itertools.product(views, buffers):
        if one != other and np.may_share_memory(buffers[one], buffers[other]):
            first, second = sorted((one, other), key=list(buffers).index)
            raise FeedError(f"`out[{quote(first)}]` and `out[{quote(second)}]` share memory")


def _array(buffer: Any, where: str) -> Array:
    """Return a buffer as an array: itself, or the memory of a tensor of another library."""
    if isinstance(buffer, np.ndarray):
        return cast("Array", buffer)
    if not hasattr(buffer, "__dlpack__"):
        raise FeedError(f"{where} must be a numpy array, or have `__dlpack__`; got {type(buffer).__name__}")
    return shared_array(buffer, where)


def write_buffers(results: dict[str, Any], buffers: Mapping[str, Array]) -> dict[str, Any]:
    """Return the results with those that have a buffer in it.

    Raises FeedError, before anything is written, where a buffer has another element type or shape.
    """
    for name, buffer in buffers.items():
        result = results[name]
        if not isinstance(result, np.ndarray):
            raise FeedError(f"output {quote(name)} is no tensor, and cannot be written into a buffer")
        array = cast("Array", result)
        if (array.dtype, array.shape) != (buffer.dtype, buffer.shape):
            raise FeedError(
                f"`out[{quote(name)}]` is {buffer.dtype}{list(buffer.shape)}, and the output is "
                f"{array.dtype}{list(array.shape)}"
            )
    for name, buffer in buffers.items():
        if results[name] is not buffer:
            np.copyto(buffer, results[name])
    return {**results, **buffers}


__all__ = ["check_buffers", "write_buffers"]
