"""InstanceNormalization: each channel of each item normalised, then scaled and shifted."""

import math
from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import normalization_gradients, normalization_kernels
from sabir.opsets.families.normalization.normalization import EPSILON, channels, normalized_type, standardized
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import check_least_rank
from sabir.opsets.typing import Array, Gradient
from sabir.schema import BFLOAT16, FLOATS, Attribute, Constraint, Example, Input, Operator, Output

instance_normalization = Operator(
    "InstanceNormalization",
    summary="`scale * (input - mean) / sqrt(var + epsilon) + B`, over the spatial axes of each channel.",
)

T = Constraint("T", FLOATS)

v1 = instance_normalization.first(
    1,
    inputs=[
        Input("input", T, "The input, (N, C, D1, ..., Dn).", differentiable=True),
        Input("scale", T, "The factor of each channel, (C).", differentiable=True),
        Input("B", T, "The bias of each channel, (C).", differentiable=True),
    ],
    outputs=[Output("output", T, "The input's shape.", differentiable=True)],
    attributes=[EPSILON, Attribute("consumed_inputs", "ints", legacy=True)],
)
v6 = v1.evolve(
    6,
    "Drops the legacy attribute `consumed_inputs`; admits any number of spatial axes.",
    drop=["consumed_inputs"],
)
v22 = v6.widen(22, T=BFLOAT16)


@v1.infer
def infer(x: TensorType, scale: TensorType, bias: TensorType, /) -> TensorType:
    check_least_rank("input", x, 2)
    return normalized_type(x, scale, bias)


@v1.evaluate
def evaluate(x: Array, scale: Array, bias: Array, /, *, epsilon: float) -> Array:
    check_least_rank("input", x, 2)
    channels(x, scale, bias)
    items, count = x.shape[:2]
    rows = widened(x).reshape(items * count, math.prod(x.shape[2:]))
    y: Array = standardized(rows, epsilon).reshape(items, count, rows.shape[1])
    y *= widened(scale).reshape(count, 1)
    y += widened(bias).reshape(count, 1)
    return y.reshape(x.shape).astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, scale: Expression, bias: Expression, /, *, epsilon: float) -> Expression:
    normal = normalization_kernels.standardized(x, range(2, x.rank), epsilon)
    return normalization_kernels.shifted(normal.y, scale, bias)


@v6.gradient
def gradient(
    g: Gradient, x: Value, scale: Value, bias: Value, /, *, epsilon: float
) -> tuple[Value, Value, Value]:
    return normalization_gradients.scaled(g, x, scale, bias, range(2, g.rank(x)), epsilon)


@instance_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[[1, 3], [1, 3]], [[5, 5], [9, 1]]]], f)  # means 2 and 5, variances 1 and 8
    scale, bias = np.array([2, -1], f), np.array([0, 1], f)
    r = np.sqrt(f(2))
    y = np.array([[[[-2, 2], [-2, 2]], [[1, 1], [1 - r, 1 + r]]]], f)
    for opset in (1, 6, 22):
        yield Example(opset, x, scale, bias, epsilon=0.0, expect=[y])
    rows = [[[1, 3, 5]], [[7, 7, 7]]]  # variances 8/3 and 0
    flat = [[[-2 / 3, 0, 2 / 3]], [[0, 0, 0]]]
    yield Example(6, rows, np.ones(1, f), np.zeros(1, f), epsilon=19 / 3, expect=[flat])
    # a large mean: `mean(x ** 2) - mean(x) ** 2` would lose the variance
    far = [[[10001, 10003]]]
    yield Example(6, far, np.ones(1, f), np.zeros(1, f), expect=[[[[-1, 1]]]])
    cube = np.array([1.0, 3] * 4).reshape(1, 1, 2, 2, 2)
    yield Example(6, cube, [3.0], [1.0], epsilon=0.0, expect=[np.array([-2.0, 4] * 4).reshape(cube.shape)])
    for kind, opset in ((np.float16, 6), (ml_dtypes.bfloat16, 22)):
        typed = [a.astype(kind) for a in (x, scale, bias, y)]
        yield Example(opset, *typed[:3], epsilon=0.0, expect=typed[3:])
    yield Example(6, np.zeros((0, 2, 3), f), scale, bias, expect=[np.zeros((0, 2, 3), f)])
