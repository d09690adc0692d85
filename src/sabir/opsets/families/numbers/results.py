"""Results of numpy functions, in the memory of values of the run that are no longer alive."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from sabir.base import LARGE_ARRAY, new_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.opsets.typing import Array


def computed(function: Callable[..., Array], *operands: Array) -> Array:
    """Return `function(*operands)`; spare memory serves large operands of one type, if it is a ufunc."""
    for x in operands:
        if x.nbytes >= LARGE_ARRAY:
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
    return function(*operands, out=new_array(shape, dtype))


@functools.cache
def _keeps_type(function: np.ufunc, operands: str) -> bool:
    """Whether the result has the type of the operands, whose letters are in `operands`."""
    return f"{operands}->{operands[0]}" in function.types
