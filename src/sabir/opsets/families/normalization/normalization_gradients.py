"""Gradients of normalisations by means and variances over some axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.scalars import element_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Value
    from sabir.opsets.typing import Gradient, ShapedBuilder


class Normal(NamedTuple):
    """Elements of mean 0 and variance 1 over some axes, and the factor of their deviations."""

    y: Value
    inverse: Value
    axes: Sequence[int]

    @classmethod
    def of(cls, g: ShapedBuilder, x: Value, axes: Sequence[int], epsilon: float) -> Normal:
        """Emit the normalised elements of `x`."""
        deviation = g.Sub(x, mean(g, x, axes))
        variance = mean(g, g.Mul(deviation, deviation), axes)
        inverse = g.Reciprocal(g.Sqrt(g.Add(variance, epsilon)))
        return cls(g.Mul(deviation, inverse), inverse, axes)

    def gradient(self, g: ShapedBuilder, d: Value) -> Value:
        """Return the gradient of what was normalised from that of the normalised elements."""
        along = g.Mul(self.y, mean(g, g.Mul(d, self.y), self.axes))
        return g.Mul(self.inverse, g.Sub(g.Sub(d, mean(g, d, self.axes)), along))


def mean(g: ShapedBuilder, x: Value, axes: Sequence[int]) -> Value:
    """Emit means over some axes, which are kept; no axes mean none."""
    return g.ReduceMean(x, [*axes], noop_with_empty_axes=1)


def scaled(
    g: Gradient, x: Value, scale: Value, bias: Value, axes: Sequence[int], epsilon: float
) -> tuple[Value, Value, Value]:
    """Return the gradients of a normalisation of `x` (N, C, ...) with a scale and a bias for each channel."""
    wide, dy = halves.widened(g, x), halves.widened(g, g.dy)
    factor = typed(g, per_channel(g, scale, x), element_of(wide))
    normal = Normal.of(g, wide, axes, epsilon)
    dx = normal.gradient(g, g.Mul(dy, factor))
    return (
        halves.rounded(g, dx, x),
        typed(g, over_channels(g, g.Mul(dy, normal.y)), element_of(scale)),
        typed(g, over_channels(g, dy), element_of(bias)),
    )


def by_batch(g: Gradient, x: Value, scale: Value, bias: Value, epsilon: float) -> tuple[Value, Value, Value]:
    """Return the gradients of a normalisation of each channel of `x` (N, C, ...) by its mean and variance.

    The gradients of the scale and the bias are the only sums over elements that those of `x` depend on.
    """
    axes = [i for i in range(g.rank(x)) if i != 1]
    wide, dy = halves.widened(g, x), halves.widened(g, g.dy)
    normal = Normal.of(g, wide, axes, epsilon)
    along, total = (g.ReduceSum(d, axes) for d in (g.Mul(dy, normal.y), dy))
    count = g.CastLike(g.Div(g.Size(x), g.Size(scale)), wide)
    rest = g.Sub(g.Sub(dy, g.Div(total, count)), g.Mul(normal.y, g.Div(along, count)))
    factor = g.Mul(typed(g, per_channel(g, scale, x), element_of(wide)), normal.inverse)
    along, total = (g.Squeeze(d, axes) if g.rank(x) > 1 else d for d in (along, total))
    return (
        halves.rounded(g, g.Mul(factor, rest), x),
        typed(g, along, element_of(scale)),
        typed(g, total, element_of(bias)),
    )


def per_channel(g: ShapedBuilder, parameter: Value, x: Value) -> Value:
    """Return a parameter (C) so that it broadcasts to `x` (N, C, ...)."""
    spatial = [*range(1, g.rank(x) - 1)]
    return g.Unsqueeze(parameter, spatial) if spatial else parameter


def over_channels(g: ShapedBuilder, d: Value) -> Value:
    """Sum (N, C, ...) to the gradient of a parameter (C); a 1-D tensor has one channel."""
    rank = g.rank(d)
    others = [i for i in range(rank) if i != 1]
    return g.ReduceSum(d, others, keepdims=int(rank == 1))


def by_statistics(
    g: Gradient, x: Value, parameters: tuple[Value, Value, Value, Value], epsilon: float
) -> tuple[Value, ...]:
    """Return the gradients of a normalisation by a mean and a variance that are inputs."""
    wide, dy = halves.widened(g, x), halves.widened(g, g.dy)
    scale, _, mean, var = (typed(g, p, element_of(wide)) for p in parameters)
    inverse = g.Reciprocal(g.Sqrt(g.Add(var, epsilon)))
    factor = g.Mul(scale, inverse)
    total = over_channels(g, dy)
    normal = g.Mul(g.Sub(wide, per_channel(g, mean, x)), per_channel(g, inverse, x))
    d_scale = over_channels(g, g.Mul(dy, normal))
    d_var = g.Mul(g.Mul(d_scale, g.Mul(factor, inverse)), -0.5)
    dx = halves.rounded(g, g.Mul(dy, per_channel(g, factor, x)), x)
    others = zip((d_scale, total, g.Neg(g.Mul(total, factor)), d_var), parameters, strict=True)
    return dx, *(typed(g, d, element_of(p)) for d, p in others)
