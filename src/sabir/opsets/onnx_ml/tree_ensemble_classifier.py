"""TreeEnsembleClassifier: the class with the most votes at the leaves of decision trees."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sabir import loops
from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Builder, Dim, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels, classifiers
from sabir.opsets.families.classification.classifier_kernels import known_size
from sabir.opsets.families.classification.classifiers import TWO
from sabir.opsets.families.trees import tree_attributes, tree_conversion, tree_kernels, trees
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Call, Constraint, Example, Operator, Unconvertible

tree_ensemble_classifier = Operator(
    "TreeEnsembleClassifier",
    domain="ai.onnx.ml",
    summary="The sum of the votes for each class at the leaves that a row reaches; the label of the highest.",
)

T1 = Constraint("T1", classifiers.FEATURE_TYPES)

v1 = tree_ensemble_classifier.first(
    1,
    inputs=[classifiers.features_port(T1)],
    outputs=classifiers.LABELS_AND_SCORES,
    attributes=[
        classifiers.POST_TRANSFORM,
        *tree_attributes.NODES,
        Attribute("classlabels_int64s", "ints", "The labels, if they are integers."),
        Attribute("classlabels_strings", "strings", "The labels, if they are strings."),
        Attribute("base_values", "floats", "Added to each class's score."),
        Attribute("class_treeids", "ints", "The tree of each vote's leaf."),
        Attribute("class_nodeids", "ints", "The leaf of each vote."),
        Attribute("class_ids", "ints", "The class of each vote."),
        Attribute("class_weights", "floats", "The weight of each vote."),
    ],
)
v3 = v1.extend(
    3,
    "Numbers may also be passed as tensors, float64 included.",
    attributes=tree_attributes.tensor_forms("base_values", "class_weights"),
)
v5 = v3.retire(5, "Deprecated: TreeEnsemble, followed by ArgMax and LabelEncoder, takes its place.")


@v1.infer
def infer(x: TensorType, /, **attributes: Any) -> tuple[TensorType, TensorType]:
    count = len(classifiers.label_list(attributes))
    found = classifiers.output_types(x, attributes, count)
    _forest(classifiers.feature_count(x), count, attributes)
    return found


@v1.evaluate
def evaluate(x: Array, /, *, post_transform: str, **attributes: Any) -> tuple[Array, Array]:
    labels = classifiers.label_array(attributes)
    rows = classifiers.rows(x)
    forest, base, has_one_score = _forest(rows.shape[1], len(labels), attributes)
    scores = forest.scores(rows, len(labels), "SUM")
    if has_one_score:
        one, complement = scores[:, 0] + base.sum(), bool(np.all(forest.votes.weight >= 0))
        scores = classifiers.scores_of_two(one, post_transform, complement=complement)
    elif base.size:
        scores += base
    chosen = classifiers.best(labels, scores)
    return chosen, classifiers.transformed(scores, post_transform).astype(np.float32)


@v1.lower
def lower(x: Expression, /, *, post_transform: str, **attributes: Any) -> tuple[Expression, Expression]:
    labels = classifier_kernels.labels(attributes)
    rows = classifier_kernels.rows(x)
    forest, base, has_one_score = _forest(known_size(rows.shape[1]), len(labels), attributes)
    if has_one_score:
        one = tree_kernels.scores(rows, forest, 1, "SUM")
        one = classifier_kernels.shifted(one, base.sum(keepdims=True))
        complement = bool(np.all(forest.votes.weight >= 0))
        pair = classifier_kernels.scores_of_two(one, post_transform, complement=complement)
        chosen = classifier_kernels.second_of_two(labels, loops.apply("gt", pair[1], pair[0]))
        return chosen, classifier_kernels.transformed(loops.join(pair, 1), post_transform)
    scores = tree_kernels.scores(rows, forest, len(labels), "SUM")
    scores = classifier_kernels.shifted(scores, base)
    return classifier_kernels.best(labels, scores), classifier_kernels.transformed(scores, post_transform)


@v1.parts
def parts(b: Builder, x: Value, /, **attributes: Any) -> tuple[Value, Value]:
    return classifiers.labelled(b, "TreeEnsembleClassifier", x, attributes, "classlabels_int64s")


def _forest(width: Dim, labels: int, attributes: dict[str, Any]) -> tuple[trees.Forest, Array, bool]:
    """Return the forest, the base values, and whether one score serves two classes.

    Raises InferenceError for an invalid forest.
    """
    forest = tree_attributes.of_lists(tree_attributes.CallAttributes(attributes), "class")
    forest.check(width, labels)
    base = tree_attributes.floats(attributes, "base_values")
    has_one_score = _has_one_score(forest, labels, base)
    if not has_one_score and base.size not in {0, labels}:
        raise InferenceError(f"there are {base.size} base values for {labels} classes")
    return forest, base, has_one_score


def _has_one_score(forest: trees.Forest, labels: int, base: Array) -> bool:
    """Whether all votes are for the first of two classes: they then mean the score of the second."""
    return labels == TWO and base.size <= 1 and not np.any(forest.votes.target)


# ---------------------------------------------------------------- adapters


@v5.upgrade
def labels_by_argmax_and_gather(
    b: Builder, x: Value, /, *, post_transform: str, **attributes: Any
) -> tuple[Value, Value]:
    labels = classifiers.label_array(attributes)
    forest = tree_attributes.of_lists(tree_attributes.CallAttributes(attributes), "class")
    base = tree_attributes.floats(attributes, "base_values")
    if len(labels) < TWO:
        raise Unconvertible(
            "with a single class the label depends on the sign of the score, which ArgMax ignores"
        )
    rows = tree_conversion.rows_of(b, x, forest)
    if _has_one_score(forest, len(labels), base):
        outputs = tree_conversion.Outputs("SUM", 1, base)
        one = tree_conversion.ensemble(b, rows, forest, outputs)
        complement = bool(np.all(forest.votes.weight >= 0)) and post_transform in {"NONE", "PROBIT"}
        first = b.Sub(b.initializer("one", np.float32(1)), one) if complement else b.Neg(one)
        scores = b.Concat(first, one, axis=1)
    else:
        outputs = tree_conversion.Outputs("SUM", len(labels), base)
        scores = tree_conversion.ensemble(b, rows, forest, outputs)
    if post_transform not in _AS_NODES:
        raise Unconvertible(f"no operator computes the post_transform {post_transform}")
    chosen = b.Gather(b.initializer("labels", labels), b.ArgMax(scores, axis=1, keepdims=0))
    return chosen, _AS_NODES[post_transform](b, scores)


_AS_NODES: dict[str, Callable[[Builder, Value], Value]] = {
    "NONE": lambda b, scores: b.Identity(scores),
    "SOFTMAX": lambda b, scores: b.Softmax(scores, axis=1),
    "LOGISTIC": lambda b, scores: b.Sigmoid(scores),
}


@v5.downgrade
def same_call(b: Builder, x: Value, /, *, call: Call, **attributes: Any) -> Value | tuple[Value, ...]:
    return b.op("TreeEnsembleClassifier", x, outputs=len(call.outputs), domain="ai.onnx.ml", **attributes)


def _attributes(ids: Sequence[int], weights: Sequence[float] | None, **changes: Any) -> dict[str, Any]:
    """Return a tree of one test: rows up to 0 reach leaf 1, others leaf 2; each has half of the votes."""
    half = len(ids) // 2
    return {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_featureids": [0, 0, 0],
        "nodes_values": [0.0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0] * len(ids),
        "class_nodeids": [1] * half + [2] * half,
        "class_ids": ids,
        "class_weights": weights,
        **changes,
    }


@tree_ensemble_classifier.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[-1], [0.25]], f)
    pair: dict[str, Any] = {"classlabels_int64s": [5, 7]}
    one_score = (  # results from onnxruntime: votes for the first class alone are the second's score
        ([0.2, 0.8], "NONE", [[0.8, 0.2], [0.2, 0.8]]),
        ([-0.2, 0.8], "NONE", [[0.2, -0.2], [-0.8, 0.8]]),
        ([-0.2, 0.8], "LOGISTIC", [[0.5498340, 0.4501660], [0.3100255, 0.6899745]]),
    )
    for opset in (1, 3):
        for weights, how, z in one_score:
            call = _attributes([0, 0], weights, **pair, post_transform=how)
            yield Example(opset, x, **call, outputs=2, expect=[[5, 7], z])
        based = _attributes([0, 0], [-0.2, 0.8], base_values=[0.3], **pair)
        yield Example(opset, x, **based, outputs=2, expect=[[7, 7], [[-0.1, 0.1], [-1.1, 1.1]]])
    yield from _of_more_scores(x)


def _of_more_scores(x: Array) -> Iterator[Example]:
    f = np.float32
    shares = _attributes([0, 1, 0, 1], [0.9, 0.1, 0.2, 0.8], classlabels_strings=["no", "yes"])
    three: dict[str, Any] = {"classlabels_int64s": [1, 2, 3], "base_values": [0.0, 0.5, 0.0]}
    votes = _attributes([0, 2, 0, 2], [0.9, 0.1, 0.2, 0.8], **three)
    scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.5, 0.8]], f)
    softmax = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    empty = [np.zeros(0, np.int64), np.zeros((0, 3), f)]
    for opset in (1, 3, 5):
        yield Example(opset, x, **shares, outputs=2, expect=[["no", "yes"], [[0.9, 0.1], [0.2, 0.8]]])
        yield Example(opset, x, **votes, outputs=2, expect=[[1, 3], scores])
        yield Example(opset, x, **votes, outputs=2, post_transform="SOFTMAX", expect=[[1, 3], softmax])
        yield Example(opset, x[1], **votes, outputs=2, expect=[[3], scores[1:]])
        yield Example(opset, [[0], [1]], **votes, outputs=2, expect=[[1, 3], scores])
        yield Example(opset, x[:0], **votes, outputs=2, expect=empty)
    tensors = _attributes(
        [0, 2, 0, 2],
        None,
        nodes_values=None,
        class_weights_as_tensor=ArrayTensor(np.array([0.9, 0.1, 0.2, 0.8])),
        nodes_values_as_tensor=ArrayTensor(np.array([-1e-300, 0, 0])),
        classlabels_int64s=[1, 2, 3],
    )
    doubles = np.array([[-2e-300], [0]])
    yield Example(3, doubles, **tensors, outputs=2, expect=[[1, 3], [[0.9, 0, 0.1], [0.2, 0, 0.8]]])
