"""Imputer: missing values filled in."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import Dim, TensorType
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifiers import FEATURE_TYPES, check_each
from sabir.opsets.typing import Array, Floats, Ints
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output

imputer = Operator(
    "Imputer", domain="ai.onnx.ml", summary="The input with each element that marks a missing value replaced."
)

T = Constraint("T", FEATURE_TYPES)

v1 = imputer.first(
    1,
    inputs=[Input("X", T, "A tensor of rank 1 or more; the features are along the last dimension.")],
    outputs=[Output("Y", T, "The input's shape.")],
    attributes=[
        Attribute("replaced_value_int64", "int", "The mark of a missing integer.", default=0),
        Attribute("imputed_value_int64s", "ints", "The replacement: one value, or one per feature."),
        Attribute("replaced_value_float", "float", "The mark of a missing float; may be NaN.", default=0.0),
        Attribute("imputed_value_floats", "floats", "The replacement: one value, or one per feature."),
    ],
)


@v1.infer
def infer(x: TensorType, /, *, imputed_value_floats: Floats, imputed_value_int64s: Ints) -> TensorType:
    if x.shape is not None and x.element.number:
        values = imputed_value_floats if x.element.is_float else imputed_value_int64s
        _checked(values, x.shape[-1] if x.shape else 1)
    return TensorType(x.element, x.shape)


def _checked(values: Floats, features: Dim) -> Sequence[float]:
    """Return the replacements; raises InferenceError unless there is one, or one per feature."""
    if not values:
        raise InferenceError("there are no imputed values of the input's type")
    check_each(len(values), features, "imputed values")
    return values


@v1.evaluate
def evaluate(x: Array, /, **attributes: Any) -> Array:
    list_name, scalar_name = ("floats", "float") if x.dtype.kind == "f" else ("int64s", "int64")
    replaced = attributes[f"replaced_value_{scalar_name}"]
    values = _checked(attributes[f"imputed_value_{list_name}"], x.shape[-1] if x.ndim else 1)
    missing = np.isnan(x) if np.isnan(replaced) else x == replaced
    return np.where(missing, np.array(values if x.ndim else values[0], x.dtype), x)


@v1.lower
def lower(x: Expression, /, **attributes: Any) -> Expression:
    list_name, scalar_name = ("floats", "float") if x.is_float else ("int64s", "int64")
    replaced = attributes[f"replaced_value_{scalar_name}"]
    dtype = element(x.element).dtype
    if not x.is_float and not np.iinfo(dtype).min <= replaced <= np.iinfo(dtype).max:
        raise NotLowered(f"{replaced} is no {x.element}")
    values = np.array(attributes[f"imputed_value_{list_name}"] or (), dtype)
    is_missing = loops.apply("isnan", x) if math.isnan(replaced) else loops.apply("eq", x, replaced)
    return loops.where(is_missing, classifier_kernels.each(values, x), x)


@imputer.examples
def examples() -> Iterator[Example]:
    nan = np.nan
    x = [[1, nan], [nan, 0]]
    each = [[1, 6], [5, 0]]
    yield Example(1, x, imputed_value_floats=[5.0, 6.0], replaced_value_float=nan, expect=[each])
    y = [[1, 7], [7, 0]]
    yield Example(1, x, imputed_value_floats=[7.0], replaced_value_float=nan, expect=[y])
    zeros = [[1, nan], [nan, 7]]
    yield Example(1, x, imputed_value_floats=[7.0], expect=[zeros])
    wide = np.array([-1.0, 2, -1])
    yield Example(1, wide, imputed_value_floats=[0.5], replaced_value_float=-1.0, expect=[[0.5, 2, 0.5]])
    ints = [[[3, -9], [-9, 3]]]
    filled = [[[3, 2], [1, 3]]]
    yield Example(1, ints, imputed_value_int64s=[1, 2], replaced_value_int64=-9, expect=[filled])
    yield Example(1, np.int32(0), imputed_value_int64s=[4], expect=[4])
    yield Example(
        1, np.zeros((0, 2), np.int32), imputed_value_int64s=[4], expect=[np.zeros((0, 2), np.int32)]
    )
