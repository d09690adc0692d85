"""Lowering of tables that map one number to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.loops import NotLowered

if TYPE_CHECKING:
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

_MOST = 24  # keys that each element is compared with, one after the other


def mapped(x: Expression, keys: Array, values: Array, default: object, *, nan: bool) -> Expression:
    """Return for each element of `x` the value of its key, of equal ones the last, or `default`.

    With `nan` a NaN among the keys matches every NaN. Raises NotLowered for a large table.
    """
    table = dict(zip(keys.tolist(), values.tolist(), strict=True))
    if len(table) > _MOST:
        raise NotLowered(f"a table has {len(table)} keys")
    element = loops.tensor(values[:0]).element
    found: Expression = loops.expand(loops.number(element, np.array(default, values.dtype).item()), x.shape)
    for key, value in table.items():
        is_nan = key != key  # ruff: ignore[comparison-with-itself]  NaN alone differs from itself
        if nan or not is_nan:
            matches = loops.apply("isnan", x) if is_nan else loops.apply("eq", x, key)
            found = loops.where(matches, loops.number(element, value), found)
    return found
