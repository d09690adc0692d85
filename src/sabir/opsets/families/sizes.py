"""Sizes that come as the contents of a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.base import InferenceError
from sabir.opsets.families import contents

if TYPE_CHECKING:
    from sabir.ir import Dim, Shape, TensorType


def sizes_in(t: TensorType) -> Shape | None:
    """Return the sizes that a 1-D tensor holds, unknown ones where only their number is known, else None.

    Raises InferenceError for one below 0.
    """
    if t.known is None:
        count = t.size
        return (None,) * count if isinstance(count, int) and count <= contents.MOST else None
    sizes: tuple[Dim, ...] = tuple(k if not isinstance(k, (float, str)) else None for k in t.known)
    if any(isinstance(s, int) and s < 0 for s in sizes):
        raise InferenceError(f"sizes cannot be negative: [{', '.join(map(str, sizes))}]")
    return sizes
