"""Gradients that several elementwise operators share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


def zero(g: Gradient, x: Value, /) -> Value:
    """Return the gradient of a function that is constant between its jumps, as in PyTorch."""
    return g.zeros(x)


def extreme(g: Gradient, /, *inputs: Value) -> tuple[Value, ...]:
    """Return the gradients of a minimum or maximum; equal extremes have equal shares, as in PyTorch."""
    if len(inputs) == 1:
        return (g.dy,)
    chosen = [g.Equal(x, g.y()) for x in inputs]
    share = g.Div(g.dy, g.Sum(*(g.CastLike(c, g.dy) for c in chosen)))
    return tuple(g.fit(g.Where(c, share, 0), x) for c, x in zip(chosen, inputs, strict=True))
