"""Probabilities of classes from those of pairs: steps for one row after the other, as libsvm makes them."""

import itertools
import math
from typing import Any

import numpy as np

from sabir.ir import Builder, tensor_type
from support.lowered import kernels_only

FEATURES = 3


def model_of(classes, shape, random):
    """A machine with one vector of each class, and the attributes with which `expected` computes the same."""
    pairs = math.comb(classes, 2)
    lists = {
        "coefficients": random.normal(size=(classes - 1) * classes), "rho": random.normal(size=pairs),
        "support_vectors": random.normal(size=classes * FEATURES),
        "prob_a": -np.abs(random.normal(size=pairs)), "prob_b": random.normal(size=pairs),
    }  # fmt: skip
    given = {name: np.float32(x) for name, x in lists.items()}
    b = Builder(21, opsets={"ai.onnx.ml": 3})
    x = b.input("x", tensor_type(np.float32, shape))
    attributes: Any = {name: array.tolist() for name, array in given.items()}
    attributes |= {"vectors_per_class": [1] * classes, "classlabels_ints": [*range(classes)]}
    _, scores = b.op("SVMClassifier", x, outputs=2, domain="ai.onnx.ml", **attributes)
    b.output(scores, "z")
    return b.model(), {name: array.astype(np.float64) for name, array in given.items()}


def expected(row, classes, given):
    """The probabilities of one row: of pairs after Platt, of classes after Wu, Lin and Weng."""
    vectors = given["support_vectors"].reshape(classes, FEATURES)
    coefficients = given["coefficients"].reshape(classes - 1, classes)
    kernel = vectors @ row.astype(np.float64)
    r = np.zeros((classes, classes))
    for pair, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        decision = coefficients[j - 1, i] * kernel[i] + coefficients[i, j] * kernel[j] + given["rho"][pair]
        won = 1 / (1 + math.exp(decision * given["prob_a"][pair] + given["prob_b"][pair]))
        r[i, j] = min(max(won, 1e-7), 1 - 1e-7)
        r[j, i] = 1 - r[i, j]
    q = -r * r.T
    for t in range(classes):
        q[t, t] = sum(r[j, t] ** 2 for j in range(classes))
    p = np.full(classes, 1 / classes)
    for _ in range(100):
        if max(abs(q @ p - p @ q @ p)) < 0.005 / classes:
            break
        for t in range(classes):
            p[t] += (p @ q @ p - q[t] @ p) / q[t, t]
            p /= p.sum()
    return p


def test_rows_of_every_number_of_classes():
    random = np.random.default_rng(3)
    for classes in (2, 3, 5, 9):
        for shape, rows in ((("n", FEATURES), (1, 2, 8, 19)), ((1, FEATURES), (1,)), ((0, FEATURES), (0,))):
            model, given = model_of(classes, shape, random)
            for count in rows:
                x = random.normal(size=(count, FEATURES)).astype(np.float32) * 3
                found = kernels_only(model, {"x": x})["z"]
                right = np.array([expected(row, classes, given) for row in x]).reshape(-1, classes)
                np.testing.assert_allclose(found, right, 1e-5, 1e-7, err_msg=str((classes, shape, count)))


def test_a_row_is_the_same_among_others():
    """NaN and rows that need other numbers of steps change nothing for the rows beside them."""
    random = np.random.default_rng(4)
    model, _ = model_of(4, ("n", FEATURES), random)
    x = random.normal(size=(21, FEATURES)).astype(np.float32) * np.float32([[0.01], [1], [100]] * 7)
    x[5] = np.nan
    whole = kernels_only(model, {"x": x})["z"]
    for n, row in enumerate(x):
        alone = kernels_only(model, {"x": row[None]})["z"]
        np.testing.assert_array_equal(alone[0], whole[n], err_msg=str(n))
    assert np.isfinite(np.delete(whole, 5, 0)).all()
