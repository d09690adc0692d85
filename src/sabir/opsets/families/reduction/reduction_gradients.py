"""What the gradients of reductions share: reduced axes that are kept, means, and ties of extremes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from sabir.elements import DOUBLE

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient, ShapedBuilder


def kept(g: ShapedBuilder, reduced: Value, axes: Value | None, keepdims: int) -> Value:
    """Return a reduced tensor in a shape that broadcasts to that of the operand."""
    return reduced if keepdims or axes is None else g.Unsqueeze(reduced, axes)


def share(g: ShapedBuilder, large: Value, small: Value) -> Value | float:
    """Return how many elements of `small` there are for one of `large`, from which it was reduced."""
    sizes = [dim for v in (large, small) for dim in g.shape(v) or (None,)]
    if all(isinstance(dim, int) for dim in sizes):
        count = math.prod(d for d in g.shape(large) or () if isinstance(d, int))
        return math.prod(d for d in g.shape(small) or () if isinstance(d, int)) / max(count, 1)
    counts = (g.Cast(g.Size(v), to=DOUBLE.number) for v in (small, large))
    return g.CastLike(g.Div(*counts), large)


def extreme(
    g: Gradient,
    data: Value,
    axes: Value | None = None,
    /,
    *,
    keepdims: int,
    noop_with_empty_axes: int,
) -> tuple[Value, None]:
    """Return the gradient of a maximum or minimum; equal extremes have equal shares, as in PyTorch."""
    chosen = g.Equal(data, kept(g, g.y(), axes, keepdims))
    ones = g.CastLike(chosen, data)
    count = g.ReduceSum(ones, axes, keepdims=1, noop_with_empty_axes=noop_with_empty_axes)
    return g.Where(chosen, g.Div(kept(g, g.dy, axes, keepdims), count), 0), None
