"""RMSNormalization: division by the root mean square over the last axes, then scaling."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, ElementType, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.normalization.normalization_gradients import mean
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

rms_normalization = Operator(
    "RMSNormalization",
    summary="`X / sqrt(mean(X ** 2) + epsilon) * scale`, over the dimensions from `axis` on.",
)

T = Constraint("T", FLOATS, BFLOAT16)
V = Constraint("V", FLOATS, BFLOAT16)

v23 = rms_normalization.first(
    23,
    inputs=[
        Input("X", T, "A tensor of rank 1 or more."),
        Input("scale", V, "The scale, which broadcasts to X."),
    ],
    outputs=[Output("Y", V, "The input's shape, in the type of `scale`.")],
    attributes=[
        Attribute(
            "stash_type",
            "int",
            "The type to normalise in, as a number of TensorProto.DataType, before the scale.",
            default=1,
            values=normalization.STASHES,
        ),
        Attribute("epsilon", "float", "Added to the mean square, so that it is not 0.", default=1e-05),
        Attribute("axis", "int", "The first dimension to normalise over.", default=-1),
    ],
)


@v23.infer
def infer(x: TensorType, scale: TensorType, /, *, axis: int) -> TensorType:
    if x.shape is not None:
        axis_in(axis, len(x.shape))
        check_broadcast("scale", scale, x.shape)
    return TensorType(scale.element, x.shape)


@v23.evaluate
def evaluate(x: Array, scale: Array, /, *, axis: int, epsilon: float, stash_type: int) -> Array:
    check_broadcast("scale", scale, x.shape)
    kept, stash = axis_in(axis, x.ndim), element(stash_type).dtype
    rows = normalization.stashed(x, stash).reshape(math.prod(x.shape[:kept]), math.prod(x.shape[kept:]))
    normal = (
        normalization.of_unit_mean_square(rows, epsilon).astype(stash, copy=False).astype(x.dtype, copy=False)
    )
    y = widened(normal).reshape(x.shape) * widened(scale)
    return y.astype(scale.dtype, copy=False)


@v23.lower
def lower(x: Expression, scale: Expression, /, *, axis: int, epsilon: float, stash_type: int) -> Expression:
    stash, axes = element(stash_type).name, range(axis_in(axis, x.rank), x.rank)
    stashed = normalization_kernels.stashed(x, stash)
    normal = normalization_kernels.of_unit_mean_square(stashed, axes, epsilon)
    normal = normalization_kernels.unstashed(normal, stash, x.element)
    wide = x.element if x.element == scale.element else "double"
    y = loops.apply("mul", loops.cast(normal, wide), loops.cast(scale, wide))
    return loops.cast(y, scale.element)


@v23.body
def body(b: Builder, x: Value, scale: Value, /, *, axis: int, epsilon: float, stash_type: int) -> Value:
    """The axes are computed at run time, since the rank may be unknown."""
    stash = element(stash_type)
    wide = halves.widened(b, typed(b, x, stash))
    rank, one = b.Size(b.Shape(x)), b.initializer("one", np.array(1, np.int64))
    first = b.initializer("axis", np.array(axis, np.int64))
    axes = b.Range(first if axis >= 0 else b.Add(rank, first), rank, one)
    kind = np.float64 if stash.dtype == np.float64 else np.float32
    mean = b.Add(b.ReduceMean(b.Mul(wide, wide), axes), b.initializer("epsilon", np.array(epsilon, kind)))
    kinds = [v.type.element if isinstance(v.type, TensorType) else None for v in (x, scale)]
    normal = _alike(b, typed(b, b.Div(wide, b.Sqrt(mean)), stash), x, kinds[0])
    if kinds[0] is kinds[1]:
        factors = [halves.widened(b, v) for v in (normal, scale)]
    else:  # both operands of a product have one type, and double represents both
        factors = [b.Cast(v, to=DOUBLE.number) for v in (normal, scale)]
    return _alike(b, b.Mul(*factors), scale, kinds[1])


def _alike(b: Builder, y: Value, like: Value, kind: ElementType | None) -> Value:
    """Return `y` in the type of another value, which is `kind` if it is known."""
    return b.CastLike(y, like) if kind is None or not kind.number else typed(b, y, kind)


@v23.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Value, Value]:
    """Computed in the stash type, or in float where that is a 16-bit type."""
    axes = [*range(axis, 0 if axis < 0 else g.rank(x))]
    wide = halves.widened(g, typed(g, x, element(stash_type)))
    dy, factor = (typed(g, v, element_of(wide)) for v in (g.dy, scale))
    inverse = g.Reciprocal(g.Sqrt(g.Add(mean(g, g.Mul(wide, wide), axes), epsilon)))
    normal, d = g.Mul(wide, inverse), g.Mul(dy, factor)
    dx = g.Mul(inverse, g.Sub(d, g.Mul(normal, mean(g, g.Mul(d, normal), axes))))
    d_scale = g.fit(g.Mul(dy, normal), scale)
    return typed(g, dx, element_of(x)), typed(g, d_scale, element_of(scale))


@rms_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 7], [3, -4]], [[0, 0], [6, 8]]], f)  # mean squares 25, 12.5, 0, 50
    scale = np.array([1, 10], f)
    h = np.sqrt(0.5)
    last = np.array([[[0.2, 14], [1.2 * h, -16 * h]], [[0, 0], [1.2 * h, 16 * h]]], f)
    last[0, 1] = [3, -40] / np.sqrt(12.5)
    last[1, 1] = [6, 80] / np.sqrt(50)
    yield Example(23, x, scale, epsilon=1e-12, expect=[last])
    both = x / np.sqrt(np.array([75 / 4, 25], f))[:, None, None]
    for axis in (1, -2):
        yield Example(23, x, np.ones((1, 2), f), axis=axis, epsilon=0.0, expect=[both])
    yield Example(23, x, f(2), axis=0, epsilon=3.125, expect=[x * 2 / 5])  # the mean of all squares is 21.875
    for kind, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 0.02), (np.float64, 1e-5)):
        for stash, loose in ((1, 2e-3), (10, 2e-3), (11, 2e-3), (16, 0.05)):
            inputs, y = [x.astype(kind), scale.astype(kind)], last.astype(kind)
            far = max(rough, loose)
            yield Example(23, *inputs, epsilon=1e-6, stash_type=stash, tolerance=far, expect=[y])
        yield Example(23, x.astype(kind), scale, epsilon=1e-6, tolerance=rough, expect=[last])
        yield Example(23, x, scale.astype(kind), epsilon=1e-6, tolerance=rough, expect=[last.astype(kind)])
    yield Example(23, np.zeros((0, 3), f), np.ones(3, f), expect=[np.zeros((0, 3), f)])
    yield Example(23, np.array([3, 4], f), np.ones(2, f), expect=[np.array([3, 4], f) / np.sqrt(f(12.5))])
