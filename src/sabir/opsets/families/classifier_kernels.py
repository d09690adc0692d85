"""Lowering of the models of ai.onnx.ml: rows of features, transforms of scores, labels of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sabir import loops
from sabir.loops import NotLowered
from sabir.opsets.families import kernels, normal_quantile
from sabir.opsets.families.classifiers import TWO, ZERO, label_list

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.loops import Expression, Size
    from sabir.opsets.typing import Array

_MATRIX = 2


def rows(x: Expression) -> Expression:
    """Return features as rows: float stays, any other type becomes double."""
    if x.rank not in {1, _MATRIX}:
        raise NotLowered("features are neither a matrix nor a row")
    x = loops.reshape(x, (1, *x.shape)) if x.rank == 1 else x
    return x if x.element == "float" else loops.cast(x, "double")


def known_size(size: Size) -> int | None:
    """Return a size that is known before a run, else None."""
    return size if isinstance(size, int) else None


def shifted(scores: Expression, numbers: Array) -> Expression:
    """Return scores plus one number for each column; no numbers are zeros."""
    if not numbers.size:
        return scores
    return loops.apply("add", scores, loops.tensor(numbers.astype(np.float64)))


def row_of(numbers: Sequence[float]) -> Expression:
    """Return numbers of an attribute as a row of floats."""
    return loops.tensor(np.array(numbers, np.float32))


def matrix(numbers: Sequence[float], width: object) -> Expression:
    """Return numbers of an attribute as rows of floats; raises NotLowered where there are no whole rows."""
    if not isinstance(width, int) or not width or len(numbers) % width:
        raise NotLowered("whether an attribute has whole rows of features is open")
    return loops.tensor(np.array(numbers, np.float32).reshape(-1, width))


def products(x: Expression, weights: Expression) -> Expression:
    """Return the product of each row of features with each row of weights."""
    return loops.contract(x, loops.permute(loops.cast(weights, x.element), (1, 0)))


# ---------------------------------------------------------------- scores


def transformed(scores: Expression, how: str, element: str = "float") -> Expression:
    """Return scores (N, classes) after the transform `how`, in an element type."""
    wide = loops.cast(scores, "double")
    return loops.cast(_TRANSFORMS[how](wide), element)


def scores_of_two(score: Expression, how: str, *, complement: bool) -> Expression:
    """Return the scores (N, 2) of two classes from that (N, 1) of the second; `classifiers` says how."""
    plain = complement and how in {"NONE", "PROBIT"}
    first = loops.apply("sub", loops.number(score.element, 1), score) if plain else loops.apply("neg", score)
    return loops.join([first, score], 1)


def _softmax_zero(scores: Expression) -> Expression:
    absent = loops.apply("le", loops.apply("abs", scores), ZERO)
    present = loops.where(absent, -np.inf, scores)
    greatest = loops.reduce("max", present, [1])
    powers = loops.apply("exp", loops.apply("sub", present, greatest))
    found = loops.apply("div", powers, loops.reduce("sum", powers, [1]))
    return loops.where(loops.apply("eq", greatest, -np.inf), 0, found)


def _logistic(scores: Expression) -> Expression:
    power = loops.apply("exp", loops.apply("neg", scores))
    return loops.apply("div", loops.number("double", 1), loops.apply("add", power, 1))


def _probit(scores: Expression) -> Expression:
    return normal_quantile.lowered(scores)


_TRANSFORMS: dict[str, Callable[[Expression], Expression]] = {
    "NONE": lambda scores: scores,
    "SOFTMAX": lambda scores: kernels.softmax(scores, 1),
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}

# ---------------------------------------------------------------- labels


def labels(attributes: Mapping[str, Any]) -> list[int]:
    """Return the integer labels of a call; raises NotLowered where there are none, or strings."""
    if attributes["classlabels_strings"]:
        raise NotLowered("the labels are strings")
    found = label_list(attributes)
    if not found:
        raise NotLowered("there are no labels")
    return [int(label) for label in found]


def chosen(names: Sequence[int], place: Expression) -> Expression:
    """Return the labels (N,) at places (N, 1)."""
    place = loops.squeeze(loops.cast(place, "int64"), [1])
    if list(names) == list(range(len(names))):
        return place
    return loops.take(loops.tensor(np.array(names, np.int64)), place, 0)


def best(names: Sequence[int], scores: Expression) -> Expression:
    """Return the label of the highest score in each row, the first of equal ones, as `classifiers.best`."""
    if scores.shape[1] == 1:
        label = loops.where(loops.apply("gt", scores, 0), loops.number("int64", names[0]), 0)
        return loops.squeeze(label, [1])
    return chosen(names, loops.reduce("argmax", scores, [1]))


def second_of_two(names: Sequence[int], score: Expression) -> Expression:
    """Return the second label where a score (N, 1) is positive, else the first."""
    if len(names) != TWO:
        raise NotLowered("there are not two labels")
    label = loops.where(loops.apply("gt", score, 0), loops.number("int64", names[1]), names[0])
    return loops.squeeze(label, [1])
