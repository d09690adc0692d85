"""Constant operands of Reshape and Expand for shapes in which some sizes are known only at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.ir import known_equal

if TYPE_CHECKING:
    from sabir.ir import Array, Shape
    from sabir.patterns import Match


def reshape_target(before: Shape | None, after: Shape | None) -> Array | None:
    """Return the operand of a Reshape between two shapes; None where no constant says it.

    A size that is not a number is 0 where it is that of the same axis before, and else -1.

    >>> from sabir.ir import tensor_type
    >>> x, y = tensor_type('float', ['N', 'S', 6]), tensor_type('float', ['N', 'S', 2, 3])
    >>> reshape_target(x.shape, y.shape)
    array([0, 0, 2, 3])
    """
    if after is None:
        return None
    old, found = before or (), list[int]()
    for axis, size in enumerate(after):
        if isinstance(size, int):
            found.append(size)
        else:
            found.append(0 if axis < len(old) and known_equal(old[axis], size) else -1)
    is_empty = any(size == 0 for size in after)
    return None if is_empty or found.count(-1) > 1 else np.asarray(found, np.int64)


def expand_target(before: Shape | None, after: Shape | None) -> Array | None:
    """Return the operand of an Expand between two shapes; None where no constant says it.

    >>> from sabir.ir import tensor_type
    >>> expand_target(tensor_type('float', ['N', 1]).shape, tensor_type('float', [2, 'N', 3]).shape)
    array([2, 1, 3])
    """
    if before is None or after is None:
        return None
    found: list[int] = []
    for axis, size in enumerate(after):
        own = axis - (len(after) - len(before))
        if isinstance(size, int):
            found.append(size)
        elif own >= 0 and known_equal(before[own], size):
            found.append(1)
        else:
            return None
    return np.asarray(found, np.int64)


def is_same_shape(m: Match) -> bool:
    """Return whether the result of a match has the shape of its `x`."""
    before, after = m.type("x"), m.result_type()
    old, new = (before and before.shape), (after and after.shape)
    return old is not None and new is not None and len(old) == len(new) and all(map(known_equal, old, new))


def target_of(m: Match) -> Array | None:
    """Return the operand of a Reshape of `x` to the shape of the result, as `reshape_target` does."""
    before, after = m.type("x"), m.result_type()
    return None if before is None or after is None else reshape_target(before.shape, after.shape)
