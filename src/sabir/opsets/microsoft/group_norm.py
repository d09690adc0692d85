"""GroupNorm: each group of channels of images normalised to zero mean and unit variance, then scaled."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir import loops
from sabir.ir import Builder, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.normalization import grouped
from sabir.opsets.families.numbers import halves
from sabir.opsets.families.numbers.arithmetic import widened
from sabir.opsets.families.shapes.ranks import hold
from sabir.opsets.typing import Array
from sabir.schema import Example, Operator

group_norm = Operator(
    "GroupNorm",
    domain="com.microsoft",
    summary="`gamma * (X - mean) / sqrt(var + epsilon) + beta` over each group of channels,"
    " with an optional activation.",
    body_opset=18,
)

v1 = group_norm.first(1, inputs=grouped.INPUTS, outputs=[grouped.OUTPUT], attributes=grouped.ATTRIBUTES)


@v1.infer
def infer(
    x: TensorType, gamma: TensorType, beta: TensorType, /, *, channels_last: int, groups: int
) -> TensorType:
    return grouped.infer(x, gamma, beta, channels_last, groups)


@v1.evaluate
def evaluate(
    x: Array,
    gamma: Array,
    beta: Array,
    /,
    *,
    activation: int,
    channels_last: int,
    epsilon: float,
    groups: int,
) -> Array:
    hold(infer, x, gamma, beta, channels_last=channels_last, groups=groups)
    y = grouped.evaluate(
        widened(x), gamma, beta, activation=activation, channels_last=channels_last, epsilon=epsilon,
        groups=groups,
    )  # fmt: skip
    return y.astype(x.dtype, copy=False)


@v1.lower
def lower(x: Expression, gamma: Expression, beta: Expression, /, **attributes: Any) -> Expression:
    return loops.cast(grouped.lowered(loops.cast(x, "float"), gamma, beta, **attributes), x.element)


@v1.body
def body(b: Builder, x: Value, gamma: Value, beta: Value, /, **attributes: Any) -> Value:
    return halves.rounded(b, grouped.emitted(b, halves.widened(b, x), gamma, beta, **attributes), x)


@group_norm.examples
def examples() -> Iterator[Example]:
    f = np.float32
    # by hand: two groups of two channels with means 4 and 3, variances 5 and 1
    x = np.array([[[[1, 3]], [[5, 7]], [[2, 4]], [[4, 2]]]], f)
    unit = np.array([[[[-3, -1]], [[1, 3]], [[-1, 1]], [[1, -1]]]], f)
    unit /= np.sqrt(np.array([6, 6, 2, 2], f)).reshape(1, 4, 1, 1)  # with an epsilon of 1
    gamma, beta = np.array([2, 3, -1, 5], f), np.array([0, 1, 10, 20], f)
    y = unit * gamma[:, None, None] + beta[:, None, None]
    silu = y / (1 + np.exp(-y))
    for kind, rough in ((f, 1e-5), (np.float16, 1e-2)):
        for activation, result in ((0, y), (1, silu)):
            for last in (0, 1):
                images, expected = (np.moveaxis(a, 1, -1) if last else a for a in (x, result))
                vectors = (gamma, beta) if activation else (gamma.astype(kind), beta.astype(kind))
                attributes: dict[str, Any] = {
                    "groups": 2,
                    "activation": activation,
                    "channels_last": last,
                    "epsilon": 1.0,
                }
                results: dict[str, Any] = {"expect": [expected.astype(kind)], "tolerance": rough}
                yield Example(1, images.astype(kind), *vectors, **attributes, **results)
    halves = [a.astype(np.float16) for a in (gamma, beta)]
    yield Example(1, x, *halves, groups=2, activation=0, channels_last=0, epsilon=1.0, expect=[y])
    empty = np.zeros((0, 2, 2, 4), f)
    yield Example(1, empty, gamma, beta, groups=2, activation=1, expect=[empty])
    yield Example(
        1, np.ones((1, 1, 1, 4), f), gamma, beta, groups=4, activation=0, expect=[beta.reshape(1, 1, 1, 4)]
    )
