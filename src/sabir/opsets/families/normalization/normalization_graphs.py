"""Normalisations in function bodies of opset 18 and later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sabir.opsets.families.building.calls import results_of
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.reduction import reductions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.ir import Builder, Value


class RootMeanSquare(NamedTuple):
    """`x / sqrt(mean(x ** 2) + epsilon)`, and the factor `1 / sqrt(mean(x ** 2) + epsilon)`."""

    y: Value
    inverse: Value


def by_root_mean_square(b: Builder, x: Value, axes: Sequence[int], epsilon: float) -> RootMeanSquare:
    """Emit a division by the root mean square over some axes, in the element type of `x`."""
    squares = reductions.call(b, "ReduceMean", b.Mul(x, x), axes)
    inverse = b.Reciprocal(b.Sqrt(Numbers.like(b, x).op("Add", squares, epsilon)))
    return RootMeanSquare(b.Mul(x, inverse), inverse)


def layer_normalized(
    b: Builder, x: Value, scale: Value, bias: Value | None, epsilon: float, outputs: int
) -> tuple[Value, ...]:
    """Emit LayerNormalization over the last axis: `outputs` of the result, the mean, the inverse deviation.

    `x` is no 16-bit float; scale and bias are widened to its type.
    """
    parameters = [p if p is None else halves.widened(b, p) for p in (scale, bias)]
    return results_of(b.op("LayerNormalization", x, *parameters, outputs=outputs, epsilon=epsilon))
