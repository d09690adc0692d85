"""SkipSimplifiedLayerNormalization: the sum of a tensor and a residual, divided by its root mean square."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from sabir.ir import Builder, TensorType, Value
from sabir.opsets.families.normalization import normalization, skipped
from sabir.opsets.families.normalization.normalization_graphs import by_root_mean_square
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.scalars import Numbers
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Call, Example, Operator

skip_simplified_layer_normalization = Operator(
    "SkipSimplifiedLayerNormalization",
    domain="com.microsoft",
    summary="`s / sqrt(mean(s ** 2) + epsilon) * gamma` of `s = input + skip + bias`,"
    " over the last dimension.",
    body_opset=18,
)

v1 = skip_simplified_layer_normalization.first(
    1,
    inputs=skipped.inputs(beta=False),
    outputs=skipped.outputs("Zeros, (..., 1): no mean is subtracted."),
    attributes=[skipped.EPSILON],
)


@v1.infer
def infer(
    x: TensorType, skip: TensorType, gamma: TensorType, bias: TensorType | None = None, /
) -> tuple[TensorType, ...]:
    return skipped.infer(x, skip, gamma=gamma, bias=bias)


@v1.evaluate
def evaluate(
    x: Array, skip: Array, gamma: Array, bias: Array | None = None, /, *, epsilon: float
) -> tuple[Array, ...]:
    hold(infer, x, skip, gamma, bias)
    return skipped.evaluate(
        x, skip, gamma, None, bias, lambda rows: normalization.normalized_by_squares(rows, epsilon)
    )


@v1.body
def body(
    b: Builder,
    x: Value,
    skip: Value,
    gamma: Value,
    bias: Value | None = None,
    /,
    *,
    epsilon: float,
    call: Call,
) -> tuple[Value, ...]:
    total = skipped.emitted_sum(b, x, skip, bias)
    normal = by_root_mean_square(b, total, [-1], epsilon)
    y = halves.rounded(b, b.Mul(normal.y, halves.widened(b, gamma)), x)
    mean = Numbers.like(b, total).op("Mul", normal.inverse, 0.0) if call.wants(1) else y
    made = (y, mean, normal.inverse, halves.rounded(b, total, x))
    return made[: len(call.outputs)]


@skip_simplified_layer_normalization.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[[1, 3], [5, 7]], [[2, 2], [-2, 6]]], f)
    skip = np.array([[[-1, 3], [1, -1]], [[0, -2], [0, 0]]], f)
    gamma, bias = np.array([2, 10], f), np.array([1, 1], f)
    total = np.array([[[1, 7], [7, 7]], [[3, 1], [-1, 7]]], f)
    inverse = 1 / np.sqrt(np.array([[[25], [49]], [[5], [25]]], f))  # by hand: mean squares
    y, mean = total * inverse * gamma, np.zeros((2, 2, 1), f)
    yield Example(1, x, skip, gamma, bias, outputs=4, expect=[y, mean, inverse, total])
    yield Example(1, x, skip, gamma, bias, outputs=3, epsilon=0.0, expect=[y, mean, inverse])
    yield Example(1, x, skip, gamma, bias, outputs=2, expect=[y, mean])
    yield Example(1, x, skip + bias, gamma, expect=[y])
    for residual in (skip[0], skip[:1]):
        yield Example(1, x, residual, gamma, bias, outputs=4, epsilon=1e-3)
    yield Example(1, x[0], skip[0], gamma, bias, outputs=4, expect=[y[0], mean[0], inverse[0], total[0]])
    for kind, rough in ((np.float16, 2e-3), (ml_dtypes.bfloat16, 0.02)):
        inputs = [a.astype(kind) for a in (x, skip, gamma, bias)]
        results = [y.astype(kind), mean, inverse, total.astype(kind)]
        yield Example(1, *inputs, outputs=4, expect=results, tolerance=rough)
    empty = np.zeros((0, 3, 2), f)
    yield Example(1, empty, empty, gamma, expect=[empty])
    ones = np.ones((2, 2, 1), f)
    yield Example(1, ones, ones, np.ones(1, f), epsilon=5.0, expect=[ones * f(2 / 3)])
