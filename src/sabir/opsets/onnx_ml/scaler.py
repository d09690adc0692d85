"""Scaler: features shifted and scaled."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.ir import Dim, TensorType
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES, FLOAT, check_each
from sabir.opsets.typing import Array, Floats
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output

scaler = Operator("Scaler", domain="ai.onnx.ml", summary="`(X - offset) * scale`, feature by feature.")

T = Constraint("T", FEATURE_TYPES)

v1 = scaler.first(
    1,
    inputs=[Input("X", T, "Features along the last dimension.")],
    outputs=[Output("Y", "tensor(float)", "The input's shape.")],
    attributes=[
        Attribute("scale", "floats", "Factors: one, or one per feature; 1 if absent."),
        Attribute("offset", "floats", "Subtracted first: one value, or one per feature; 0 if absent."),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, scale: Floats, offset: Floats) -> TensorType:
    _check(None if x.shape is None else x.shape[-1] if x.shape else 1, scale, offset)
    return TensorType(FLOAT, x.shape)


def _check(features: Dim, scale: Floats, offset: Floats) -> None:
    for name, values in (("scales", scale), ("offsets", offset)):
        if values:
            check_each(len(values), features, name)


@v1.evaluate
def evaluate(x: Array, /, *, scale: Floats, offset: Floats) -> Array:
    features = x.shape[-1] if x.ndim else 1
    _check(features, scale, offset)
    factor, shift = np.array(scale or [1.0], np.float32), np.array(offset or [0.0], np.float32)
    wide = x.reshape(-1, features) if x.size else x
    y = np.multiply(np.subtract(wide, shift), factor)
    return y.reshape(x.shape).astype(np.float32)


@v1.lower
def lower(x: Expression, /, *, scale: Floats, offset: Floats) -> Expression:
    x = classifier_kernels.numbers(x)
    shift, factor = (classifier_kernels.each(v or (), x) for v in (offset or [0.0], scale or [1.0]))
    return loops.cast(loops.apply("mul", loops.apply("sub", x, shift), factor), "float")


@scaler.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2], [3, -4]], f)
    y = [[0, 10], [1, -20]]
    yield Example(1, x, offset=[1.0, 0.0], scale=[0.5, 5.0], expect=[y])
    yield Example(1, x, offset=[1.0], scale=[2.0], expect=[[[0, 2], [4, -10]]])
    yield Example(1, x, scale=[2.0], expect=[2 * x])
    yield Example(1, x.astype(np.int64), expect=[x])
    yield Example(
        1, np.array([1e-3, np.nan]), offset=[1e-3], scale=[1.0, 2.0], tolerance=1e-9, expect=[[0, np.nan]]
    )
    yield Example(1, np.zeros((0, 3), np.int32), offset=[1.0], scale=[2.0], expect=[np.zeros((0, 3), f)])
    yield Example(1, np.float64(3), offset=[1.0], scale=[2.0], expect=[f(4)])
