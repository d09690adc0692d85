"""LinearClassifier: classes by linear scores."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import Builder, Dim, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels, classifiers
from sabir.opsets.families.classification.classifiers import TWO
from sabir.opsets.typing import Array, Floats
from sabir.schema import Attribute, Constraint, Example, Operator

linear_classifier = Operator(
    "LinearClassifier",
    domain="ai.onnx.ml",
    summary="The scores `X W^T + b` of each class, and the label of the highest.",
)

T1 = Constraint("T1", classifiers.FEATURE_TYPES)

v1 = linear_classifier.first(
    1,
    inputs=[classifiers.features_port(T1)],
    outputs=classifiers.LABELS_AND_SCORES,
    attributes=[
        classifiers.POST_TRANSFORM,
        Attribute("classlabels_ints", "ints", "The labels, if they are integers."),
        Attribute("classlabels_strings", "strings", "The labels, if they are strings."),
        Attribute("multi_class", "int", "How the model was trained; of no effect here.", default=0),
        Attribute("intercepts", "floats", "b, one per score; 0 if absent."),
        Attribute("coefficients", "floats", "W, row by row: C weights for each score.", required=True),
    ],
)


@v1.infer
def infer(
    x: TensorType, /, *, coefficients: Sequence[float], intercepts: Floats, **others: Any
) -> tuple[TensorType, TensorType]:
    classes = len(classifiers.label_list(others))
    classifiers.batch(x)
    columns: Dim = classifiers.row_count(len(coefficients), classifiers.feature_count(x), "coefficients")
    _check(columns, classes, intercepts)
    columns = len(intercepts) if intercepts else columns
    if classes == TWO and columns in {1, None}:  # the score of the other class is its complement
        columns = classes
    return classifiers.output_types(x, others, columns)


def _check(scores: Dim, labels: int, intercepts: Floats) -> None:
    """Raise InferenceError where the attributes are for different numbers of scores."""
    if not isinstance(scores, int):
        return
    if intercepts and len(intercepts) != scores:
        raise InferenceError(f"there are {len(intercepts)} intercepts for {scores} scores")
    if labels and labels != scores and not (scores == 1 and labels == TWO):
        raise InferenceError(f"there are {labels} labels for {scores} scores")


@v1.evaluate
def evaluate(
    x: Array, /, *, coefficients: Sequence[float], intercepts: Floats, post_transform: str, **others: Any
) -> tuple[Array, Array]:
    x = classifiers.rows(x)
    weights = classifiers.matrix(coefficients, x.shape[1], "coefficients")
    scores = classifiers.products(x, weights)
    labels = classifiers.label_array(others)
    _check(len(weights), len(labels), intercepts)
    if intercepts:
        scores += np.array(intercepts, np.float32)
    if len(weights) == 1 and len(labels) == TWO:
        chosen = labels[(scores[:, 0] > 0).astype(np.int64)]
        scores = classifiers.scores_of_two(scores[:, 0], post_transform, complement=True)
    else:
        chosen = classifiers.best(labels, scores)
    return chosen, classifiers.transformed(scores, post_transform).astype(np.float32)


@v1.lower
def lower(
    x: Expression, /, *, coefficients: Sequence[float], intercepts: Floats, post_transform: str, **others: Any
) -> tuple[Expression, Expression]:
    rows, labels = classifier_kernels.rows(x), classifier_kernels.labels(others)
    weights = classifier_kernels.matrix(coefficients, rows.shape[1], rows.element)
    count = len(weights)
    _check(count, len(labels), intercepts)
    scores = classifier_kernels.products(rows, weights)
    scores = classifier_kernels.shifted(scores, np.array(intercepts or (), np.float32))
    if count == 1 and len(labels) == TWO:
        chosen = classifier_kernels.second_of_two(labels, loops.apply("gt", scores, 0))
        scores = loops.join(classifier_kernels.scores_of_two(scores, post_transform, complement=True), 1)
    else:
        chosen = classifier_kernels.best(labels, scores)
    return chosen, classifier_kernels.transformed(scores, post_transform)


@v1.parts
def parts(b: Builder, x: Value, /, **attributes: Any) -> tuple[Value, Value]:
    return classifiers.labelled(b, "LinearClassifier", x, attributes, "classlabels_ints")


@linear_classifier.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[1, 2], [-3, 1]], f)
    both: dict[str, Any] = {"coefficients": [0.1, 0.2, -0.1, -0.2], "intercepts": [0.05, 0.3]}
    words = ["a", "b"]
    named: dict[str, Any] = {**both, "classlabels_strings": ["a", "b"]}
    yield Example(1, x, **named, outputs=2, expect=[words, [[0.55, -0.2], [-0.05, 0.4]]])
    transforms = {  # results from onnxruntime; of PROBIT from scipy.stats.norm.ppf
        "LOGISTIC": [[0.6341356, 0.450166], [0.4875026, 0.5986877]],
        "SOFTMAX": [[0.6791787, 0.3208213], [0.3893608, 0.6106393]],
        "SOFTMAX_ZERO": [[0.6791787, 0.3208213], [0.3893608, 0.6106393]],
        "PROBIT": [[0.12566135, np.nan], [np.nan, -0.2533471]],
    }
    for how, z in transforms.items():
        yield Example(1, x, **named, post_transform=how, outputs=2, expect=[words, z])
    one: dict[str, Any] = {"coefficients": [0.1, 0.2], "intercepts": [0.05], "classlabels_ints": [5, 7]}
    labels = [7, 5]
    yield Example(1, x, **one, outputs=2, expect=[labels, [[0.45, 0.55], [1.05, -0.05]]])
    logistic = [[0.3658644, 0.6341356], [0.5124974, 0.4875026]]
    yield Example(1, x, **one, post_transform="LOGISTIC", outputs=2, expect=[labels, logistic])
    three: dict[str, Any] = {
        "coefficients": [1.0, 0, 0, 1, -1, -1],
        "classlabels_ints": [10, 20, 30],
    }  # by hand
    scores = [[1, 2, -3], [-3, 1, 2]]
    for kind in (np.float32, np.float64, np.int32, np.int64):
        yield Example(1, x.astype(kind), **three, outputs=2, expect=[[20, 30], scores])
    yield Example(1, x[0], **three, outputs=2, expect=[[20], scores[:1]])
    empty = [np.zeros(0, np.int64), np.zeros((0, 3), f)]
    yield Example(1, x[:0], **three, outputs=2, post_transform="SOFTMAX", expect=empty)
    single: dict[str, Any] = {"coefficients": [1.0, 1], "classlabels_ints": [1]}
    yield Example(1, x, **single, outputs=2, expect=[[1, 0], [[3], [-2]]])
