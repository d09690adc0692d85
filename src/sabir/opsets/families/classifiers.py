"""What the models of ai.onnx.ml share around their scores: rows, transforms, and the labels of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir.base import InferenceError
from sabir.elements import element
from sabir.ir import TensorType
from sabir.opsets.families.normal_quantile import normal_quantile
from sabir.opsets.families.sizes import allotted
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sabir.elements import ElementType
    from sabir.ir import Dim
    from sabir.opsets.typing import Array

FLOAT, INT64, STRING = element("float"), element("int64"), element("string")
POST_TRANSFORM = Attribute(
    "post_transform",
    "string",
    "What becomes of the scores: NONE, SOFTMAX, SOFTMAX_ZERO (of those that are not 0), LOGISTIC or PROBIT.",
    default="NONE",
    values=one_of("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"),
)
TWO = 2  # classes, one of which is the other's complement
_MATRIX = 2
_NOTHING = 1e-7  # SOFTMAX_ZERO takes scores up to here for absent

# ---------------------------------------------------------------- rows of features


def rows(x: Array) -> Array:
    """Return features as a matrix of one row per item: float32 as it is, any other type as float64."""
    if x.ndim not in {1, _MATRIX}:
        raise ValueError(f"features must have shape [N, C] or [C], not {list(x.shape)}")
    x = x.reshape(1, -1) if x.ndim == 1 else x
    return x if x.dtype == np.float32 else x.astype(np.float64)


def batch(x: TensorType) -> Dim:
    """Return how many rows `rows` will give."""
    if x.shape is None:
        return None
    if len(x.shape) not in {1, _MATRIX}:
        raise InferenceError(f"features must have shape [N, C] or [C], not {x}")
    return 1 if len(x.shape) == 1 else x.shape[0]


def width(x: TensorType) -> Dim:
    """Return how many features each row has."""
    return x.shape[-1] if x.shape else None


def products(x: Array, weights: Array) -> Array:
    """Return the product of each row of features with each row of weights."""
    allotted((len(x), len(weights)), np.dtype(np.float64), x.size)  # as the transforms compute
    return x @ weights.T


def matrix(values: Sequence[float], width: int, what: str) -> Array:
    """Return a flat attribute as float32 rows of `width`."""
    flat = np.array(values, np.float32)
    check_rows(flat.size, width, what)
    return flat.reshape(-1, width)


def features(x: TensorType) -> Dim:
    """Return how many features a row has, as far as it is known."""
    return x.shape[-1] if x.shape else None


def row_count(size: int, width: Dim, what: str) -> int | None:
    """Return how many rows of `width` a flat attribute makes, None where the width is unknown."""
    check_rows(size, width, what)
    return size // width if isinstance(width, int) else None


def check_rows(size: int, width: Dim, what: str) -> None:
    """Raise InferenceError where so many numbers do not make rows of `width`."""
    if isinstance(width, int) and (width == 0 or size % width):
        raise InferenceError(f"{size} {what} do not make rows of {width} features")


def check_each(size: int, width: Dim, what: str) -> None:
    """Raise InferenceError unless an attribute has one number, or one for each feature."""
    if isinstance(width, int) and size not in {1, width}:
        raise InferenceError(f"there are {size} {what} for {width} features")


# ---------------------------------------------------------------- scores


def transformed(scores: Array, how: str) -> Array:
    """Return scores (N, classes) after `post_transform`, in float64."""
    return TRANSFORMS[how](scores.astype(np.float64))


def of_one_score(score: Array, how: str, *, complement: bool) -> Array:
    """Return the scores of two classes from the one of the second, still to be transformed.

    With `complement` a score that is given out as it is (or whose quantile is) counts as a probability, and
    the first class has the rest; otherwise the two are opposite.
    """
    first = 1 - score if complement and how in {"NONE", "PROBIT"} else -score
    return np.stack([first, score], axis=-1)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - np.maximum.reduce(scores, axis=-1, keepdims=True, initial=-np.inf))
    return powers / np.add.reduce(powers, axis=-1, keepdims=True)


def _softmax_zero(scores: Array) -> Array:
    """Return the softmax over the scores that are there; the others stay 0."""
    absent = np.abs(scores) <= _NOTHING
    nothing = np.logical_and.reduce(absent, axis=-1, keepdims=True)
    return np.where(nothing, 0.0, _softmax(np.where(absent, -np.inf, scores)))


def _logistic(scores: Array) -> Array:
    return 1 / (1 + np.exp(-scores))


def _as_they_are(scores: Array) -> Array:
    return scores


TRANSFORMS: dict[str, Callable[[Array], Array]] = {
    "NONE": _as_they_are,
    "SOFTMAX": _softmax,
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": normal_quantile,
}

# ---------------------------------------------------------------- labels


def label_count(strings: Sequence[str] | None, ints: Sequence[int] | None) -> int:
    """Return the number of class labels, which either attribute gives."""
    return len(strings or ints or ())


def labels_of(strings: Sequence[str] | None, ints: Sequence[int] | None) -> Array:
    """Return the class labels as an array; raises ValueError where there are none."""
    if not strings and not ints:
        raise ValueError("the class labels are given neither as strings nor as integers")
    return np.array(strings, object) if strings else np.array(ints, np.int64)


def top(labels: Array, scores: Array) -> Array:
    """Return the label of the highest score in each row, the first of equals.

    A single class is met where its score is positive; 0 or an empty string says that it is not.
    """
    if scores.shape[1] == 1:
        neither = "" if labels.dtype.kind == "O" else 0
        return np.where(scores[:, 0] > 0, labels[0], np.array(neither, labels.dtype))
    return labels[np.argmax(scores, axis=1)]


def types(x: TensorType, strings: Sequence[str] | None, columns: Dim) -> tuple[TensorType, TensorType]:
    """Return the types of a classifier's labels and scores."""
    count = batch(x)
    kind: ElementType = STRING if strings else INT64
    return TensorType(kind, (count,)), TensorType(FLOAT, (count, columns))
