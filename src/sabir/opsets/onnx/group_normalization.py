"""GroupNormalization: each group of channels normalised to zero mean and unit variance, then scaled."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import DOUBLE, FLOAT, ElementType, element
from sabir.ir import Builder, Dim, TensorType, Value, mod
from sabir.loops import Expression
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.normalization.normalization_gradients import Normal
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.axes import as_input
from sabir.opsets.families.shapes.ranks import check_least_rank, check_shape
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    Version,
    at_least,
)

group_normalization = Operator(
    "GroupNormalization",
    summary="`scale * (X - mean) / sqrt(var + epsilon) + bias`, over each group of channels.",
)

T = Constraint("T", FLOATS, BFLOAT16)

v18 = group_normalization.record(
    Version(
        group_normalization,
        18,
        "First version, with a scale and a bias for each group; later deprecated without a new version, "
        "since version 21 has them for each channel.",
        (
            Input("X", T, differentiable=True),
            Input("scale", T, differentiable=True),
            Input("bias", T, differentiable=True),
        ),
        (Output("Y", T, differentiable=True),),
        (
            Attribute("num_groups", "int", "The number of groups.", required=True, values=at_least(1)),
            normalization.EPSILON,
        ),
        deprecated=True,
    )
)
v21 = v18.evolve(
    21,
    "`scale` and `bias` have an element for each channel; `stash_type` is the type to normalise in.",
    inputs=[
        Input("X", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("scale", T, "The factor of each channel, (C).", differentiable=True),
        Input("bias", T, "The bias of each channel, (C).", differentiable=True),
    ],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    add=[
        Attribute(
            "stash_type",
            "int",
            "The type to normalise in, as a number of TensorProto.DataType, before scale and bias.",
            default=1,
            values=normalization.STASHES,
        )
    ],
)


@v18.infer
def infer_by_group(x: TensorType, scale: TensorType, bias: TensorType, /, *, num_groups: int) -> TensorType:
    check_shape("scale", scale, num_groups)
    check_shape("bias", bias, num_groups)
    return TensorType(
        x.element, _grouped(x, x.shape[1] if x.shape and len(x.shape) > 1 else None, num_groups)
    )


@v21.infer
def infer(x: TensorType, scale: TensorType, bias: TensorType, /, *, num_groups: int) -> TensorType:
    return TensorType(x.element, _grouped(x, normalization.channels(x, scale, bias), num_groups))


def _grouped(x: TensorType, count: Dim, groups: int) -> tuple[Dim, ...] | None:
    left = mod(count, groups)
    if isinstance(left, int) and left:
        raise InferenceError(f"{count} channels cannot be divided into {groups} groups")
    if x.shape is None:
        return None
    if len(x.shape) < 2:  # ruff: ignore[magic-value-comparison]  a batch and channels
        raise InferenceError(f"{x} has no channels; the first axis is the batch, the second the channels")
    return (x.shape[0], count, *x.shape[2:])


@v18.evaluate
def evaluate_by_group(x: Array, scale: Array, bias: Array, /, *, num_groups: int, epsilon: float) -> Array:
    check_least_rank("X", x, 2)
    check_shape("scale", scale, num_groups)
    check_shape("bias", bias, num_groups)
    each = x.shape[1] // max(1, num_groups)
    y = _normalized(widened(x), num_groups, epsilon)
    return _shifted(y, np.repeat(scale, each), np.repeat(bias, each), x.dtype)


@v21.evaluate
def evaluate(
    x: Array, scale: Array, bias: Array, /, *, num_groups: int, epsilon: float, stash_type: int
) -> Array:
    check_least_rank("X", x, 2)
    normalization.channels(x, scale, bias)
    stash = element(stash_type).dtype
    y = _normalized(normalization.stashed(x, stash), num_groups, epsilon)
    return _shifted(widened(y.astype(stash, copy=False).astype(x.dtype, copy=False)), scale, bias, x.dtype)


@v18.lower
def lower_by_group(
    x: Expression, scale: Expression, bias: Expression, /, *, num_groups: int, epsilon: float
) -> Expression:
    groups = normalization_kernels.grouped(x, num_groups)
    normal = normalization_kernels.standardized(groups, range(2, groups.rank), epsilon)
    return loops.reshape(normalization_kernels.shifted(normal.y, scale, bias), x.shape)


@v21.lower
def lower(
    x: Expression, scale: Expression, bias: Expression, /, *, num_groups: int, epsilon: float, stash_type: int
) -> Expression:
    """Scale in the shape with groups too, so that one kernel computes everything."""
    groups = normalization_kernels.grouped(x, num_groups)
    stash = element(stash_type).name
    stashed = normalization_kernels.stashed(groups, stash)
    normal = normalization_kernels.standardized(stashed, range(2, groups.rank), epsilon)
    each = [loops.reshape(p, groups.shape[1:3]) for p in (scale, bias)]
    y = normalization_kernels.shifted(normalization_kernels.unstashed(normal.y, stash, x.element), *each)
    return loops.reshape(y, x.shape)


def _normalized(x: Array, groups: int, epsilon: float) -> Array:
    if groups < 1 or x.shape[1] % groups:
        raise ValueError(f"{x.shape[1]} channels cannot be divided into {groups} groups")
    rows = x.reshape(len(x) * groups, x.shape[1] // groups * math.prod(x.shape[2:]))
    return normalization.standardized(rows, epsilon).reshape(x.shape)


def _shifted(y: Array, scale: Array, bias: Array, dtype: np.dtype[np.generic]) -> Array:
    shape = (-1, *(1,) * (y.ndim - 2))
    y *= widened(scale).reshape(shape)
    y += widened(bias).reshape(shape)
    return y.astype(dtype, copy=False)


# ---------------------------------------------------------------- bodies and adapters


@v18.body
def body_by_group(
    b: Builder, x: Value, scale: Value, bias: Value, /, *, num_groups: int, epsilon: float
) -> Value:
    """Each group is one channel of the reshaped input."""
    wide = [halves.widened(b, v) for v in (x, scale, bias)]
    split = b.Reshape(wide[0], _split_shape(b, x, num_groups), allowzero=1)
    y = b.InstanceNormalization(split, *wide[1:], epsilon=epsilon)
    return halves.rounded(b, b.Reshape(y, b.Shape(x), allowzero=1), x)


@v21.downgrade  # version 18 is deprecated, and checkers refuse it
@v21.body
def body(
    b: Builder, x: Value, scale: Value, bias: Value, /, *, num_groups: int, epsilon: float, stash_type: int
) -> Value:
    stash, kind = element(stash_type), _element(x)
    stored = typed(b, x, stash)
    wide = DOUBLE if stash is DOUBLE else FLOAT
    split = b.Reshape(halves.widened(b, stored), _split_shape(b, x, num_groups), allowzero=1)
    one, zero = (
        b.initializer(name, np.full(num_groups, v, wide.dtype)) for name, v in (("one", 1), ("zero", 0))
    )
    y = b.Reshape(b.InstanceNormalization(split, one, zero, epsilon=epsilon), b.Shape(x), allowzero=1)
    for step in (stash, kind):  # rounded to the stash type, then to the input's
        y = b.Cast(y, to=step.number)
    return _scaled_by_channel(b, y, scale, bias)


def _split_shape(b: Builder, x: Value, groups: int) -> Value:
    """Return (N, groups, C / groups, D1, ..., Dn)."""
    count = as_input(b, "groups", [groups])
    each = b.Div(b.Shape(x, start=1, end=2), count)
    return b.Concat(b.Shape(x, end=1), count, each, b.Shape(x, start=2), axis=0)


def _scaled_by_channel(b: Builder, y: Value, scale: Value, bias: Value) -> Value:
    """Return `y * scale + bias`; the parameters get trailing dimensions of 1 for the spatial axes."""
    one = b.initializer("one", np.array(1, np.int64))
    spatial = b.Range(one, b.Sub(b.Size(b.Shape(y)), one), one)
    factor, shift = (b.Unsqueeze(halves.widened(b, p), spatial) for p in (scale, bias))
    return halves.rounded(b, b.Add(b.Mul(halves.widened(b, y), factor), shift), y)


@v21.upgrade
def parameters_per_channel(
    b: Builder, x: Value, scale: Value, bias: Value, /, *, num_groups: int, epsilon: float
) -> Value:
    """Repeat the parameters of a group for each of its channels."""
    each = b.Div(b.Shape(x, start=1, end=2), as_input(b, "groups", [num_groups]))
    shape = b.Concat(as_input(b, "groups", [num_groups]), each, axis=0)
    last, flat = as_input(b, "last", [1]), as_input(b, "flat", [-1])
    wide = [b.Reshape(b.Expand(b.Unsqueeze(p, last), shape), flat) for p in (scale, bias)]
    stash = DOUBLE if _element(x) is DOUBLE else FLOAT
    return b.GroupNormalization(x, *wide, num_groups=num_groups, epsilon=epsilon, stash_type=stash.number)


def _element(x: Value) -> ElementType:
    if not isinstance(x.type, TensorType) or not x.type.element.number:
        raise Unconvertible("the element type is unknown, and the precision depends on it")
    return x.type.element


@v18.gradient
def gradient_by_group(
    g: Gradient, x: Value, scale: Value, bias: Value, /, *, num_groups: int, epsilon: float
) -> tuple[Value, ...]:
    groups = g.Unsqueeze(scale, [*range(1, g.rank(x))])
    return _gradients(g, x, groups, _element(x), num_groups, epsilon, (scale, bias))


@v21.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, bias: Value, /, *, num_groups: int, epsilon: float, stash_type: int
) -> tuple[Value, ...]:
    groups = g.Reshape(scale, [num_groups, -1, *(1,) * (g.rank(x) - 2)])
    return _gradients(g, x, groups, element(stash_type), num_groups, epsilon, (scale, bias))


def _gradients(
    g: Gradient, x: Value, scale: Value, stash: ElementType, groups: int, epsilon: float,
    parameters: tuple[Value, Value],
) -> tuple[Value, ...]:  # fmt: skip
    """Return the gradients, computed with an axis for the groups, as which `scale` has its first."""
    kind, shape = _element(x), _split_shape(g, x, groups)
    split, dy = (g.Reshape(v, shape, allowzero=1) for v in (x, g.dy))
    wide = halves.widened(g, typed(g, split, stash))
    dy, factor = (typed(g, v, _element(wide)) for v in (dy, scale))
    normal = Normal.of(g, wide, range(2, g.rank(x) + 1), epsilon)
    dx = g.Reshape(normal.gradient(g, g.Mul(dy, factor)), g.sizes(x), allowzero=1)
    summed = (g.fit(d, factor) for d in (g.Mul(dy, normal.y), dy))
    rest = (g.Reshape(d, g.sizes(p), allowzero=1) for d, p in zip(summed, parameters, strict=True))
    return tuple(typed(g, d, kind) for d in (dx, *rest))


# ---------------------------------------------------------------- examples


@group_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    # groups of two channels with means 4 and 3, variances 5 and 2 after the example's epsilon of 1
    x = np.array([[[[1, 3], [5, 7]], [[3, 3], [3, 3]]]], f).reshape(1, 4, 2)
    x[0, 2:] = [[2, 4], [4, 2]]
    unit = np.array([[[-3, -1], [1, 3], [-1, 1], [1, -1]]], f) / np.sqrt(np.array([6, 6, 2, 2], f))[:, None]
    group = np.array([2, -1], f), np.array([0, 10], f)
    channel = np.array([2, 3, -1, 5], f), np.array([0, 1, 10, 20], f)
    by_group = unit * np.repeat(group[0], 2)[:, None] + np.repeat(group[1], 2)[:, None]
    by_channel = unit * channel[0][:, None] + channel[1][:, None]
    yield Example(18, x, *group, num_groups=2, epsilon=1.0, expect=[by_group])
    yield Example(21, x, *channel, num_groups=2, epsilon=1.0, expect=[by_channel])
    groups: dict[str, Any] = {"num_groups": 2, "epsilon": 1.0}
    square = (1, 4, 2, 1)
    yield Example(18, x.reshape(square), *group, **groups, expect=[by_group.reshape(square)])
    yield Example(21, x.reshape(square), *channel, **groups, expect=[by_channel.reshape(square)])
    for dtype, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 0.02), (np.float64, 2e-3)):
        call, expected = [a.astype(dtype) for a in (x, *group)], by_group.astype(dtype)
        yield Example(18, *call, **groups, tolerance=rough, expect=[expected])
        call, expected = [a.astype(dtype) for a in (x, *channel)], by_channel.astype(dtype)
        for stash, loose in ((1, rough), (10, rough), (11, rough), (16, 0.05)):
            yield Example(21, *call, **groups, stash_type=stash, tolerance=loose, expect=[expected])
    empty = np.zeros((0, 2, 3), f)
    for opset in (18, 21):  # a large mean, and no items
        yield Example(opset, [[[20001, 20003]]], np.ones(1, f), [0], num_groups=1, expect=[[[[-1, 1]]]])
        yield Example(opset, empty, np.ones(2, f), np.ones(2, f), num_groups=2, expect=[empty])
