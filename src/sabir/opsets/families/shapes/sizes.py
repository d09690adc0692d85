"""Sizes that are the contents of a tensor, and checks against the limits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from sabir.base import InferenceError, check_elements, spend_work
from sabir.opsets.families.shapes import contents
from sabir.opsets.families.shapes.ranks import check_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from sabir.ir import Dim, Shape, TensorType
    from sabir.opsets.typing import Array

_FEW, _NUMBER = 1 << 14, 4  # elements whose time is negligible; bytes of one during the computation
_OPERATION = 1 << 13  # bytes that numpy computes in the time of an operation on an empty array
_TEXT = 64  # bytes, about, of a short string and its reference


def allotted(shape: Sequence[int], dtype: np.dtype[Any], present: int = 0) -> tuple[int, ...]:
    """Return the shape of an array that is about to be allocated; `present` elements exist already.

    For a shape that depends on contents or attributes: a few bytes may request any size.
    Raises ValueError for a size below 0, LimitError for too many elements.
    """
    if any(d < 0 for d in shape):
        raise ValueError(f"a shape of {list(shape)} has a size below 0")
    check_elements(math.prod(shape), present, width=_TEXT if dtype.kind == "O" else dtype.itemsize)
    return tuple(shape)


def set_aside(count: int, width: int, what: str) -> None:
    """Raise LimitError unless `count` temporary elements of `width` bytes fit the limits.

    For temporaries that are much larger than inputs and outputs.
    """
    check_elements(count, count, what=what, width=width)


def passed_over(x: Array, times: int = 1) -> None:
    """Count the work of reading `x` `times` times, for operators with small results; raises LimitError."""
    if x.size > _FEW:
        spend_work(times * x.size * max(x.itemsize, _NUMBER))


def spend_operations(count: int, size: int = 0) -> None:
    """Count `count` array operations, which compute `size` bytes together; raises LimitError past `work`.

    numpy needs a fixed time for each of them, however few elements it computes.
    """
    spend_work(size + count * _OPERATION)


def sizes_in(name: str, t: TensorType) -> Shape | None:
    """Return the sizes in a 1-D tensor: unknown ones where only their number is known, else None.

    Raises InferenceError for a tensor of another rank, and for a size below 0.
    """
    check_rank(name, t, 1)
    if t.known is None:
        count = t.size
        return (None,) * count if isinstance(count, int) and count <= contents.MOST else None
    sizes: tuple[Dim, ...] = tuple(k if not isinstance(k, (float, str)) else None for k in t.known)
    if any(isinstance(s, int) and s < 0 for s in sizes):
        raise InferenceError(f"the sizes in `{name}` cannot be negative: [{', '.join(map(str, sizes))}]")
    return sizes
