"""Normalizer: rows scaled to a norm of 1."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import TensorType
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES, FLOAT, batch, rows
from sabir.opsets.families.numbers.sums import summed, sums_of_squares
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, one_of

normalizer = Operator(
    "Normalizer",
    domain="ai.onnx.ml",
    summary="Each row divided by its greatest element, by the sum of its magnitudes, or by its length.",
)

T = Constraint("T", FEATURE_TYPES)

v1 = normalizer.first(
    1,
    inputs=[Input("X", T, "Rows [N, C], or one row [C].")],
    outputs=[Output("Y", "tensor(float)", "The input's shape; a row whose divisor is 0 is unchanged.")],
    attributes=[
        Attribute(
            "norm", "string", "The divisor: MAX, L1 or L2.", default="MAX", values=one_of("MAX", "L1", "L2")
        )
    ],
)


@v1.infer
def infer(x: TensorType, /) -> TensorType:
    batch(x)
    return TensorType(FLOAT, x.shape)


@v1.evaluate
def evaluate(x: Array, /, *, norm: str) -> Array:
    wide = rows(x).astype(np.float64)
    divisor = _divisor(wide, norm)
    scaled = wide / np.where(divisor == 0, 1, divisor)
    return scaled.reshape(x.shape).astype(np.float32)


def _divisor(x: Array, norm: str) -> Array:
    if norm == "MAX":  # the greatest element itself, not its magnitude: the standard's formula
        return np.maximum.reduce(x, axis=1, keepdims=True, initial=-np.inf)
    if norm == "L1":
        return summed(np.abs(x), 1, keepdims=True)
    return np.sqrt(sums_of_squares(x))


@v1.lower
def lower(x: Expression, /, *, norm: str) -> Expression:
    wide = loops.cast(classifier_kernels.rows(x), "double")
    if wide.shape[1] == 0:
        raise NotLowered("rows without features are evaluated")
    divisor = _lowered_divisor(wide, norm)
    divisor = loops.where(loops.apply("eq", divisor, 0), 1, divisor)
    return loops.reshape(loops.cast(loops.apply("div", wide, divisor), "float"), x.shape)


def _lowered_divisor(x: Expression, norm: str) -> Expression:
    if norm == "MAX":
        return loops.reduce("max", x, [1])
    if norm == "L1":
        return loops.reduce("sum", loops.apply("abs", x), [1])
    return loops.apply("sqrt", loops.reduce("sum", loops.apply("mul", x, x), [1]))


@normalizer.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[-3, 4], [0, 0], [-2, -1]], f)
    yield Example(1, x, expect=[[[-0.75, 1], [0, 0], [2, 1]]])
    yield Example(1, x, norm="L1", expect=[[[-3 / 7, 4 / 7], [0, 0], [-2 / 3, -1 / 3]]])
    five = np.sqrt(5)
    yield Example(1, x, norm="L2", expect=[np.array([[-0.6, 0.8], [0, 0], [-2 / five, -1 / five]], f)])
    yield Example(1, [3, 0, -4], norm="L2", expect=[[0.6, 0, -0.8]])
    yield Example(1, np.array([1e200, 1e200]), norm="L1", expect=[[0.5, 0.5]])
    yield Example(1, np.zeros((2, 0), np.int32), expect=[np.zeros((2, 0), f)])
