"""MeanVarianceNormalization: zero mean and unit variance over `axes`."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import normalization
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.families.shapes.shapes import axes_in
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
)

mean_variance_normalization = Operator(
    "MeanVarianceNormalization", summary="`(X - mean(X)) / (sqrt(var(X)) + 1e-9)`, over `axes`."
)

T = Constraint("T", FLOATS)

v1 = mean_variance_normalization.first(
    1,
    inputs=[Input("input", T, "(N, C, H, W).", differentiable=True)],
    outputs=[Output("output", T, "The input's shape.", differentiable=True)],
    attributes=[
        Attribute("across_channels", "int", "1: average over the channels too.", default=0),
        Attribute("normalize_variance", "int", "0: subtract the mean only.", default=1),
    ],
    unpublished=True,
)
v9 = v1.evolve(
    9,
    "`axes` states the axes to average over.",
    inputs=[Input("X", T, "A tensor that has these axes; rank 4 with the default.", differentiable=True)],
    outputs=[Output("Y", T, "The input's shape.", differentiable=True)],
    drop=["across_channels", "normalize_variance"],
    add=[
        Attribute(
            "axes", "ints", "The axes to average over; by default all but the channels.", default=(0, 2, 3)
        )
    ],
)
v13 = v9.widen(13, T=BFLOAT16)

EPSILON = 1e-9


IMAGES, ALL = (0, 2, 3), (0, 1, 2, 3)  # the axes that are averaged over


@v1.infer
def infer_images(x: TensorType, /) -> TensorType:
    check_least_rank("input", x, 1)
    return TensorType(x.element, x.shape)


@v9.infer
def infer(x: TensorType, /, *, axes: tuple[int, ...]) -> TensorType:
    if x.shape is not None:
        axes_in(axes, len(x.shape))
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate_images(x: Array, /, *, across_channels: int, normalize_variance: int) -> Array:
    check_least_rank("input", x, 1)
    axes = _axes(across_channels, x.ndim)
    if normalize_variance:
        return evaluate(x, axes=axes)
    wide = widened(x)
    mean = normalization.statistics(wide, axes).mean
    shape = [1 if i in axes else d for i, d in enumerate(x.shape)]
    return (wide - mean.reshape(shape).astype(wide.dtype)).astype(x.dtype, copy=False)


def _axes(across_channels: int, rank: int) -> tuple[int, ...]:
    return tuple(axis for axis in (ALL if across_channels else IMAGES) if axis < rank)


@v9.evaluate
def evaluate(x: Array, /, *, axes: tuple[int, ...]) -> Array:
    along = axes_in(axes, x.ndim) or tuple(range(x.ndim))  # no axes mean all, as in a reduction
    wide = widened(x)
    known = normalization.statistics(wide, along)
    shape = [1 if i in along else d for i, d in enumerate(x.shape)]
    mean, deviation = (
        a.reshape(shape).astype(wide.dtype) for a in (known.mean, np.sqrt(known.variance) + EPSILON)
    )
    return ((wide - mean) / deviation).astype(x.dtype, copy=False)


@v1.lower
def lower_images(x: Expression, /, *, across_channels: int, normalize_variance: int) -> Expression:
    axes = _axes(across_channels, x.rank)
    if normalize_variance:
        return lower(x, axes=axes)
    mean = loops.mean(loops.cast(x, "double"), axes)
    return loops.apply("sub", x, loops.cast(mean, x.element))


@v9.lower
def lower(x: Expression, /, *, axes: tuple[int, ...]) -> Expression:
    """Compute the statistics in double: of equal elements they must be exact, so small is the epsilon."""
    along, wide = axes_in(axes, x.rank) or tuple(range(x.rank)), loops.cast(x, "double")
    mean = loops.mean(wide, along)
    rest = loops.apply("sub", wide, mean)
    variance = loops.mean(loops.apply("mul", rest, rest), along)
    deviation = loops.apply("add", loops.apply("sqrt", variance), EPSILON)
    centred = loops.apply("sub", x, loops.cast(mean, x.element))
    return loops.apply("div", centred, loops.cast(deviation, x.element))


@v9.upgrade
def with_axes(b: Builder, x: Value, /, *, across_channels: int, normalize_variance: int) -> Value:
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    axes = _axes(across_channels, len(ALL) if rank is None else rank)
    if normalize_variance:
        return b.MeanVarianceNormalization(x, axes=axes)
    wide = halves.widened(b, x)
    return halves.rounded(b, b.Sub(wide, reductions.call(b, "ReduceMean", wide, axes)), x)


@v9.downgrade  # the version before was never released
@v9.body
def body(b: Builder, x: Value, /, *, axes: tuple[int, ...]) -> Value:
    wide = halves.widened(b, x)
    if not isinstance(wide.type, TensorType) or not wide.type.element.number:
        raise Unconvertible("the element type is unknown, and the epsilon must be of it")
    rest = b.Sub(wide, reductions.call(b, "ReduceMean", wide, axes))
    variance = reductions.call(b, "ReduceMean", b.Mul(rest, rest), axes)
    epsilon = b.initializer("epsilon", np.array(EPSILON, wide.type.element.dtype))
    return halves.rounded(b, b.Div(rest, b.Add(b.Sqrt(variance), epsilon)), x)


@v13.gradient
def gradient(g: Gradient, x: Value, /, *, axes: tuple[int, ...]) -> Value:
    """Where all elements are equal, the deviation has the gradient 0."""
    wide, dy = halves.widened(g, x), halves.widened(g, g.dy)

    def mean(v: Value) -> Value:
        return g.ReduceMean(v, [*axes])

    rest = g.Sub(wide, mean(wide))
    root = g.Sqrt(mean(g.Mul(rest, rest)))
    spread = g.Add(root, EPSILON)
    slope = g.Mul(spread, g.Where(g.Equal(root, 0), 1, root))
    along = g.Mul(rest, g.Div(mean(g.Mul(dy, rest)), slope))
    return halves.rounded(g, g.Div(g.Sub(g.Sub(dy, mean(dy)), along), spread), x)


@mean_variance_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[1, 3]], [[2, 2]]], [[[3, 1]], [[2, 2]]]], f)
    y = np.array([[[[-1, 1]], [[0, 0]]], [[[1, -1]], [[0, 0]]]], f)  # by hand: 2 +- 1, and a constant
    for channels, variance, result in ((0, 1, y), (1, 1, y / np.sqrt(0.5)), (0, 0, y), (1, 0, y)):
        for kind in (f, np.float16, np.float64):
            attributes: dict[str, Any] = {"across_channels": channels, "normalize_variance": variance}
            yield Example(1, x.astype(kind), **attributes, expect=[result.astype(kind)], tolerance=1e-3)
    yield Example(7, x[..., 0], normalize_variance=0, expect=[[[[-1], [0]], [[1], [0]]]])
    yield Example(7, np.array([1, 3], f), expect=[[-1, 1]])
    for opset in (9, 13):
        yield Example(opset, x, expect=[y])
        yield Example(opset, x[0, 0], axes=[0, 1], expect=[y[0, 0]])
        yield Example(opset, x.astype(np.float64), axes=[3], expect=[y.astype(np.float64)])
        yield Example(opset, x.astype(np.float16), expect=[y.astype(np.float16)])
        yield Example(opset, x * 1e4, expect=[y])
        yield Example(opset, [1e4, 1e4 + 2], axes=[0], expect=[[-1, 1]])
        yield Example(opset, np.array([40000, 0], np.float16), axes=[0], expect=[[1, -1]])
    yield Example(13, x, axes=[-1], expect=[y])
    yield Example(13, np.zeros((0, 2), f), axes=[1], expect=[np.zeros((0, 2), f)])
    yield Example(13, x.astype(ml_dtypes.bfloat16), expect=[y.astype(ml_dtypes.bfloat16)])
