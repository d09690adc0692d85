"""Shared code of the models of ai.onnx.ml: rows of features, transforms of scores, and labels of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.numbers.normal_quantile import normal_quantile
from sabir.opsets.families.numbers.sums import summed
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import STRING as STRINGS
from sabir.schema import Attribute, Constraint, Input, Output, Unconvertible, one_of, tensors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Builder, Dim, Value
    from sabir.opsets.typing import Array

FLOAT, INT64, STRING = element("float"), element("int64"), element("string")
POST_TRANSFORM = Attribute(
    "post_transform",
    "string",
    "How scores are transformed: NONE, SOFTMAX, SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT.",
    default="NONE",
    values=one_of("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
)
FEATURE_TYPES = tensors("double", "float", "int32", "int64")
LABELS = Constraint("T2", STRINGS, tensors("int64"))
LABELS_AND_SCORES = (
    Output("Y", LABELS, "Shape [N]: the labels."),
    Output("Z", "tensor(float)", "Shape [N, E]: the transformed scores; one score serves two classes."),
)
TWO = 2  # classes, one of which is the other's complement
_MATRIX = 2
ZERO = 1e-7  # SOFTMAX_ZERO treats scores up to this magnitude as 0


def features_port(types: Constraint) -> Input:
    """Return the input of the models that take one row of features per item."""
    return Input("X", types, "Features [N, C], or one row [C].")


# ---------------------------------------------------------------- rows of features


def rows(x: Array) -> Array:
    """Return features as a matrix of one row per item: float32 unchanged, any other type as float64."""
    if x.ndim not in {1, _MATRIX}:
        raise ValueError(f"features must have shape [N, C] or [C], not {list(x.shape)}")
    x = x.reshape(1, -1) if x.ndim == 1 else x
    return x if x.dtype == np.float32 else x.astype(np.float64)


def batch(x: TensorType) -> Dim:
    """Return the number of rows that `rows` returns; raises InferenceError for another rank than 1 or 2."""
    if x.shape is None:
        return None
    if len(x.shape) not in {1, _MATRIX}:
        raise InferenceError(f"features must have shape [N, C] or [C], not {x}")
    return 1 if len(x.shape) == 1 else x.shape[0]


def products(x: Array, weights: Array) -> Array:
    """Return the product of each row of features with each row of weights."""
    allotted((len(x), len(weights)), np.dtype(np.float64), x.size)  # the type in which the transforms compute
    return x @ weights.T


def matrix(values: Sequence[float], width: int, what: str) -> Array:
    """Return a flat attribute as float32 rows of `width`."""
    flat = np.array(values, np.float32)
    check_rows(flat.size, width, what)
    return flat.reshape(-1, width)


def feature_count(x: TensorType) -> Dim:
    """Return the number of features in a row; None where it is unknown."""
    return x.shape[-1] if x.shape else None


def row_count(size: int, width: Dim, what: str) -> int | None:
    """Return the number of rows of `width` in a flat attribute; None where the width is unknown."""
    check_rows(size, width, what)
    return size // width if isinstance(width, int) else None


def check_rows(size: int, width: Dim, what: str) -> None:
    """Raise InferenceError where `size` is not a multiple of `width`."""
    if isinstance(width, int) and (width == 0 or size % width):
        raise InferenceError(f"{size} {what} cannot be divided into rows of {width} features")


def check_each(size: int, width: Dim, what: str) -> None:
    """Raise InferenceError unless an attribute has one number, or one for each feature."""
    if isinstance(width, int) and size not in {1, width}:
        raise InferenceError(f"there are {size} {what} for {width} features")


# ---------------------------------------------------------------- scores


def transformed(scores: Array, how: str) -> Array:
    """Return scores (N, classes) after the transform `how`, in float64."""
    return TRANSFORMS[how](scores.astype(np.float64))


def scores_of_two(score: Array, how: str, *, complement: bool) -> Array:
    """Return the scores (N, 2) of two classes, before the transform `how`, from the score of the second.

    With `complement` and the transforms NONE and PROBIT the score is a probability, and the first class
    has 1 minus it; otherwise the first class has the negated score.
    """
    first = 1 - score if complement and how in {"NONE", "PROBIT"} else -score
    return np.stack([first, score], axis=-1)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True, initial=-np.inf))
    return powers / summed(powers, -1, keepdims=True)


def _softmax_zero(scores: Array) -> Array:
    """Return the softmax over the scores that are not 0; the others stay 0."""
    absent = np.abs(scores) <= ZERO
    all_absent = np.logical_and.reduce(absent, axis=-1, keepdims=True)
    return np.where(all_absent, 0.0, _softmax(np.where(absent, -np.inf, scores)))


def _logistic(scores: Array) -> Array:
    return 1 / (1 + np.exp(-scores))


def _unchanged(scores: Array) -> Array:
    return scores


TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": _unchanged,
    "SOFTMAX": _softmax,
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": normal_quantile,
}

# ---------------------------------------------------------------- labels


def label_list(attributes: Mapping[str, Any]) -> Sequence[str] | Sequence[int]:
    """Return the class labels of a call: `classlabels_strings`, or else its integers."""
    integers = attributes.get("classlabels_ints") or attributes.get("classlabels_int64s")
    return attributes["classlabels_strings"] or integers or ()


def label_array(attributes: Mapping[str, Any]) -> Array:
    """Return the class labels of a call as an array; raises ValueError where there are none."""
    labels = label_list(attributes)
    if not labels:
        raise ValueError("the class labels are missing: set them as strings or as integers")
    return np.array(labels, object if attributes["classlabels_strings"] else np.int64)


def labelled(
    b: Builder, op: str, x: Value, attributes: Mapping[str, Any], integers: str
) -> tuple[Value, Value]:
    """Return the outputs of a classifier with texts as labels: of one that numbers them, and a table.

    `integers` is the name of its attribute for labels that are integers. Raises Unconvertible where the
    labels are no texts.
    """
    texts = attributes["classlabels_strings"]
    if not texts:
        raise Unconvertible("the labels are no texts")
    is_single = len(texts) == 1  # where no class is chosen, the label is 0 or ""
    given = {name: value for name, value in attributes.items() if value is not None}
    given |= {"classlabels_strings": None, integers: [1] if is_single else [*range(len(texts))]}
    places, scores = b.op(op, x, outputs=2, domain="ai.onnx.ml", **given)
    table = b.initializer("labels", np.array(["", *texts] if is_single else texts, object))
    return b.Gather(table, places), scores


def best(labels: Array, scores: Array) -> Array:
    """Return the label of the highest score in each row, the first of equal ones.

    With a single class the label is chosen where the score is positive; elsewhere it is 0 or "".
    """
    if scores.shape[1] == 1:
        missing = "" if labels.dtype.kind == "O" else 0
        return np.where(scores[:, 0] > 0, labels[0], np.array(missing, labels.dtype))
    return labels[np.argmax(scores, axis=1)]


def output_types(x: TensorType, attributes: Mapping[str, Any], columns: Dim) -> tuple[TensorType, TensorType]:
    """Return the types of a classifier's labels and scores."""
    count = batch(x)
    label = STRING if attributes["classlabels_strings"] else INT64
    return TensorType(label, (count,)), TensorType(FLOAT, (count, columns))
