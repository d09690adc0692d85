"""Binarizer: above a threshold or not."""

from collections.abc import Iterator

import numpy as np

from sabir import loops
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES
from sabir.opsets.families.shapes.rules import same_as_first
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output

binarizer = Operator(
    "Binarizer", domain="ai.onnx.ml", summary="1 where an element is greater than `threshold`, else 0."
)

T = Constraint("T", FEATURE_TYPES)

v1 = binarizer.first(
    1,
    inputs=[Input("X", T, "A tensor of any shape.")],
    outputs=[Output("Y", T, "The input's shape, of 0 and 1.")],
    attributes=[Attribute("threshold", "float", "The bound that an element must exceed.", default=0.0)],
)

v1.infer(same_as_first)


@v1.evaluate
def evaluate(x: Array, /, *, threshold: float) -> Array:
    return np.asarray(x > x.dtype.type(threshold) if x.dtype.kind == "f" else x > threshold).astype(x.dtype)


@v1.lower
def lower(x: Expression, /, *, threshold: float) -> Expression:
    return loops.cast(loops.apply("gt", classifier_kernels.numbers(x), threshold), x.element)


@binarizer.examples
def examples() -> Iterator[Example]:
    x = [[-1.5, 0.0], [1.0, 2.5]]
    yield Example(1, x, expect=[[[0, 0], [1, 1]]])
    yield Example(1, x, threshold=1.0, expect=[[[0, 0], [0, 1]]])
    yield Example(1, np.array([0, 1, 2], np.int32), threshold=0.5, expect=[[0, 1, 1]])
    yield Example(1, np.array([np.nan, np.inf, -np.inf]), expect=[[0.0, 1, 0]])
    yield Example(1, 3, threshold=3.0, expect=[0])
    yield Example(1, np.zeros((0, 2), np.float64), expect=[np.zeros((0, 2))])
