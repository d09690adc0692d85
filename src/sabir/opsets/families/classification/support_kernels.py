"""Lowering of support vector machines: kernels, and votes between pairs of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sabir import loops
from sabir.loops import NotLowered
from sabir.opsets.families.classification import classifier_kernels, supports
from sabir.opsets.families.lowering import kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sabir.loops import Expression
    from sabir.opsets.typing import Array


def kernel(x: Expression, vectors: Array, kind: str, parameters: Sequence[float] | None) -> Expression:
    """Return the kernel (N, V) in double of each row of `x` (N, F) with each support vector (V, F)."""
    gamma, coef0, degree = (*(parameters or ()), 0.0, 0.0, 0.0)[:3]
    x = loops.cast(x, "double")
    product = classifier_kernels.products(x, vectors)
    if kind == "LINEAR":
        return product
    if kind == "RBF":
        own = loops.reduce("sum", loops.apply("mul", x, x), [1])
        distance = loops.apply(
            "sub", own, loops.apply("mul", product, 2)
        )  # broadcast as the product is stored
        distance = loops.apply("add", distance, loops.tensor(np.einsum("vf,vf->v", vectors, vectors)))
        return loops.apply("exp", loops.apply("mul", loops.apply("max", distance, 0), -gamma))
    inner = loops.apply("add", loops.apply("mul", product, gamma), coef0)
    return loops.apply("tanh", inner) if kind == "SIGMOID" else loops.apply("pow", inner, degree)


def votes(decisions: Expression, classes: int) -> Expression:
    """Return how many pairs each class wins (N, classes); a positive decision is for the first of a pair.

    Raises NotLowered for very many classes.
    """
    if classes > _MOST:
        raise NotLowered(f"there are pairs of {classes} classes")
    won = np.zeros((len([*supports.pairs(classes)]), classes))
    others = np.zeros(classes)
    for column, (i, j) in enumerate(supports.pairs(classes)):
        won[column, i], won[column, j] = 1, -1
        others[j] += 1
    first = loops.cast(loops.apply("gt", decisions, 0), "double")
    return loops.apply("add", classifier_kernels.products(first, won.T.copy()), loops.tensor(others))


def probabilities(decisions: Expression, a: Array, b: Array, classes: int) -> Expression:
    """Return class probabilities (N, classes), as `supports.probabilities`.

    Raises NotLowered for a single class, and for very many.
    """
    if not 1 < classes <= _MOST:
        raise NotLowered(f"there are pairs of {classes} classes")
    slope, shift = (loops.tensor(x.astype(np.float64)) for x in (a, b))
    power = loops.apply("exp", loops.apply("add", loops.apply("mul", decisions, slope), shift))
    first = loops.apply("div", loops.number("double", 1), loops.apply("add", power, 1))
    first = kernels.limited(first, supports.LEAST, 1 - supports.LEAST)
    both = loops.join([first, loops.apply("sub", loops.number("double", 1), first)], 1)
    return loops.couple(both, classes, supports.ITERATIONS, supports.TOLERANCE)


_MOST = 256  # classes
