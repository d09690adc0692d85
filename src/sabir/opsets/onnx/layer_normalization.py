"""LayerNormalization: the last axes normalised to zero mean and unit variance, then scaled and shifted."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import DOUBLE, element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.building.calls import results_of, typed
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.normalization.normalization_gradients import Normal
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import Numbers, element_of
from sabir.opsets.families.reduction import reductions
from sabir.opsets.families.reduction.reduction_gradients import share
from sabir.opsets.families.shapes.ranks import check_broadcast
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array, Gradient
from sabir.schema import (
    BFLOAT16,
    FLOATS,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    element_types,
    tensors,
)

layer_normalization = Operator(
    "LayerNormalization",
    summary="`(X - mean) / sqrt(var + epsilon) * Scale + B`, over the dimensions from `axis` on.",
    body_opset=13,
)

T = Constraint("T", FLOATS, BFLOAT16)
U = Constraint("U", BFLOAT16, tensors("float"))


def parameters(kind: Constraint) -> list[Input]:
    return [
        Input("Scale", kind, "The scale, which broadcasts to X."),
        Input("B", kind, "The bias, which broadcasts to X; 0 by default.", optional=True),
    ]


def outputs(kind: Constraint, statistic: Constraint) -> list[Output]:
    inverse = "`1 / sqrt(var + epsilon)`; the normalised dimensions are 1."
    return [
        Output("Y", kind, "The input's shape."),
        Output("Mean", statistic, "The means; the normalised dimensions are 1.", optional=True),
        Output("InvStdDev", statistic, inverse, optional=True),
    ]


X = Input("X", T, "A tensor of rank 1 or more.")
V1 = Constraint("V", FLOATS, BFLOAT16)
v1 = layer_normalization.first(
    1,
    inputs=[X, *parameters(V1)],
    outputs=outputs(V1, Constraint("U", tensors("double", "float"))),
    attributes=[
        Attribute(
            "stash_type",
            "int",
            "The element type of the computation and of the statistics: 1 float, 11 double, 16 bfloat16;"
            " each version admits two of them.",
            default=1,
            values=element_types("U"),
        ),
        normalization.EPSILON,
        Attribute("axis", "int", "The first dimension to normalise over.", default=-1),
    ],
    status="experimental",
    unpublished=True,
)
v17 = v1.evolve(
    17,
    "The scale and the bias have the type of X; the statistics may be bfloat16, not double.",
    inputs=[X, *parameters(T)],
    outputs=outputs(T, U),
    status="stable",
)


@v1.infer
def infer_with_scale(
    x: TensorType, scale: TensorType, b: TensorType | None = None, /, *, axis: int, stash_type: int
) -> tuple[TensorType, ...]:
    y, *statistics = infer(x, scale, b, axis=axis, stash_type=stash_type)
    return TensorType(scale.element, y.shape), *statistics


@v17.infer
def infer(
    x: TensorType, scale: TensorType, b: TensorType | None = None, /, *, axis: int, stash_type: int
) -> tuple[TensorType, ...]:
    y, stash = TensorType(x.element, x.shape), element(stash_type)
    if x.shape is None:
        return y, TensorType(stash), TensorType(stash)
    check_broadcast("Scale", scale, x.shape)
    check_broadcast("B", b, x.shape)
    kept = axis_in(axis, len(x.shape))
    statistic = TensorType(stash, (*x.shape[:kept], *(1,) * (len(x.shape) - kept)))
    return y, statistic, statistic


@v1.evaluate
def evaluate_with_scale(
    x: Array, scale: Array, b: Array | None = None, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Array, Array, Array]:
    """Compute in the type of the scale, or in one that has the numbers of both types."""
    wide = normalization.common_type(element(x.dtype), element(scale.dtype)).dtype
    bias = None if b is None else b.astype(wide, copy=False)
    x, factor = (a.astype(wide, copy=False) for a in (x, scale))
    y, mean, inverse = evaluate(x, factor, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)
    return y.astype(scale.dtype, copy=False), mean, inverse


@v17.evaluate
def evaluate(
    x: Array, scale: Array, b: Array | None = None, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Array, Array, Array]:
    """The stash type bfloat16 is computed in float32 and rounded."""
    check_broadcast("Scale", scale, x.shape)
    check_broadcast("B", b, x.shape)
    kept, stash = axis_in(axis, x.ndim), element(stash_type).dtype
    stashed = normalization.stashed(x, stash).reshape(math.prod(x.shape[:kept]), math.prod(x.shape[kept:]))
    rows, mean, inverse = normalization.normalized(stashed, epsilon)
    y = widened(rows.astype(stash, copy=False).astype(x.dtype, copy=False)).reshape(x.shape)
    y *= widened(scale)
    if b is not None:
        y += widened(b)
    shape = (*x.shape[:kept], *(1,) * (x.ndim - kept))
    return (
        y.astype(x.dtype, copy=False),
        mean.reshape(shape).astype(stash),
        inverse.reshape(shape).astype(stash),
    )


@v1.lower
def lower_with_scale(
    x: Expression, scale: Expression, b: Expression | None = None, /,
    *, axis: int, epsilon: float, stash_type: int,
) -> tuple[Expression, ...]:  # fmt: skip
    wide = normalization.common_type(element(x.element), element(scale.element)).name
    bias = None if b is None else loops.cast(b, wide)
    x, factor = (loops.cast(a, wide) for a in (x, scale))
    y, *statistics = lower(x, factor, bias, axis=axis, epsilon=epsilon, stash_type=stash_type)
    return loops.cast(y, scale.element), *statistics


@v17.lower
def lower(
    x: Expression, scale: Expression, b: Expression | None = None, /,
    *, axis: int, epsilon: float, stash_type: int,
) -> tuple[Expression, ...]:  # fmt: skip
    stash, axes = element(stash_type).name, range(axis_in(axis, x.rank), x.rank)
    normal = normalization_kernels.standardized(normalization_kernels.stashed(x, stash), axes, epsilon)
    y = loops.apply("mul", normalization_kernels.unstashed(normal.y, stash, x.element), scale)
    y = y if b is None else loops.apply("add", y, b)
    return y, loops.cast(normal.mean, stash), loops.cast(normal.inverse, stash)


@v1.body
def body_with_scale(
    b: Builder, x: Value, scale: Value, bias: Value | None = None, /,
    *, axis: int, epsilon: float, stash_type: int, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    kind = element_of(scale)
    wide = normalization.common_type(element_of(x), kind)
    offset = None if bias is None else typed(b, bias, wide)
    x, factor = (typed(b, v, wide) for v in (x, scale))
    made = body(b, x, factor, offset, axis=axis, epsilon=epsilon, stash_type=stash_type, call=call)
    return typed(b, made[0], kind), *made[1:]


@v17.upgrade
def in_one_type(
    b: Builder, x: Value, scale: Value, bias: Value | None = None, /, *, stash_type: int, call: Call,
    **attributes: Any,
) -> tuple[Value, ...]:  # fmt: skip
    """The same call, except where X has another element type than the scale."""
    if stash_type == DOUBLE.number:
        raise Unconvertible("LayerNormalization:17 has no statistics in double")
    kind, target = (v.type.element if isinstance(v.type, TensorType) else None for v in (x, scale))
    operands, wide = [x, scale, bias], target
    if kind is not None and target is not None and kind is not target:
        wide = normalization.common_type(kind, target)
        operands = [None if v is None else typed(b, v, wide) for v in operands]
    y, *statistics = results_of(
        b.op("LayerNormalization", *operands, outputs=len(call.outputs), stash_type=stash_type, **attributes)
    )
    return y if target is None or wide is target else b.Cast(y, to=target.number), *statistics


@v17.downgrade  # the version before was never released
@v17.body
def body(
    b: Builder, x: Value, scale: Value, bias: Value | None = None, /,
    *, axis: int, epsilon: float, stash_type: int, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    """Compute the statistics in the stash type, and the rest in the type of `x`."""
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if axis >= 0 and rank is None:
        raise Unconvertible("the rank is unknown, and so the number of dimensions to normalise over")
    axes = range(axis, 0 if axis < 0 else rank or 0)
    stashed = typed(b, x, element(stash_type))
    mean = reductions.call(b, "ReduceMean", stashed, axes)
    deviation = b.Sub(stashed, mean)
    variance = reductions.call(b, "ReduceMean", b.Mul(deviation, deviation), axes)
    spread = b.Sqrt(Numbers(b, element(stash_type)).op("Add", variance, epsilon))
    y = b.Mul(typed(b, b.Div(deviation, spread), element_of(x)), scale)
    y = y if bias is None else b.Add(y, bias)
    wanted = len(call.outputs)
    return (y, mean, b.Reciprocal(spread))[:wanted] if wanted > 2 else (y, mean)[:wanted]  # ruff: ignore[magic-value-comparison]  the last output


@v17.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, bias: Value | None = None, /, *, axis: int, stash_type: int
) -> tuple[Value | None, ...]:
    """Computed in the stash type, from the statistics of the call."""
    stash, kind = element(stash_type), element_of(x)
    axes = [*range(axis, 0 if axis < 0 else g.rank(x))]
    dy, d_mean, d_inverse = (*g.dys, None, None)[:3]
    deviation = g.Sub(typed(g, x, stash), g.y(1))
    normal = Normal(g.Mul(deviation, g.y(2)), g.y(2), axes)
    part = share(g, deviation, g.y(1))
    parts: list[Value] = []
    if dy is not None:
        parts.append(normal.gradient(g, typed(g, g.Mul(dy, scale), stash)))
    if d_inverse is not None:
        slope = g.Mul(d_inverse, g.Mul(normal.inverse, normal.inverse))
        parts.append(g.Neg(g.Mul(g.Mul(slope, part), normal.y)))
    if d_mean is not None:
        parts.append(g.Expand(g.Mul(d_mean, part), g.sizes(x)))
    dx = typed(g, parts[0] if len(parts) == 1 else g.Sum(*parts), kind)
    if dy is None:
        return dx, None, None
    d_bias = None if bias is None else g.fit(dy, bias)
    return dx, g.fit(g.Mul(dy, typed(g, normal.y, kind)), scale), d_bias


@layer_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 3], [5, 7]], [[2, 2], [-2, 6]]], f)
    scale, bias = np.array([2, 1], f), np.array([0, 1], f)
    last = [[[-2, 2], [-2, 2]], [[0, 1], [-2, 2]]]  # by hand: deviations of 1, scaled and shifted
    means, inverses = np.array([[[2], [6]], [[2], [2]]], f), np.array([[[1], [1]], [[1e3], [0.25]]], f)
    yield Example(17, x, scale, bias, outputs=3, epsilon=1e-6, tolerance=1e-5, expect=[last, means, inverses])
    five, eight = np.sqrt(f(5)), np.sqrt(8)  # deviations over both trailing dimensions
    both = np.array([[[-3 / five, -1 / five], [1 / five, 3 / five]], [[0, 0], [-4 / eight, 4 / eight]]], f)
    for axis in (1, -2):
        items = [[[4]], [[2]]], np.array([[[1 / five]], [[1 / eight]]], f)
        yield Example(17, x, np.ones((2, 2), f), outputs=3, axis=axis, epsilon=0.0, expect=[both, *items])
    call, y = (x.astype(np.float16), scale.astype(np.float16)), (last - bias).astype(np.float16)
    yield Example(17, *call, epsilon=1e-6, outputs=2, tolerance=1e-3, expect=[y, means])
    yield Example(17, x.astype(float), np.ones((2, 1, 2)), axis=0, outputs=3)
    brain = ml_dtypes.bfloat16
    halves = [a.astype(brain) for a in (x, scale, last - bias, means, inverses)]
    yield Example(17, *halves[:2], stash_type=16, outputs=3, epsilon=1e-6, tolerance=1e-2, expect=halves[2:])
    yield Example(17, np.zeros((0, 3), f), np.ones(3, f), outputs=3, expect=[np.zeros((0, 3), f)])
    yield from _examples_of_two_types(x, scale, bias, [last, means, inverses])


def _examples_of_two_types(x: Array, scale: Array, bias: Array, expect: list[Any]) -> Iterator[Example]:
    """Calls of version 1, which nearly all are in opsets up to 16."""
    options: dict[str, Any] = {"epsilon": 1e-6, "outputs": 3, "tolerance": 1e-5}
    y, means, inverses = np.array(expect[0]), *expect[1:]
    for opset in (1, 9, 13, 16):
        yield Example(opset, x, scale, bias, **options, expect=[y.astype(np.float32), means, inverses])
    for kind, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2), (np.float64, 1e-5)):
        call, options["tolerance"] = [a.astype(kind) for a in (x, scale, bias)], rough
        yield Example(13, *call, **options, expect=[y.astype(kind), means, inverses])
        yield Example(13, call[0], scale, bias, **options, expect=[y.astype(np.float32), means, inverses])
        yield Example(13, x, *call[1:], **options, expect=[y.astype(kind), means, inverses])
        statistics = [means.astype(np.float64), inverses.astype(np.float64)]
        yield Example(13, *call, stash_type=11, **options, expect=[y.astype(kind), *statistics])
    yield Example(13, x, np.ones((2, 2), np.float32), axis=1)
    yield Example(13, x[:0], scale, outputs=3, expect=[x[:0]])
