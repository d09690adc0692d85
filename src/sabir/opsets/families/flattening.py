"""The coercion to a matrix that Softmax and its kin had before opset 13."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.opsets.families.shapes import axis_in

if TYPE_CHECKING:
    from sabir.opsets.typing import Array, Rule


def over_rows(rule: Rule, x: Array, axis: int) -> Array:
    """Apply `rule(matrix, axis=-1)` to `x`, split into rows and columns before `axis`."""
    split = x.ndim if axis == x.ndim else axis_in(axis, x.ndim)
    matrix = x.reshape(math.prod(x.shape[:split]), math.prod(x.shape[split:]))
    return rule(matrix, axis=-1).reshape(x.shape)
