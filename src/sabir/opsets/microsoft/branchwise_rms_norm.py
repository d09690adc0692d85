"""BranchwiseRMSNorm: each branch divided by its root mean square, and scaled."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from sabir.base import InferenceError
from sabir.ir import Builder, TensorType, Value, may_be_equal, mul
from sabir.opsets.families.normalization.normalization import normalized_by_squares
from sabir.opsets.families.normalization.normalization_graphs import by_root_mean_square
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes import branches
from sabir.opsets.families.shapes.ranks import check_rank, check_shape, hold
from sabir.opsets.typing import Array
from sabir.schema import (
    BFLOAT16,
    Attribute,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

branchwise_rms_norm = Operator(
    "BranchwiseRMSNorm",
    domain="com.microsoft",
    summary="`X / sqrt(mean(X ** 2) + epsilon) * scale`, over each branch.",
    body_opset=18,
)

T = Constraint("T", BFLOAT16, tensors("float", "float16"))
M = Constraint("M", BFLOAT16, tensors("float", "float16"))

v1 = branchwise_rms_norm.first(
    1,
    inputs=[
        Input("X", T, "(..., C, H), or (..., C * H) with `num_branches`.", differentiable=True),
        Input("scale", M, "(C * H), (C, H) or (H).", optional=True, differentiable=True),
    ],
    outputs=[Output("Y", T, "The shape of X.", differentiable=True)],
    attributes=[
        branches.NUM_BRANCHES,
        Attribute("epsilon", "float", "Added to the mean square, so that it is not 0.", default=1e-5),
    ],
)


@v1.infer
def infer(x: TensorType, scale: TensorType | None = None, /, *, num_branches: int) -> TensorType:
    shape = branches.grouped_shape("X", x, num_branches)
    check_rank("scale", scale, 1, 2)
    if shape is not None and scale is not None and scale.shape is not None:
        count, size = shape[-2:]
        if len(scale.shape) == branches.GROUPED:
            check_shape("scale", scale, count, size)
        elif not any(may_be_equal(scale.shape[0], n) for n in (size, mul(count, size))):
            raise InferenceError(
                f"`scale` must have the {size} elements of a branch, or those of all branches"
            )
    return TensorType(x.element, x.shape)


@v1.evaluate
def evaluate(x: Array, scale: Array | None = None, /, *, num_branches: int, epsilon: float) -> Array:
    hold(infer, x, scale, num_branches=num_branches)
    groups = branches.grouped(x, num_branches)
    size = groups.shape[-1]
    y = normalized_by_squares(widened(groups).reshape(groups.size // size, size), epsilon).rows
    y = y.reshape(groups.shape)
    if scale is not None:
        y *= widened(scale).reshape(*(() if scale.size == size else (-1,)), size)
    return y.astype(x.dtype, copy=False).reshape(x.shape)


@v1.body
def body(b: Builder, x: Value, scale: Value | None = None, /, *, num_branches: int, epsilon: float) -> Value:
    groups = branches.emit_grouped(b, halves.widened(b, x), num_branches)
    y = by_root_mean_square(b, groups, [-1], epsilon).y
    if scale is not None:
        y = b.Mul(y, _spread(b, halves.widened(b, scale), groups))
    y = b.Reshape(y, b.Shape(x), allowzero=1) if num_branches else y
    return halves.rounded(b, y, x)


def _spread(b: Builder, scale: Value, groups: Value) -> Value:
    """Return the scale as (C, H), or (H) where it is one for all branches."""
    shapes = [v.type.shape if isinstance(v.type, TensorType) else None for v in (scale, groups)]
    if not shapes[0] or not shapes[1]:
        raise Unconvertible("the shapes of X and of the scale are unknown")
    count, size = shapes[1][-2:]
    if len(shapes[0]) == branches.GROUPED or shapes[0][0] == size:
        return scale
    if may_be_equal(shapes[0][0], size) and count != 1:
        raise Unconvertible("the size of a branch is unknown: whether all have one scale")
    return b.Reshape(scale, b.Shape(groups, start=-2))


@branchwise_rms_norm.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 7], [3, -4]], [[0, 0], [6, 8]]], f)  # by hand: mean squares 25, 12.5, 0, 50
    normal = x / np.sqrt(np.array([[[25], [12.5]], [[1], [50]]], f))
    flat = x.reshape(2, 4)
    scale = np.array([[1, 10], [2, 4]], f)
    for kind, rough in ((f, 1e-5), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)):
        for kind_of_scale in (f, np.float16, ml_dtypes.bfloat16):
            factor, y = scale.astype(kind_of_scale), (normal * scale).astype(kind)
            options: dict[str, Any] = {"epsilon": 1e-6, "tolerance": rough}
            yield Example(1, x.astype(kind), factor, **options, expect=[y])
            options["num_branches"] = 2
            yield Example(1, flat.astype(kind), factor, **options, expect=[y.reshape(2, 4)])
    yield Example(1, x, scale.reshape(4), epsilon=1e-6, expect=[normal * scale])
    yield Example(1, flat, scale.reshape(4), num_branches=2)
    yield Example(1, x, scale[0], num_branches=0, epsilon=1e-6, expect=[normal * scale[0]])
    yield Example(1, flat, scale[0], num_branches=2)
    yield Example(1, flat, num_branches=2, epsilon=1e-6, expect=[normal.reshape(2, 4)])
    yield Example(1, flat[0], num_branches=1)
    yield Example(1, x[:, :1], scale[0])
    yield Example(1, np.array([[3, 4]], f), epsilon=12.5, expect=[[[0.6, 0.8]]])
    yield Example(1, x[:0], scale, expect=[x[:0]])
    yield Example(1, flat[:0], scale, num_branches=2, expect=[flat[:0]])
