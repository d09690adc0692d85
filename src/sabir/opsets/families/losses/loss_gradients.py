"""The gradient of the negative log-likelihood, which two losses share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir.elements import INT64
from sabir.opsets.families.numbers import halves

if TYPE_CHECKING:
    from sabir.ir import Value
    from sabir.opsets.typing import Gradient


def gradient(
    g: Gradient, dy: Value, logs: Value, labels: Value, weights: Value | None, *,
    ignored: int | None, reduction: str,
) -> Value:  # fmt: skip
    """Return the gradient of log-probabilities (N, C, d1, ...); the classes are compared, not scattered."""
    rank, places = g.rank(logs), g.Cast(labels, to=INT64.number)
    spatial = [*range(1, rank - 1)]
    classes = _trailing(g, g.Range(0, g.Squeeze(g.Shape(logs, start=1, end=2), [0]), 1), spatial)
    counted = g.Equal(g.Unsqueeze(places, [1]), classes)
    if ignored is not None:
        counted = g.And(counted, g.Unsqueeze(g.Not(g.Equal(places, ignored)), [1]))
    wide = halves.widened(g, logs)
    factor: Value | float = 1
    if weights is not None:
        factor = _trailing(g, halves.widened(g, weights), spatial)
    scale = g.Where(counted, factor, g.zeros(wide))
    d = g.Neg(halves.widened(g, dy))
    if reduction == "none":
        d = g.Unsqueeze(d, [1])
    if reduction == "mean":
        d = g.Div(d, g.ReduceSum(scale, keepdims=0))
    return halves.rounded(g, g.Where(counted, g.Mul(scale, d), 0), logs)


def _trailing(g: Gradient, x: Value, axes: list[int]) -> Value:
    return g.Unsqueeze(x, axes) if axes else x
