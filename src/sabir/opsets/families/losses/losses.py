"""The negative log likelihood of labels: their log-probabilities, weighted and reduced.

Scores have the shape (N, C, d1, ..., dk), labels (N, d1, ..., dk), weights (C). Each function exists twice:
for arrays, and to emit the nodes of a function body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import EvaluationError
from sabir.elements import INT64
from sabir.ir import TensorType
from sabir.opsets.families.building.calls import has_attribute
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes import axes
from sabir.opsets.families.shapes.ranks import check_least_rank, check_rank, check_shape
from sabir.opsets.families.shapes.shapes import same_dim
from sabir.schema import Attribute, Constraint, Input, Unconvertible, one_of, tensors

if TYPE_CHECKING:
    from sabir.ir import Builder, Shape, Value
    from sabir.opsets.typing import Array

REDUCTION = Attribute(
    "reduction",
    "string",
    "none, sum, or mean: the sum divided by the sum of the weights.",
    default="mean",
    values=one_of("none", "sum", "mean"),
)
INDICES = Constraint("Tind", tensors("int32", "int64"))
_LEAST_RANK = 2  # a batch, classes


def inputs(of: Constraint, scores: tuple[str, str], labels: str, weights: str) -> list[Input]:
    """Return the inputs by their names; `scores` is a name and a description."""
    classes = "The classes, (N, d1, ..., dk), each in [0, C) or ignored."
    factors = "A factor for each class, (C); 1 by default."
    return [
        Input(scores[0], of, scores[1], differentiable=True),
        Input(labels, INDICES, classes, differentiable=False),
        Input(weights, of, factors, optional=True, differentiable=False),
    ]


def infer(scores: TensorType, labels: TensorType, weights: TensorType | None, reduction: str) -> TensorType:
    """Return the type of the loss; raises InferenceError for shapes that do not fit together."""
    losses = _losses(scores, labels, weights)
    return TensorType(scores.element, losses if reduction == "none" else ())


def _losses(
    scores: TensorType | Array, labels: TensorType | Array, weights: TensorType | Array | None
) -> Shape | None:
    """Return the shape of the losses before reduction; raises InferenceError as `infer`."""
    check_least_rank("the scores", scores, _LEAST_RANK)
    check_rank("weight", weights, 1)
    if scores.shape is None:
        return labels.shape
    check_shape("weight", weights, scores.shape[1])
    places = (scores.shape[0], *scores.shape[2:])
    check_shape("the labels", labels, *places)
    if labels.shape is None:
        return places
    return tuple(same_dim(pair, "places") for pair in zip(places, labels.shape, strict=True))


# ---------------------------------------------------------------- on arrays


def log_softmax(x: Array, axis: int) -> Array:
    """Return the logarithms of Softmax; shifted by the maximum first, so that no exponential overflows."""
    shifted = x - np.maximum.reduce(x, axis=axis, keepdims=True, initial=-np.inf)
    return shifted - np.log(summed(np.exp(shifted), axis, keepdims=True))


def evaluate(logs: Array, labels: Array, weights: Array | None, ignored: int | None, reduction: str) -> Array:
    """Return the loss of log-probabilities; a mean is weighted, and NaN where all labels are ignored."""
    _losses(logs, labels, weights)
    places = labels.astype(np.int64, copy=False)
    counted = None if ignored is None else places != ignored
    if counted is not None:
        places = np.where(counted, places, 0)
    if ((places < 0) | (places >= logs.shape[1])).any() and (
        counted is None or counted.any() or not logs.shape[1]
    ):
        raise EvaluationError(f"a label is outside [0, {logs.shape[1] - 1}]")
    losses = -np.take_along_axis(logs, places[:, None], axis=1)[:, 0]
    scale = None if weights is None else weights[places]
    if scale is not None:
        losses *= scale
    if counted is not None:
        losses = np.where(counted, losses, logs.dtype.type(0))
        scale = np.where(counted, 1 if scale is None else scale, 0).astype(logs.dtype, copy=False)
    if reduction == "none":
        return losses
    whole = summed(losses)
    if reduction == "sum":
        return whole
    return np.asarray(whole / (losses.size if scale is None else summed(scale)), logs.dtype)


# ---------------------------------------------------------------- in function bodies


def emit_log_softmax(b: Builder, x: Value, axis: int) -> Value:
    """Emit the logarithms of Softmax in simpler operators."""
    wide = halves.widened(b, x)
    shifted = b.Sub(wide, reductions.call(b, "ReduceMax", wide, [axis]))
    logs = b.Log(reductions.call(b, "ReduceSum", b.Exp(shifted), [axis]))
    return halves.rounded(b, b.Sub(shifted, logs), x)


def emit(
    b: Builder, logs: Value, labels: Value, weights: Value | None, ignored: int | None, reduction: str
) -> Value:
    """Emit the loss of log-probabilities."""
    wide = halves.widened(b, logs)
    if not isinstance(wide.type, TensorType) or not wide.type.element.number:
        raise Unconvertible("the element type of the scores is unknown, and constants must be of it")
    kind = wide.type.element.dtype
    counted, places = None, b.Cast(labels, to=INT64.number)
    if ignored is not None:
        counted = b.Not(b.Equal(places, b.initializer("ignored", np.array(ignored, np.int64))))
        places = b.Where(counted, places, b.initializer("first", np.array(0, np.int64)))
    picked = b.GatherElements(wide, _with_axes(b, "Unsqueeze", places), axis=1)
    losses = b.Neg(_with_axes(b, "Squeeze", picked))
    scale = None if weights is None else b.Gather(halves.widened(b, weights), places)
    if scale is not None:
        losses = b.Mul(losses, scale)
    if counted is not None:
        zero = b.initializer("zero", np.array(0, kind))
        losses = b.Where(counted, losses, zero)
        if reduction == "mean":
            one = b.initializer("one", np.array(1, kind)) if scale is None else scale
            scale = b.Where(counted, one, zero)
    if reduction == "mean" and scale is None:
        losses = b.ReduceMean(losses, keepdims=0)
    elif reduction != "none":
        losses = b.ReduceSum(losses, keepdims=0)
    if reduction == "mean" and scale is not None:
        losses = b.Div(losses, b.ReduceSum(scale, keepdims=0))
    return halves.rounded(b, losses, logs)


def _with_axes(b: Builder, name: str, x: Value) -> Value:
    if has_attribute(b, name, "axes"):
        return b.op(name, x, axes=[1])
    return b.op(name, x, axes.as_input(b, "axes", [1]))
