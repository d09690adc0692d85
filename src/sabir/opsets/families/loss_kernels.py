"""The negative log likelihood of labels, as tensor expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.ir import product
from sabir.loops import NotLowered
from sabir.opsets.families import kernels

if TYPE_CHECKING:
    from sabir.loops import Expression


def lower(
    logs: Expression, labels: Expression, weights: Expression | None, ignored: int | None, reduction: str
) -> Expression:
    """Return the loss of log-probabilities (N, C, d1, ...) as `losses.evaluate` does."""
    if not loops.same_shape((logs.shape[0], *logs.shape[2:]), labels.shape):
        raise NotLowered("whether there is one label for each place is known at run time only")
    places, counted = loops.cast(labels, "int64"), None
    if ignored is not None:
        counted = loops.apply("ne", places, ignored)
        places = loops.where(counted, places, 0)
    # a negative label does not count from the end: it is outside as one past the last is
    places = loops.where(loops.apply("lt", places, 0), loops.sized("int64", logs.shape[1]), places)
    around = [loops.count(labels.shape, axis) for axis in range(labels.rank)]
    row = loops.reshape(logs, (product(logs.shape) or 0,))
    number = kernels.numbered([around[0], places, *around[1:]], logs.shape)
    losses = loops.apply("neg", loops.take(row, number, 0))
    scale = None if weights is None else loops.take(weights, places, 0)
    if scale is not None:
        losses = loops.apply("mul", losses, scale)
    if counted is not None:
        losses = loops.where(counted, losses, 0)
        scale = loops.where(counted, loops.number(logs.element, 1) if scale is None else scale, 0)
    if reduction == "none":
        return losses
    axes = range(losses.rank)
    if reduction == "mean" and scale is None:
        return loops.reshape(loops.mean(losses, axes), ())
    whole = loops.reduce("sum", losses, axes)
    if reduction == "mean" and scale is not None:
        whole = loops.apply("div", whole, loops.reduce("sum", scale, axes))
    return loops.reshape(whole, ())
