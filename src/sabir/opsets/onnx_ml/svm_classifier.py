"""SVMClassifier: classes by support vectors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.base import EvaluationError, InferenceError
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification import classifier_kernels, classifiers, support_kernels, supports
from sabir.opsets.families.classification.classifier_kernels import known_size
from sabir.opsets.families.classification.classifiers import TWO
from sabir.opsets.typing import Array, Floats, Ints
from sabir.schema import Attribute, Constraint, Example, Operator, Output, at_least

svm_classifier = Operator(
    "SVMClassifier",
    domain="ai.onnx.ml",
    summary="The class that wins most decisions of two, each `sum(coefficients * kernel(X, vectors)) + rho`.",
)

T1 = Constraint("T1", classifiers.FEATURE_TYPES)

v1 = svm_classifier.first(
    1,
    inputs=[classifiers.features_port(T1)],
    outputs=[
        classifiers.LABELS_AND_SCORES[0],
        Output("Z", "tensor(float)", "Shape [N, E]: probabilities, else one decision per pair of classes."),
    ],
    attributes=[
        Attribute("classlabels_ints", "ints", "The labels, if they are integers."),
        Attribute("rho", "floats", "What is added to each decision."),
        Attribute("prob_b", "floats", "B in the probability `1 / (1 + exp(A d + B))` of each decision d."),
        Attribute("coefficients", "floats", "[E - 1, vectors] weights; without vectors [E, C]."),
        Attribute("classlabels_strings", "strings", "The labels, if they are strings."),
        Attribute("prob_a", "floats", "A of each decision; with it Z contains probabilities."),
        Attribute("support_vectors", "floats", "[vectors, C]: grouped by class, in order."),
        Attribute(
            "vectors_per_class", "ints", "Vectors of each class; none: linear scores.", values=at_least(0)
        ),
        classifiers.POST_TRANSFORM,
        *supports.KERNEL_ATTRIBUTES,
    ],
)


@v1.infer
def infer(
    x: TensorType, /, *, prob_a: Floats, vectors_per_class: Ints, **others: Any
) -> tuple[TensorType, TensorType]:
    classes, counts = len(classifiers.label_list(others)), vectors_per_class or ()
    classifiers.batch(x)
    _check_width(classifiers.feature_count(x), counts, classes, others)
    decisions = any(counts) and not prob_a and classes != TWO
    return classifiers.output_types(x, others, math.comb(classes, 2) if decisions else classes)


def _check_width(features: Dim, counts: Sequence[int], classes: int, attributes: Mapping[str, Any]) -> None:
    """Raise InferenceError where the attributes are for rows of another number of features."""
    name, needed = ("support_vectors", sum(counts)) if any(counts) else ("coefficients", classes)
    rows = classifiers.row_count(len(attributes[name] or ()), features, name)
    if rows not in {None, needed}:
        raise InferenceError(f"`{name}` has {rows} rows of {features} features, and must have {needed}")


@v1.evaluate
def evaluate(
    x: Array, /, *, post_transform: str, rho: Floats, vectors_per_class: Ints, **others: Any
) -> tuple[Array, Array]:
    x, labels = classifiers.rows(x), classifiers.label_array(others)
    classes, counts = len(labels), vectors_per_class or ()
    _check_width(x.shape[1], counts, classes, others)
    if not any(counts):
        weights = classifiers.matrix(others["coefficients"] or (), x.shape[1], "coefficients")
        return _linear(x, weights, labels, (rho or [0.0])[0], post_transform)
    decisions = _decisions(x, counts, classes, others | {"rho": rho})
    chosen = labels[np.argmax(supports.votes(decisions, classes), axis=1)]
    if others["prob_a"]:
        scores = supports.probabilities(decisions, *_pair_attributes(others, classes), classes)
    elif classes == TWO:
        scores = classifiers.scores_of_two(decisions[:, 0], post_transform, complement=False)
    else:
        scores = decisions
    return chosen, classifiers.transformed(scores, post_transform).astype(np.float32)


def _decisions(x: Array, counts: Sequence[int], classes: int, attributes: Mapping[str, Any]) -> Array:
    """Return the decision (N, pairs) between each pair of classes."""
    weights, features = _weights(counts, classes, attributes), x.shape[1]
    vectors = classifiers.matrix(attributes["support_vectors"] or (), features, "support_vectors")
    if len(vectors) != sum(counts):
        found = f"{len(vectors)} support vectors of {features} features"
        raise EvaluationError(f"there are {found}, not {sum(counts)}")
    kernel, parameters = attributes["kernel_type"], attributes["kernel_params"]
    return supports.combined(x, vectors, weights, kernel, parameters) + np.array(
        attributes["rho"], np.float32
    )


def _weights(counts: Sequence[int], classes: int, attributes: Mapping[str, Any]) -> Array:
    """Return the weights (vectors, pairs) of the decisions; raises ValueError for lists that do not fit."""
    if len(counts) != classes:
        raise ValueError(f"vectors_per_class is {list(counts)}, and there are {classes} classes")
    _check_length(attributes, "coefficients", (classes - 1) * sum(counts))
    _check_length(attributes, "rho", math.comb(classes, 2))
    coefficients = classifiers.matrix(attributes["coefficients"] or (), sum(counts), "coefficients")
    return supports.pairwise_weights(coefficients, counts)


def _pair_attributes(attributes: Mapping[str, Any], classes: int) -> tuple[Array, Array]:
    """Return A and B of the probability of each pair; raises ValueError for another number of them."""
    names = ("prob_a", "prob_b")
    for name in names:
        _check_length(attributes, name, math.comb(classes, 2))
    a, b = (np.array(attributes[name], np.float32) for name in names)
    return a, b


def _check_length(attributes: Mapping[str, Any], name: str, needed: int) -> None:
    count = len(attributes[name] or ())
    if count != needed:
        raise ValueError(f"`{name}` has {count} numbers, and needs {needed}")


def _linear(x: Array, weights: Array, labels: Array, rho: float, how: str) -> tuple[Array, Array]:
    scores = x @ weights.T + np.float32(rho)
    return classifiers.best(labels, scores), classifiers.transformed(scores, how).astype(np.float32)


@v1.lower
def lower(
    x: Expression, /, *, post_transform: str, rho: Floats, vectors_per_class: Ints, **others: Any
) -> tuple[Expression, Expression]:
    rows, labels = classifier_kernels.rows(x), classifier_kernels.labels(others)
    classes, counts = len(labels), vectors_per_class or ()
    _check_width(known_size(rows.shape[1]), counts, classes, others)
    if not any(counts):
        weights = classifier_kernels.matrix(others["coefficients"] or (), rows.shape[1], rows.element)
        scores = classifier_kernels.products(rows, weights)
        scores = loops.apply("add", scores, float(np.float32((rho or [0.0])[0])))
        return classifier_kernels.best(labels, scores), classifier_kernels.transformed(scores, post_transform)
    weights = _weights(counts, classes, others | {"rho": rho})
    vectors = classifier_kernels.matrix(others["support_vectors"] or (), rows.shape[1], "double")
    if len(vectors) != sum(counts):
        raise NotLowered("there is another number of support vectors")
    kernel = support_kernels.kernel(rows, vectors, others["kernel_type"], others["kernel_params"])
    decisions = classifier_kernels.products(kernel, weights.T)
    decisions = classifier_kernels.shifted(decisions, np.array(rho, np.float32))
    if others["prob_a"]:
        chosen = classifier_kernels.best(labels, support_kernels.votes(decisions, classes))
        scores = support_kernels.probabilities(decisions, *_pair_attributes(others, classes), classes)
        return chosen, classifier_kernels.transformed(scores, post_transform)
    if classes == TWO:
        won = loops.apply("gt", decisions, 0)
        chosen = classifier_kernels.second_of_two(labels[::-1], won)
        pair = classifier_kernels.scores_of_two(decisions, post_transform, complement=False)
        return chosen, classifier_kernels.transformed(loops.join(pair, 1), post_transform)
    chosen = classifier_kernels.best(labels, support_kernels.votes(decisions, classes))
    return chosen, classifier_kernels.transformed(decisions, post_transform)


@v1.parts
def parts(b: Builder, x: Value, /, **attributes: Any) -> tuple[Value, Value]:
    return classifiers.labelled(b, "SVMClassifier", x, attributes, "classlabels_ints")


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
