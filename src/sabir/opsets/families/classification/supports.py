"""Support vector machines: kernels, votes between pairs of classes, and probabilities after Platt and Wu."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from sabir.opsets.families.shapes.sizes import allotted, spend_operations
from sabir.schema import Attribute, one_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sabir.opsets.typing import Array

KERNEL_ATTRIBUTES = (
    Attribute("kernel_params", "floats", "gamma, coef0 and degree."),
    Attribute(
        "kernel_type",
        "string",
        "LINEAR `u.v`, POLY `(gamma u.v + coef0)^degree`, "
        "RBF `exp(-gamma |u - v|^2)` or SIGMOID `tanh(gamma u.v + coef0)`.",
        default="LINEAR",
        values=one_of("LINEAR", "POLY", "RBF", "SIGMOID"),
    ),
)
_BLOCK = 1 << 18  # kernel values at a time
ITERATIONS, TOLERANCE = 100, 0.005  # of the iteration for the probabilities
_COPIES = 4  # of a matrix for each row, during the iteration
LEAST = 1e-7  # the minimum probability of one class of a pair


def kernel(x: Array, vectors: Array, kind: str, parameters: Sequence[float] | None) -> Array:
    """Return the kernel of each row of `x` (N, F) with each support vector (V, F), in float64."""
    gamma, coef0, degree = (*(parameters or ()), 0.0, 0.0, 0.0)[:3]
    x, vectors = x.astype(np.float64), vectors.astype(np.float64)
    product = x @ vectors.T
    if kind == "LINEAR":
        return product
    if kind == "RBF":
        lengths = np.einsum("nf,nf->n", x, x)[:, None] + np.einsum("vf,vf->v", vectors, vectors)
        return np.exp(-gamma * np.maximum(lengths - 2 * product, 0))
    inner = gamma * product + coef0
    return np.tanh(inner) if kind == "SIGMOID" else np.power(inner, degree)


def combined(
    x: Array, vectors: Array, weights: Array, kind: str, parameters: Sequence[float] | None
) -> Array:
    """Return kernels times `weights` (V, decisions), a block of rows at a time to limit memory."""
    result = np.empty(allotted((len(x), weights.shape[1]), np.dtype(np.float64), x.size), np.float64)
    step = max(1, _BLOCK // max(1, len(vectors)))
    for start in range(0, len(x), step):
        result[start : start + step] = kernel(x[start : start + step], vectors, kind, parameters) @ weights
    return result


def pairs(classes: int) -> Iterator[tuple[int, int]]:
    """Return the pairs of classes in the order of their decisions: (0, 1), (0, 2), ..., (1, 2), ..."""
    return itertools.combinations(range(classes), 2)


def pairwise_weights(coefficients: Array, counts: Sequence[int]) -> Array:
    """Return the weights (V, pairs) of the support vectors in the decision between each pair of classes.

    `coefficients` (classes - 1, V) has for a vector of class c one row per other class, in order.
    """
    classes, ends = len(counts), list(itertools.accumulate(counts, initial=0))
    own = list(itertools.starmap(slice, itertools.pairwise(ends)))
    spend_operations(2 * classes * (classes - 1))  # four operations on each pair, and as many when they vote
    shape = allotted((coefficients.shape[1], classes * (classes - 1) // 2), np.dtype(np.float64))
    weights = np.zeros(shape, np.float64)
    for column, (i, j) in enumerate(pairs(classes)):
        weights[own[i], column] = coefficients[j - 1, own[i]]
        weights[own[j], column] = coefficients[i, own[j]]
    return weights


def votes(decisions: Array, classes: int) -> Array:
    """Return how many of its pairs each class wins (N, classes); a positive decision is for the first."""
    won = np.zeros((len(decisions), classes), np.int64)
    for column, (i, j) in enumerate(pairs(classes)):
        first = decisions[:, column] > 0
        won[:, i] += first
        won[:, j] += ~first
    return won


def probabilities(decisions: Array, a: Array, b: Array, classes: int) -> Array:
    """Return class probabilities (N, classes): those of each pair by Platt, coupled after Wu, Lin and Weng.

    The coupling is that of libsvm: Gauss-Seidel steps from equal probabilities until the residual is small.
    So the result is that with which such models are trained and compared, and not the exact minimum.
    """
    of_pair = 1 / (1 + np.exp(decisions * a + b))
    of_pair = np.clip(of_pair, LEAST, 1 - LEAST)
    allotted((_COPIES, len(decisions), classes, classes), np.dtype(np.float64))
    r = np.zeros((len(decisions), classes, classes), np.float64)
    for column, (i, j) in enumerate(pairs(classes)):
        r[:, i, j], r[:, j, i] = of_pair[:, column], 1 - of_pair[:, column]
    q = -r * r.transpose(0, 2, 1)
    own = np.arange(classes)
    q[:, own, own] = np.einsum("nji,nji->ni", r, r)
    p = np.full((len(r), classes), 1 / max(1, classes))
    open_rows = np.arange(len(r))
    for _ in range(ITERATIONS):
        rest = np.einsum("nij,nj->ni", q[open_rows], p[open_rows])
        total = np.einsum("ni,ni->n", p[open_rows], rest)
        far = np.max(np.abs(rest - total[:, None]), axis=1, initial=0) >= TOLERANCE / classes
        open_rows = open_rows[far]
        if not len(open_rows):
            break
        p[open_rows] = _iterate(p[open_rows], q[open_rows], rest[far], total[far])
    return p


def _iterate(p: Array, q: Array, rest: Array, total: Array) -> Array:
    """Return the probabilities after one step for each class; `rest` is q p, `total` p q p."""
    for t in range(p.shape[1]):
        step = (total - rest[:, t]) / q[:, t, t]
        p[:, t] += step
        total = (total + step * (step * q[:, t, t] + 2 * rest[:, t])) / (1 + step) ** 2
        rest = (rest + step[:, None] * q[:, t]) / (1 + step)[:, None]
        p /= (1 + step)[:, None]
    return p
