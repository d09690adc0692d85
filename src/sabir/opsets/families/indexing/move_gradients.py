"""Gradients of operators that move elements: each returns to the place that its element came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.numbers.scalars import element_of

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


def numbers_of(g: Gradient, x: Value) -> Value:
    """Return the numbers of the elements of a tensor, row by row, in its shape."""
    return g.Reshape(g.Range(0, g.Size(x), 1), g.sizes(x), allowzero=1)


def zeros_of(g: Gradient, shape: Value, like: Value) -> Value:
    """Return zeros of a computed shape, and of the element type of a tensor."""
    return g.ConstantOfShape(shape, value=np.zeros(1, element_of(like).dtype))


def as_tuples(g: Gradient, indices: Value) -> Value:
    """Return indices as tuples of one int64."""
    kind = indices.type
    whole = isinstance(kind, TensorType) and kind.element is INT64
    return g.Unsqueeze(indices if whole else g.Cast(indices, to=INT64.number), [-1])


def as_numbers(g: Gradient, mask: Value, like: Value) -> Value:
    """Return 1 where a mask is true and 0 elsewhere, of the element type of a tensor."""
    return g.Cast(mask, to=element_of(like).number)


def moved_back(g: Gradient, x: Value, places: Value, dy: Value | None = None) -> Value:
    """Return the gradient of `x`: zeros to which each element of `dy` is added at its place.

    `places` has, in the shape of `dy`, the number of the element of `x` that was moved there: `numbers_of`
    the tensor, moved in the same way.
    """
    dy = g.dy if dy is None else dy
    row = zeros_of(g, g.Unsqueeze(g.Size(x), [0]), x)
    tuples = g.Reshape(places, [-1, 1])
    return g.Reshape(g.ScatterND(row, tuples, g.Reshape(dy, [-1]), reduction="add"), g.sizes(x), allowzero=1)
