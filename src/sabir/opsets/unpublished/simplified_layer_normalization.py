"""SimplifiedLayerNormalization: division by the root mean square over the last axes, then scaling."""

import math
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.building.calls import typed
from sabir.opsets.families.normalization import normalization, normalization_kernels
from sabir.opsets.families.normalization.normalization_graphs import by_root_mean_square
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.numbers.scalars import element_of
from sabir.opsets.families.shapes.ranks import check_broadcast
from sabir.opsets.families.shapes.shapes import axis_in
from sabir.opsets.typing import Array
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

simplified_layer_normalization = Operator(
    "SimplifiedLayerNormalization",
    summary="`X / sqrt(mean(X ** 2) + epsilon) * scale`, over the dimensions from `axis` on.",
    body_opset=18,
)

T = Constraint("T", FLOATS, BFLOAT16)
U = Constraint("U", tensors("double", "float"))
V = Constraint("V", FLOATS, BFLOAT16)

v1 = simplified_layer_normalization.first(
    1,
    inputs=[
        Input("X", T, "A tensor of rank 1 or more.", differentiable=True),
        Input("scale", V, "The scale, which broadcasts to X.", differentiable=True),
    ],
    outputs=[
        Output("Y", V, "The input's shape, in the type of `scale`.", differentiable=True),
        Output(
            "inv_std_var",
            U,
            "`1 / sqrt(mean(X ** 2) + epsilon)`; the normalised dimensions are 1.",
            optional=True,
            differentiable=True,
        ),
    ],
    attributes=[
        Attribute(
            "stash_type",
            "int",
            "The element type of the computation and of the second output: 1 float, 11 double.",
            default=1,
            values=element_types("U"),
        ),
        Attribute("epsilon", "float", "Added to the mean square, so that it is not 0.", default=1e-5),
        Attribute("axis", "int", "The first dimension to normalise over.", default=-1),
    ],
    status="experimental",
    unpublished=True,
)


@v1.infer
def infer(
    x: TensorType, scale: TensorType, /, *, axis: int, stash_type: int
) -> tuple[TensorType, TensorType]:
    y, stash = TensorType(scale.element, x.shape), element(stash_type)
    if x.shape is None:
        return y, TensorType(stash)
    check_broadcast("scale", scale, x.shape)
    kept = axis_in(axis, len(x.shape))
    return y, TensorType(stash, (*x.shape[:kept], *(1,) * (len(x.shape) - kept)))


@v1.evaluate
def evaluate(x: Array, scale: Array, /, *, axis: int, epsilon: float, stash_type: int) -> tuple[Array, Array]:
    check_broadcast("scale", scale, x.shape)
    kept, stash = axis_in(axis, x.ndim), element(stash_type).dtype
    rows = x.astype(stash, copy=False).reshape(math.prod(x.shape[:kept]), math.prod(x.shape[kept:]))
    y, _, inverse = normalization.normalized_by_squares(rows, epsilon)
    wide = normalization.common_type(element(x.dtype), element(scale.dtype)).dtype
    normal = widened(y.astype(wide, copy=False)).reshape(x.shape)
    scaled = (normal * widened(scale.astype(wide, copy=False))).astype(scale.dtype, copy=False)
    return scaled, inverse.reshape(*x.shape[:kept], *(1,) * (x.ndim - kept))


@v1.lower
def lower(
    x: Expression, scale: Expression, /, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Expression, Expression]:
    stashed = loops.cast(x, element(stash_type).name)
    axes = range(axis_in(axis, x.rank), x.rank)
    inverse = normalization_kernels.inverse_mean_square(stashed, axes, epsilon)
    wide = normalization.common_type(element(x.element), element(scale.element)).name
    normal = loops.cast(loops.apply("mul", stashed, inverse), wide)
    return loops.cast(loops.apply("mul", normal, loops.cast(scale, wide)), scale.element), inverse


@v1.body
def body(
    b: Builder, x: Value, scale: Value, /, *, axis: int, epsilon: float, stash_type: int, call: Call
) -> tuple[Value, ...]:
    rank = x.type.rank if isinstance(x.type, TensorType) else None
    if axis >= 0 and rank is None:
        raise Unconvertible("the rank is unknown, and so the number of dimensions to normalise over")
    axes = range(axis, 0 if axis < 0 else rank or 0)
    normal = by_root_mean_square(b, typed(b, x, element(stash_type)), axes, epsilon)
    kind = element_of(scale)
    wide = normalization.common_type(element_of(x), kind)
    y = typed(b, b.Mul(typed(b, normal.y, wide), typed(b, scale, wide)), kind)
    return (y, normal.inverse)[: len(call.outputs)]


@simplified_layer_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 7], [3, -4]], [[0, 0], [6, 8]]], f)  # by hand: mean squares 25, 12.5, 0, 50
    scale = np.array([1, 10], f)
    inverse = 1 / np.sqrt(np.array([[[25], [12.5]], [[1e-6], [50]]], f))
    y = x * inverse * scale
    options: dict[str, Any] = {"epsilon": 1e-6, "outputs": 2}
    for opset in (1, 9, 13, 17, 21):
        yield Example(opset, x, scale, **options, expect=[y, inverse])
    both = 1 / np.sqrt(np.array([[[18.75]], [[25]]], f))
    for axis in (1, -2):
        yield Example(13, x, np.ones((1, 2), f), axis=axis, epsilon=0.0, outputs=2, expect=[x * both, both])
    yield Example(13, x, f(2), axis=0, epsilon=3.125, expect=[x * 2 / 5])  # the mean of all squares is 21.875
    for kind, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 0.02), (np.float64, 1e-5)):
        call, result, options["tolerance"] = (x.astype(kind), scale.astype(kind)), y.astype(kind), rough
        yield Example(13, *call, **options, expect=[result, inverse])
        yield Example(13, *call, stash_type=11, **options, expect=[result, inverse.astype(float)])
        yield Example(13, call[0], scale, **options, expect=[y, inverse])
        yield Example(13, x, call[1], **options, expect=[result, inverse])
    yield Example(13, np.zeros((0, 3), f), np.ones(3, f), expect=[np.zeros((0, 3), f)])
    yield Example(13, np.array([3, 4], f), np.ones(2, f), expect=[np.array([3, 4], f) / np.sqrt(f(12.5))])
