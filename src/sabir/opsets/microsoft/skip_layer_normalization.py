"""SkipLayerNormalization: the sum of a tensor and a residual, normalised over its last axis."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.normalization import normalization, skipped
from sabir.opsets.families.normalization.normalization_graphs import layer_normalized
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Operator

skip_layer_normalization = Operator(
    "SkipLayerNormalization",
    domain="com.microsoft",
    summary="`(s - mean) / sqrt(var + epsilon) * gamma + beta` of `s = input + skip + bias`,"
    " over the last dimension.",
    body_opset=18,
)

v1 = skip_layer_normalization.first(
    1,
    inputs=skipped.inputs(beta=True),
    outputs=skipped.outputs("The mean of each row, (..., 1)."),
    attributes=[skipped.EPSILON],
)


@v1.infer
def infer(
    x: TensorType, skip: TensorType, gamma: TensorType, beta: TensorType | None = None,
    bias: TensorType | None = None, /,
) -> tuple[TensorType, ...]:  # fmt: skip
    return skipped.infer(x, skip, gamma=gamma, beta=beta, bias=bias)


@v1.evaluate
def evaluate(
    x: Array, skip: Array, gamma: Array, beta: Array | None = None, bias: Array | None = None, /,
    *, epsilon: float,
) -> tuple[Array, ...]:  # fmt: skip
    hold(infer, x, skip, gamma, beta, bias)
    return skipped.evaluate(x, skip, gamma, beta, bias, lambda rows: normalization.normalized(rows, epsilon))


@v1.body
def body(
    b: Builder, x: Value, skip: Value, gamma: Value, beta: Value | None = None, bias: Value | None = None, /,
    *, epsilon: float, call: Call,
) -> tuple[Value, ...]:  # fmt: skip
    total = skipped.emitted_sum(b, x, skip, bias)
    count = 3 if call.wants(2) else 2 if call.wants(1) else 1
    y, *statistics = layer_normalized(b, total, gamma, beta, epsilon, count)
    left_out = [y] * (3 - count)  # the call does not name them, and nothing reads what stands for them
    made = [halves.rounded(b, y, x), *statistics, *left_out]
    if call.wants(skipped.SUM):
        made.append(halves.rounded(b, total, x))
    return tuple(made[: len(call.outputs)])


@skip_layer_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 3], [5, 7]], [[2, 2], [-2, 6]]], f)
    skip = np.array([[[0, 2], [1, -1]], [[-1, 3], [1, 1]]], f)
    gamma, beta, bias = np.array([2, 1], f), np.array([0, 1], f), np.array([1, -1], f)
    total = np.array([[[2, 4], [7, 5]], [[2, 4], [0, 6]]], f)  # by hand, as all that follows
    mean, inverse = np.array([[[3], [6]], [[3], [3]]], f), np.array([[[1], [1]], [[1], [1 / 3]]], f)
    y = np.array([[[-2, 2], [2, 0]], [[-2, 2], [-2, 2]]], f)
    yield Example(1, x, skip, gamma, beta, bias, outputs=4, expect=[y, mean, inverse, total])
    yield Example(1, x, skip, gamma, beta, bias, outputs=3, epsilon=0.0, expect=[y, mean, inverse])
    yield Example(1, x, skip, gamma, None, bias, outputs=2, expect=[y - beta, mean])
    yield Example(1, x, skip + bias, gamma, beta, expect=[y])
    yield Example(1, x, skip, gamma, expect=[[[[-2, 1], [0, 0]], [[-2, 1], [-2, 1]]]], epsilon=1e-12)
    for residual in (skip[0], skip[:1]):
        yield Example(1, x, residual, gamma, beta, bias, outputs=4, epsilon=1e-3)
    yield Example(
        1, x[0], skip[0], gamma, beta, bias, outputs=4, expect=[y[0], mean[0], inverse[0], total[0]]
    )
    for kind, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 0.02)):
        inputs = [a.astype(kind) for a in (x, skip, gamma, beta, bias)]
        results = [y.astype(kind), mean, inverse, total.astype(kind)]
        yield Example(1, *inputs, outputs=4, expect=results, tolerance=rough)
    empty = np.zeros((0, 3, 2), f)
    yield Example(1, empty, empty, gamma, expect=[empty])
    yield Example(
        1, x[:, :, :1], skip[:, :, :1], gamma[:1], beta[:1], epsilon=1.0, expect=[np.zeros((2, 2, 1), f)]
    )
