"""SVMClassifier: classes by support vectors."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import EvaluationError, InferenceError
from sabir.ir import Dim, TensorType
from sabir.opsets.families import classifiers, supports
from sabir.opsets.families.classifiers import TWO, label_count
from sabir.opsets.typing import Array
from sabir.schema import STRING, Attribute, Constraint, Example, Input, Operator, Output, at_least, tensors

svm_classifier = Operator(
    "SVMClassifier",
    domain="ai.onnx.ml",
    summary="The class that wins most decisions of two, each `sum(coefficients * kernel(X, vectors)) + rho`.",
)

T1 = Constraint("T1", tensors("double", "float", "int32", "int64"))
T2 = Constraint("T2", STRING, tensors("int64"))

v1 = svm_classifier.first(
    1,
    inputs=[Input("X", T1, "Features [N, C], or one row [C].")],
    outputs=[
        Output("Y", T2, "Shape [N]: the labels."),
        Output("Z", "tensor(float)", "Shape [N, E]: probabilities, else one decision per pair of classes."),
    ],
    attributes=[
        Attribute("classlabels_ints", "ints", "The labels, if they are integers."),
        Attribute("rho", "floats", "What is added to each decision."),
        Attribute("prob_b", "floats", "B in the probability `1 / (1 + exp(A d + B))` of each decision d."),
        Attribute("coefficients", "floats", "[E - 1, vectors] weights; without vectors [E, C]."),
        Attribute("classlabels_strings", "strings", "The labels, if they are strings."),
        Attribute("prob_a", "floats", "A of each decision; with it Z holds probabilities."),
        Attribute("support_vectors", "floats", "[vectors, C]: those of the first class come first."),
        Attribute(
            "vectors_per_class",
            "ints",
            "How many vectors each class has; none: scores are linear.",
            values=at_least(0),
        ),
        classifiers.POST_TRANSFORM,
        Attribute("kernel_params", "floats", "gamma, coef0 and degree."),
        Attribute(
            "kernel_type",
            "string",
            "LINEAR `u.v`, POLY `(gamma u.v + coef0)^degree`, "
            "RBF `exp(-gamma |u - v|^2)` or SIGMOID `tanh(gamma u.v + coef0)`.",
            default="LINEAR",
            values=supports.KERNELS,
        ),
    ],
)


@v1.infer
def infer(
    x: TensorType,
    /,
    *,
    classlabels_ints: Sequence[int] | None,
    classlabels_strings: Sequence[str] | None,
    coefficients: Sequence[float] | None,
    prob_a: Sequence[float] | None,
    support_vectors: Sequence[float] | None,
    vectors_per_class: Sequence[int] | None,
) -> tuple[TensorType, TensorType]:
    classes = label_count(classlabels_strings, classlabels_ints)
    classifiers.batch(x)
    _check_width(classifiers.features(x), coefficients, support_vectors, vectors_per_class or (), classes)
    decisions = any(vectors_per_class or ()) and not prob_a and classes != TWO
    return classifiers.types(x, classlabels_strings, math.comb(classes, 2) if decisions else classes)


def _check_width(
    features: Dim,
    coefficients: Sequence[float] | None,
    vectors: Sequence[float] | None,
    counts: Sequence[int],
    classes: int,
) -> None:
    """Raise InferenceError where the attributes are for rows of another number of features."""
    name, values, needed = (
        ("support_vectors", vectors, sum(counts)) if any(counts) else ("coefficients", coefficients, classes)
    )
    rows = classifiers.row_count(len(values or ()), features, name)
    if rows not in {None, needed}:
        raise InferenceError(f"`{name}` makes {rows} rows of {features} features, and must make {needed}")


@v1.evaluate
def evaluate(  # ruff: ignore[too-many-arguments]  the operator's attributes
    x: Array,
    /,
    *,
    classlabels_ints: Sequence[int] | None,
    classlabels_strings: Sequence[str] | None,
    coefficients: Sequence[float] | None,
    kernel_params: Sequence[float] | None,
    kernel_type: str,
    post_transform: str,
    prob_a: Sequence[float] | None,
    prob_b: Sequence[float] | None,
    rho: Sequence[float] | None,
    support_vectors: Sequence[float] | None,
    vectors_per_class: Sequence[int] | None,
) -> tuple[Array, Array]:
    x, labels = classifiers.rows(x), classifiers.labels_of(classlabels_strings, classlabels_ints)
    classes, counts = len(labels), vectors_per_class or ()
    _check_width(x.shape[1], coefficients, support_vectors, counts, classes)
    if not any(counts):
        weights = classifiers.matrix(coefficients or (), x.shape[1], "coefficients")
        return _linear(x, weights, labels, (rho or [0.0])[0], post_transform)
    shapes = {
        "coefficients": (coefficients, (classes - 1) * sum(counts)),
        "rho": (rho, math.comb(classes, 2)),
    }
    _check(shapes, counts, classes)
    vectors = classifiers.matrix(support_vectors or (), x.shape[1], "support_vectors")
    if len(vectors) != sum(counts):
        raise EvaluationError(
            f"there are {len(vectors)} support vectors of {x.shape[1]} features, not {sum(counts)}"
        )
    weights = supports.pairwise_weights(
        classifiers.matrix(coefficients or (), sum(counts), "coefficients"), counts
    )
    decisions = supports.combined(x, vectors, weights, kernel_type, kernel_params) + np.array(rho, np.float32)
    chosen = labels[np.argmax(supports.votes(decisions, classes), axis=1)]
    if prob_a:
        _check({"prob_a": (prob_a, math.comb(classes, 2)), "prob_b": (prob_b, len(prob_a))}, counts, classes)
        a, b = np.array(prob_a, np.float32), np.array(prob_b, np.float32)
        scores = supports.probabilities(decisions, a, b, classes)
    elif classes == TWO:
        scores = classifiers.of_one_score(decisions[:, 0], post_transform, complement=False)
    else:
        scores = decisions
    return chosen, classifiers.transformed(scores, post_transform).astype(np.float32)


def _linear(x: Array, weights: Array, labels: Array, rho: float, how: str) -> tuple[Array, Array]:
    scores = x @ weights.T + np.float32(rho)
    return classifiers.top(labels, scores), classifiers.transformed(scores, how).astype(np.float32)


def _check(given: dict[str, tuple[Sequence[float] | None, int]], counts: Sequence[int], classes: int) -> None:
    if len(counts) != classes:
        raise ValueError(f"vectors_per_class is {list(counts)}, and there are {classes} classes")
    for name, (values, needed) in given.items():
        if len(values or ()) != needed:
            raise ValueError(f"`{name}` has {len(values or ())} numbers, and needs {needed}")


@svm_classifier.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2, 3], [3, -1, 0]], f)
    three: dict[str, Any] = {  # the vectors are the axes, so that the kernel is x itself: decisions by hand
        "coefficients": [1.0, -1, -1, 2, 1, -1],
        "rho": [0.0, 0.5, -1],
        "support_vectors": [1.0, 0, 0, 0, 1, 0, 0, 0, 1],
        "vectors_per_class": [1, 1, 1],
    }
    numbered: dict[str, Any] = {**three, "classlabels_ints": [10, 20, 30]}
    labels = np.array([30, 10])
    decisions = np.array([[-1, -0.5, -2], [4, 6.5, -2]], f)
    for kind in (np.float32, np.float64, np.int32, np.int64):
        yield Example(1, x.astype(kind), **numbered, outputs=2, expect=[labels, decisions])
    yield Example(1, x[1], **numbered, outputs=2, expect=[labels[1:], decisions[1:]])
    yield Example(1, x[:0], **numbered, outputs=2, expect=[labels[:0], decisions[:0]])
    logistic = (1 / (1 + np.exp(-decisions))).astype(f)
    yield Example(1, x, **numbered, outputs=2, post_transform="LOGISTIC", expect=[labels, logistic])
    platt: dict[str, Any] = {
        "prob_a": [-1.0, -2, -0.5],
        "prob_b": [0.0, 0.1, 0.2],
    }  # results from onnxruntime, also below
    shares = [[0.15187913, 0.22053172, 0.6275892], [0.98650265, 0.01144948, 0.00204789]]
    yield Example(1, x, **numbered, **platt, outputs=2, expect=[labels, shares])
    yield from _of_two()


def _of_two() -> Iterator[Example]:
    f = np.float32
    two: dict[str, Any] = {
        "coefficients": [1.0, -1],
        "rho": [0.25],
        "support_vectors": [1.0, 0, 0, 1],
        "vectors_per_class": [1, 1],
        "kernel_params": [0.5, 1, 3.0],
        "classlabels_strings": ["a", "b"],
    }
    y, last = np.array([[1, 2], [3, -1]], f), ["b", "a"]
    score = [[0.75, -0.75], [-4.25, 4.25]]
    yield Example(1, y, **two, outputs=2, expect=[last, score])
    logistic = [[0.6791787, 0.3208213], [0.0140636, 0.9859364]]
    yield Example(1, y, **two, outputs=2, post_transform="LOGISTIC", expect=[last, logistic])
    shares = [[0.2994326, 0.7005674], [0.9842545, 0.0157455]]
    yield Example(1, y, **two, outputs=2, prob_a=[-1.0], prob_b=[0.1], expect=[last, shares])
    kernels = {"POLY": [-4.375, 15.75], "RBF": [0.01745583, 0.33058155], "SIGMOID": [0.19112062, 0.77449715]}
    for kernel, values in kernels.items():
        names = ["a" if v > 0 else "b" for v in values]
        both = [[-v, v] for v in values]
        yield Example(1, y, **two, kernel_type=kernel, outputs=2, expect=[names, both])
    linear: dict[str, Any] = {
        "coefficients": [1.0, 0, 0, 1, -1, -1],
        "rho": [0.5],
        "classlabels_ints": [5, 6, 7],
    }
    scores = [[1.5, 2.5, -2.5], [3.5, -0.5, -1.5]]
    yield Example(1, y, **linear, outputs=2, expect=[[6, 5], scores])
