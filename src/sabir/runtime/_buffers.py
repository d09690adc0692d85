"""Buffers of the caller's that a run writes its outputs into."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from sabir.base import FeedError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sabir.ir import Array


def check_buffers(buffers: Mapping[str, Any], names: Iterable[str]) -> dict[str, Array]:
    """Return the buffers of a run with outputs of these names; raises FeedError for one that is no buffer."""
    known = list(names)
    for name, buffer in buffers.items():
        if name not in known:
            shown = ", ".join(map(repr, known))
            raise FeedError(f"`out` has {quote(name)}, which is no output of this run; it has {shown}")
        if not isinstance(buffer, np.ndarray):
            raise FeedError(f"`out[{quote(name)}]` must be a numpy array; got {type(buffer).__name__}")
        flags = cast("Array", buffer).flags
        if not flags.c_contiguous or not flags.writeable:
            problem = "writeable" if flags.c_contiguous else "C-contiguous"
            raise FeedError(f"`out[{quote(name)}]` must be {problem}: give an array made by np.empty")
    for one, other in itertools.combinations(buffers, 2):
        if np.may_share_memory(buffers[one], buffers[other]):
            raise FeedError(f"`out[{quote(one)}]` and `out[{quote(other)}]` share memory")
    return cast("dict[str, Array]", dict(buffers))


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
