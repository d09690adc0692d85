"""TreeEnsembleClassifier: the class for which the leaves of decision trees vote."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Builder, Dim, TensorType, Value
from sabir.opsets.families import classifiers, tree_attributes, tree_conversion, trees
from sabir.opsets.families.classifiers import TWO, label_count
from sabir.opsets.typing import Array
from sabir.schema import (
    STRING,
    Attribute,
    Call,
    Constraint,
    Example,
    Input,
    Operator,
    Output,
    Unconvertible,
    tensors,
)

tree_ensemble_classifier = Operator(
    "TreeEnsembleClassifier",
    domain="ai.onnx.ml",
    summary="The sum of the votes for each class at the leaves that a row reaches; the label of the highest.",
)

T1 = Constraint("T1", tensors("double", "float", "int32", "int64"))
T2 = Constraint("T2", STRING, tensors("int64"))

v1 = tree_ensemble_classifier.first(
    1,
    inputs=[Input("X", T1, "Features [N, F], or one row [F].")],
    outputs=[
        Output("Y", T2, "Shape [N]: the labels."),
        Output("Z", "tensor(float)", "Shape [N, E]: the transformed scores; one score serves two classes."),
    ],
    attributes=[
        classifiers.POST_TRANSFORM,
        Attribute("classlabels_int64s", "ints", "The labels, if they are integers."),
        Attribute("nodes_nodeids", "ints", "Each node's number in its tree."),
        Attribute("classlabels_strings", "strings", "The labels, if they are strings."),
        Attribute("class_ids", "ints", "For each vote its class."),
        Attribute("class_weights", "floats", "Each vote's weight."),
        Attribute("nodes_treeids", "ints", "Each node's tree."),
        Attribute("nodes_featureids", "ints", "The feature that each node asks for."),
        Attribute("nodes_values", "floats", "What each node compares with."),
        Attribute("nodes_falsenodeids", "ints", "The node behind each false branch."),
        Attribute("nodes_hitrates", "floats", "How often nodes are met; of no effect."),
        Attribute("base_values", "floats", "What is added to each class's score."),
        Attribute("nodes_missing_value_tracks_true", "ints", "1 where NaN takes the true branch of a node."),
        Attribute(
            "nodes_modes",
            "strings",
            "What each node asks: <=, <, >=, >, ==, != or nothing.",
            values=trees.NAMED_MODES,
        ),
        Attribute("nodes_truenodeids", "ints", "The node behind each true branch."),
        Attribute("class_treeids", "ints", "For each vote the tree of its leaf."),
        Attribute("class_nodeids", "ints", "For each vote the leaf that casts it."),
    ],
)
v3 = v1.extend(
    3,
    "Numbers may be given as tensors, of float64 too.",
    attributes=[
        Attribute("base_values_as_tensor", "tensor", "In place of `base_values`."),
        Attribute("class_weights_as_tensor", "tensor", "In place of `class_weights`."),
        Attribute("nodes_values_as_tensor", "tensor", "In place of `nodes_values`."),
        Attribute("nodes_hitrates_as_tensor", "tensor", "In place of `nodes_hitrates`."),
    ],
)
v5 = v3.retire(5, "Deprecated: TreeEnsemble, followed by ArgMax and LabelEncoder, takes its place.")


@v1.infer
def infer(
    x: TensorType,
    /,
    *,
    classlabels_int64s: Sequence[int] | None,
    classlabels_strings: Sequence[str] | None,
    post_transform: str,
    **attributes: Any,
) -> tuple[TensorType, TensorType]:
    count = label_count(classlabels_strings, classlabels_int64s)
    found = classifiers.types(x, classlabels_strings, count)
    _forest(classifiers.width(x), count, attributes)
    return found


@v1.evaluate
def evaluate(
    x: Array,
    /,
    *,
    classlabels_int64s: Sequence[int] | None,
    classlabels_strings: Sequence[str] | None,
    post_transform: str,
    **attributes: Any,
) -> tuple[Array, Array]:
    labels = classifiers.labels_of(classlabels_strings, classlabels_int64s)
    rows = classifiers.rows(x)
    forest, base, has_one_score = _forest(rows.shape[1], len(labels), attributes)
    scores = forest.scores(rows, len(labels), "SUM")
    if has_one_score:
        one = scores[:, 0] + base.sum()
        scores = classifiers.of_one_score(
            one, post_transform, complement=bool(np.all(forest.votes.weight >= 0))
        )
    elif base.size:
        scores += base
    chosen = classifiers.top(labels, scores)
    return chosen, classifiers.transformed(scores, post_transform).astype(np.float32)


def _forest(width: Dim, labels: int, attributes: dict[str, Any]) -> tuple[trees.Forest, Array, bool]:
    """Return the forest, what is added, and whether there is but one score for two classes.

    Raises InferenceError for no sound forest.
    """
    forest = tree_attributes.of_lists(tree_attributes.Given(attributes), "class")
    forest.check(width, labels)
    base = tree_attributes.floats(attributes, "base_values")
    has_one_score = _has_one_score(forest, labels, base)
    if not has_one_score and base.size not in {0, labels}:
        raise InferenceError(f"{base.size} base values are given for {labels} classes")
    return forest, base, has_one_score


def _has_one_score(forest: trees.Forest, labels: int, base: Array) -> bool:
    """Whether all votes are for the first of two classes: they then mean the score of the second."""
    return labels == TWO and base.size <= 1 and not np.any(forest.votes.target)


# ---------------------------------------------------------------- adapters


@v5.upgrade
def labels_are_chosen_outside(
    b: Builder,
    x: Value,
    /,
    *,
    classlabels_int64s: Sequence[int] | None,
    classlabels_strings: Sequence[str] | None,
    post_transform: str,
    **attributes: Any,
) -> tuple[Value, Value]:
    labels = classifiers.labels_of(classlabels_strings, classlabels_int64s)
    forest, base = (
        tree_attributes.of_lists(tree_attributes.Given(attributes), "class"),
        tree_attributes.floats(attributes, "base_values"),
    )
    if len(labels) < TWO:
        raise Unconvertible("a single class is met or not, and the index of a label says neither")
    rows = tree_conversion.rows_of(b, x, forest)
    if _has_one_score(forest, len(labels), base):
        said = tree_conversion.Said("SUM", 1, base)
        one = tree_conversion.ensemble(b, rows, forest, said)
        complement = bool(np.all(forest.votes.weight >= 0)) and post_transform in {"NONE", "PROBIT"}
        first = b.Sub(b.initializer("one", np.float32(1)), one) if complement else b.Neg(one)
        scores = b.Concat(first, one, axis=1)
    else:
        said = tree_conversion.Said("SUM", len(labels), base)
        scores = tree_conversion.ensemble(b, rows, forest, said)
    if post_transform not in _AS_NODES:
        raise Unconvertible(f"no operator does to scores what post_transform {post_transform} does")
    chosen = b.Gather(b.initializer("labels", labels), b.ArgMax(scores, axis=1, keepdims=0))
    return chosen, _AS_NODES[post_transform](b, scores)


_AS_NODES: dict[str, Callable[[Builder, Value], Value]] = {
    "NONE": lambda b, scores: b.Identity(scores),
    "SOFTMAX": lambda b, scores: b.Softmax(scores, axis=1),
    "LOGISTIC": lambda b, scores: b.Sigmoid(scores),
}


@v5.downgrade
def the_same_by_the_older_version(
    b: Builder, x: Value, /, *, call: Call, **attributes: Any
) -> Value | tuple[Value, ...]:
    return b.op("TreeEnsembleClassifier", x, outputs=len(call.outputs), domain="ai.onnx.ml", **attributes)


def _attributes(ids: Sequence[int], weights: Sequence[float] | None, **changes: Any) -> dict[str, Any]:
    """Return a stump: rows up to 0 reach the leaf 1, others the leaf 2, and each casts equally many votes."""
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
            yield Example(
                opset,
                x,
                **_attributes([0, 0], weights),
                **pair,
                post_transform=how,
                outputs=2,
                expect=[[5, 7], z],
            )
        based = _attributes([0, 0], [-0.2, 0.8], base_values=[0.3])
        yield Example(opset, x, **based, **pair, outputs=2, expect=[[7, 7], [[-0.1, 0.1], [-1.1, 1.1]]])
    yield from _of_more_scores(x)


def _of_more_scores(x: Array) -> Iterator[Example]:
    f = np.float32
    for opset in (1, 3, 5):
        shares = _attributes([0, 1, 0, 1], [0.9, 0.1, 0.2, 0.8])
        named: dict[str, Any] = {"classlabels_strings": ["no", "yes"]}
        both = [[0.9, 0.1], [0.2, 0.8]]
        yield Example(opset, x, **shares, **named, outputs=2, expect=[["no", "yes"], both])
        three: dict[str, Any] = {"classlabels_int64s": [1, 2, 3], "base_values": [0.0, 0.5, 0.0]}
        scores = np.array([[0.9, 0.5, 0.1], [0.2, 0.5, 0.8]], f)
        votes = _attributes([0, 2, 0, 2], [0.9, 0.1, 0.2, 0.8])
        yield Example(opset, x, **votes, **three, outputs=2, expect=[[1, 3], scores])
        powers = np.exp(scores)
        yield Example(
            opset,
            x,
            **votes,
            **three,
            outputs=2,
            post_transform="SOFTMAX",
            expect=[[1, 3], powers / powers.sum(1, keepdims=True)],
        )
        yield Example(opset, x[1], **votes, **three, outputs=2, expect=[[3], scores[1:]])
        whole = [[0], [1]]
        yield Example(opset, whole, **votes, **three, outputs=2, expect=[[1, 3], scores])
        empty = [np.zeros(0, np.int64), np.zeros((0, 3), f)]
        yield Example(opset, x[:0], **votes, **three, outputs=2, expect=empty)
    held: dict[str, Any] = _attributes([0, 2, 0, 2], None, nodes_values=None) | {
        "class_weights_as_tensor": ArrayTensor([0.9, 0.1, 0.2, 0.8]),
        "nodes_values_as_tensor": ArrayTensor([-1e-300, 0, 0]),
    }
    doubles = np.array([[-2e-300], [0]])
    yield Example(
        3,
        doubles,
        **held,
        classlabels_int64s=[1, 2, 3],
        outputs=2,
        expect=[[1, 3], [[0.9, 0, 0.1], [0.2, 0, 0.8]]],
    )
