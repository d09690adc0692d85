"""GroupNorm and SkipGroupNorm: groups of channels, which are the last dimension or the second."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Dim, TensorType, mod
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.pointwise import sigmoid
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_rank, check_shape
from sabir.schema import Attribute, Constraint, Input, Output, at_least, one_of, tensors

if TYPE_CHECKING:
    from sabir.ir import Builder, Value
    from sabir.loops import Expression
    from sabir.opsets.typing import Array

T = Constraint("T", tensors("float", "float16"))
_M = Constraint("M", tensors("float", "float16"))
INPUTS = (
    Input(
        "X",
        T,
        "(batch, height, width, channels), or (batch, channels, height, width) if `channels_last` is 0.",
        differentiable=True,
    ),
    Input("gamma", _M, "The scale of each channel.", differentiable=True),
    Input("beta", _M, "The shift of each channel.", differentiable=True),
)
OUTPUT = Output("Y", T, "The shape of X.", differentiable=True)
ATTRIBUTES = (
    Attribute("activation", "int", "1: `y * sigmoid(y)` of the result; 0: none.", required=True,
              values=one_of(0, 1)),
    Attribute("channels_last", "int", "1: the channels are the last dimension; 0: the second.", default=1,
              values=one_of(0, 1)),
    Attribute("epsilon", "float", "Added to the variance, so that it is not 0.", default=1e-5),
    Attribute("groups", "int", "The number of groups, which divides the channels.", required=True,
              values=at_least(1)),
)  # fmt: skip
RANK = 4


def channels(x: TensorType | Array, *, last: bool) -> Dim:
    """Return the number of channels; raises InferenceError for another rank than 4."""
    check_rank("X", x, RANK)
    return x.shape[RANK - 1 if last else 1] if x.shape else None


def infer(x: TensorType, gamma: TensorType, beta: TensorType, channels_last: int, groups: int) -> TensorType:
    """Return the type of the result; raises InferenceError for shapes that do not belong together."""
    count = channels(x, last=bool(channels_last))
    check_shape("gamma", gamma, count)
    check_shape("beta", beta, count)
    left = mod(count, groups)
    if isinstance(left, int) and left:
        raise InferenceError(f"{count} channels cannot be divided into {groups} groups")
    return TensorType(x.element, x.shape)


def evaluate(
    x: Array, gamma: Array, beta: Array, *, activation: int, channels_last: int, epsilon: float, groups: int
) -> Array:
    """Return the result for `x` of float32, in float32."""
    y = np.moveaxis(x, -1, 1) if channels_last else x
    each = y.shape[1] // groups
    rows = y.reshape(len(y) * groups, each * math.prod(y.shape[2:]))
    y = normalization.standardized(rows, epsilon).reshape(y.shape)
    y = y * widened(gamma)[:, None, None] + widened(beta)[:, None, None]
    if activation:
        with np.errstate(over="ignore"):
            y *= sigmoid(y)
    return np.moveaxis(y, 1, -1) if channels_last else y


def lowered(
    x: Expression, gamma: Expression, beta: Expression, *, activation: int, channels_last: int,
    epsilon: float, groups: int,
) -> Expression:  # fmt: skip
    """Return the result for `x` of float, in float; all is computed in the shape with groups."""
    place = RANK - 1 if channels_last else 1
    split = normalization_kernels.grouped(x, groups, place)
    over, sides = ((1, 2, 4), ()) if channels_last else ((2, 3, 4), (1, 1))
    normal = normalization_kernels.standardized(split, over, epsilon)
    each = split.shape[place + 1]
    scale, shift = (loops.reshape(loops.cast(p, "float"), (groups, each, *sides)) for p in (gamma, beta))
    y = loops.apply("add", loops.apply("mul", normal.y, scale), shift)
    return loops.reshape(kernels.swish(y, 1) if activation else y, x.shape)


def emitted(
    b: Builder, x: Value, gamma: Value, beta: Value, *, activation: int, channels_last: int, epsilon: float,
    groups: int,
) -> Value:  # fmt: skip
    """Emit the result for `x` of float, in float."""
    count, shape = as_input(b, "groups", [groups]), b.Shape(x)
    place = RANK - 1 if channels_last else 1
    each = b.Div(b.Shape(x, start=place, end=place + 1), count)
    rest = () if channels_last else (b.Shape(x, start=2),)
    split = b.Reshape(x, b.Concat(b.Shape(x, end=place), count, each, *rest, axis=0), allowzero=1)
    over = (1, 2, 4) if channels_last else (2, 3, 4)
    rest_of_mean = b.Sub(split, reductions.call(b, "ReduceMean", split, over))
    variance = reductions.call(b, "ReduceMean", b.Mul(rest_of_mean, rest_of_mean), over)
    spread = b.Sqrt(Numbers.like(b, x).op("Add", variance, epsilon))
    y = b.Reshape(b.Div(rest_of_mean, spread), shape, allowzero=1)
    scale, shift = (_per_channel(b, p, channels_last) for p in (gamma, beta))
    y = b.Add(b.Mul(y, scale), shift)
    return b.Mul(y, b.Sigmoid(y)) if activation else y


def _per_channel(b: Builder, parameter: Value, channels_last: int) -> Value:
    wide = halves.widened(b, parameter)
    return wide if channels_last else b.Unsqueeze(wide, as_input(b, "axes", [1, 2]))
