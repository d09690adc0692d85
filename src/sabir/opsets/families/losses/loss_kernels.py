"""The negative log likelihood of labels as tensor expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sabir import loops
from sabir.ir import product
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.lowering import kernels

if TYPE_CHECKING:
    from sabir.loops import Sizes

_LEAST_RANK = 2  # a batch, classes


def log_softmax(x: Expression, axis: int) -> Expression:
    """Return the logarithms of Softmax; shifted by the maximum first, so that no exponential overflows."""
    shifted = loops.apply("sub", x, loops.reduce("max", x, [axis]))
    total = loops.reduce("sum", loops.apply("exp", shifted), [axis])
    return loops.apply("sub", shifted, loops.apply("log", total))


def loss(
    logs: Expression, labels: Expression, weights: Expression | None, ignored: int | None, reduction: str
) -> Expression:
    """Return the loss of log-probabilities (N, C, d1, ...) at labels (N, d1, ...), with weights (C).

    A label outside [0, C) is an index out of range.
    """
    _check(logs, labels, weights)
    place, counted = loops.cast(labels, "int64"), None
    if ignored is not None:
        counted = loops.apply("ne", place, ignored)
        place = loops.where(counted, place, loops.number("int64", 0))
    classes = loops.sized("int64", logs.shape[1])
    place = loops.where(loops.apply("lt", place, 0), classes, place)
    losses = loops.apply("neg", _picked(logs, place))
    scale = None if weights is None else loops.take(weights, place, 0)
    if scale is not None:
        losses = loops.apply("mul", losses, scale)
    if counted is not None:
        losses = loops.where(counted, losses, 0)
        scale = loops.where(counted, loops.number(logs.element, 1) if scale is None else scale, 0)
    if reduction == "none":
        return losses
    total = _sum(losses)
    if reduction == "sum":
        return total
    count = loops.sized(logs.element, product(losses.shape)) if scale is None else _sum(scale)
    return loops.apply("div", total, count)


def _check(logs: Expression, labels: Expression, weights: Expression | None) -> None:
    """Raise NotLowered if the shapes may not match, or no label can be in range."""
    fits = logs.rank >= _LEAST_RANK and loops.same_shape(labels.shape, _places(logs.shape))
    if not fits or logs.shape[1] == 0:
        raise NotLowered("whether the labels fit the scores is known at run time only")
    if weights is not None and not loops.same_shape(weights.shape, logs.shape[1:2]):
        raise NotLowered("whether the weights fit the classes is known at run time only")


def _places(shape: Sizes) -> Sizes:
    return shape[0], *shape[2:]


def _picked(logs: Expression, place: Expression) -> Expression:
    """Return the element at each index along the axis of the classes."""
    shape = place.shape
    indices = [loops.count(shape, 0), place, *(loops.count(shape, i) for i in range(1, place.rank))]
    row = loops.reshape(logs, (product(logs.shape) or 0,))
    return loops.take(row, kernels.numbered(indices, logs.shape), 0)


def _sum(x: Expression) -> Expression:
    return loops.squeeze(loops.reduce("sum", x, range(x.rank)), range(x.rank))
