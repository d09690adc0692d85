"""Lowering of the models of ai.onnx.ml: rows of features, transforms of scores, labels of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir import loops
from sabir.elements import element
from sabir.loops import NotLowered
from sabir.opsets.families.classification.classifiers import ZERO, label_list
from sabir.opsets.families.lowering import kernels
from sabir.opsets.families.numbers import normal_quantile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_MATRIX = 2
_MOST_ROWS = 1 << 16  # of weights

# ---------------------------------------------------------------- features


def numbers(x: Expression) -> Expression:
    """Return features as float, if they are float, else as double."""
    return x if x.element == "float" else loops.cast(x, "double")


def as_rows(x: Expression) -> Expression:
    """Return features as a matrix; raises NotLowered for another rank than 1 or 2."""
    if x.rank not in {1, _MATRIX}:
        raise NotLowered("features are neither a matrix nor a row")
    return loops.reshape(x, (1, *x.shape)) if x.rank == 1 else x


def rows(x: Expression) -> Expression:
    """Return features as a matrix of float or double."""
    return numbers(as_rows(x))


def known_size(size: Size) -> int | None:
    """Return a size as a number; None if it is symbolic."""
    return size if isinstance(size, int) else None


def each(values: Sequence[float] | Array, x: Expression) -> Expression:
    """Return floats of an attribute in the type of `x`: one, or one for each feature.

    Raises NotLowered for another number of them.
    """
    found = np.array(values, None if isinstance(values, np.ndarray) else np.float32)
    found = found.astype(element(x.element).dtype)
    if len(found) == 1:
        return loops.number(x.element, found[0].item())
    if not x.rank or not loops.equal(x.shape[-1], len(found)):
        raise NotLowered("whether there is a number for each feature is known at run time only")
    return loops.tensor(found)


# ---------------------------------------------------------------- scores


def matrix(values: Sequence[float], width: Size, kind: str) -> Array:
    """Return floats of an attribute as rows of a matrix; raises NotLowered if the last row is incomplete."""
    for count in range(1, _MOST_ROWS + 1):
        if len(values) % count == 0 and loops.equal(width, len(values) // count):
            return np.array(values, np.float32).reshape(count, -1).astype(element(kind).dtype)
    raise NotLowered("an attribute has no whole rows of features, or very many")


def products(x: Expression, weights: Array) -> Expression:
    """Return `x @ weights^T`."""
    return loops.contract(x, loops.permute(loops.tensor(weights), (1, 0)))


def shifted(scores: Expression, values: Array) -> Expression:
    """Return scores plus one number for each column; without numbers the scores."""
    if not values.size:
        return scores
    return loops.apply("add", scores, loops.tensor(values.astype(element(scores.element).dtype)))


def transformed(scores: Expression, how: str, kind: str = "float") -> Expression:
    """Return scores (N, classes) after the transform `how`, in an element type."""
    if scores.element == kind and how in _IN_PLACE:
        return _TRANSFORMS[how](scores)
    return loops.cast(_TRANSFORMS[how](loops.cast(scores, "double")), kind)


def scores_of_two(score: Expression, how: str, *, complement: bool) -> tuple[Expression, Expression]:
    """Return the scores (N, 1) of two classes from the score of the second, as `classifiers`."""
    if complement and how in {"NONE", "PROBIT"}:
        return loops.apply("sub", loops.number(score.element, 1), score), score
    return loops.apply("neg", score), score


def _softmax_zero(scores: Expression) -> Expression:
    absent = loops.apply("le", loops.apply("abs", scores), ZERO)
    all_absent = loops.reduce("min", loops.cast(absent, "int32"), [1])
    found = kernels.softmax(loops.where(absent, -np.inf, scores), 1)
    return loops.where(loops.apply("eq", all_absent, 1), 0, found)


def _logistic(scores: Expression) -> Expression:
    power = loops.apply("exp", loops.apply("neg", scores))
    return loops.apply("div", loops.number("double", 1), loops.apply("add", power, 1))


_TRANSFORMS: dict[str, Callable[[Expression], Expression]] = {
    "NONE": lambda scores: scores,
    "SOFTMAX": lambda scores: kernels.softmax(scores, 1),
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": normal_quantile.lowered,
}

_IN_PLACE = frozenset({"NONE", "SOFTMAX"})  # accurate enough in the type of the scores

# ---------------------------------------------------------------- labels


def labels(attributes: Mapping[str, Any]) -> list[int]:
    """Return the integer labels of a call; raises NotLowered for missing labels and for strings."""
    if attributes["classlabels_strings"]:
        raise NotLowered("the labels are strings")
    found = [int(label) for label in label_list(attributes)]
    if not found:
        raise NotLowered("there are no labels")
    return found


def chosen(names: Sequence[int], place: Expression) -> Expression:
    """Return the labels (N,) at places (N, 1)."""
    place = loops.squeeze(place, [1])
    if list(names) == list(range(len(names))):
        return place
    return loops.take(loops.tensor(np.array(names, np.int64)), place, 0)


def best(names: Sequence[int], scores: Expression) -> Expression:
    """Return the label of the highest score in each row, the first of equal ones, as `classifiers.best`."""
    if scores.shape[1] != 1:
        return chosen(names, loops.reduce("argmax", scores, [1]))
    label = loops.where(loops.apply("gt", scores, 0), loops.number("int64", names[0]), 0)
    return loops.squeeze(label, [1])


def second_of_two(names: Sequence[int], condition: Expression) -> Expression:
    """Return the second label where a condition (N, 1) holds, else the first."""
    label = loops.where(condition, loops.number("int64", names[1]), names[0])
    return loops.squeeze(label, [1])
