"""TreeEnsemble: the leaves of decision trees, aggregated by target."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Dim, Tensor, TensorType
from sabir.loops import Expression, NotLowered
from sabir.opsets.families.classification import classifier_kernels
from sabir.opsets.families.classification.classifier_kernels import known_size
from sabir.opsets.families.classification.classifiers import transformed
from sabir.opsets.families.trees import tree_attributes, tree_kernels, trees
from sabir.opsets.typing import Array
from sabir.schema import FLOATS, Attribute, Constraint, Example, Input, Operator, Output, one_of

tree_ensemble = Operator(
    "TreeEnsemble",
    domain="ai.onnx.ml",
    summary="For each row and target the sum, mean, minimum or maximum of the leaves that the row reaches.",
)

T = Constraint("T", FLOATS)
_AGGREGATES = "How leaves are aggregated: 0 mean of all trees, 1 sum, 2 minimum, 3 maximum."
_POST_TRANSFORMS = "0 none, 1 softmax, 2 logistic, 3 softmax of non-zeros, 4 probit."

v5 = tree_ensemble.first(
    5,
    inputs=[Input("X", T, "Features, shape [N, F].")],
    outputs=[Output("Y", T, "Shape [N, n_targets].")],
    attributes=[
        Attribute("aggregate_function", "int", _AGGREGATES, default=1, values=one_of(0, 1, 2, 3)),
        Attribute("post_transform", "int", _POST_TRANSFORMS, default=0, values=one_of(0, 1, 2, 3, 4)),
        Attribute("tree_roots", "ints", "The root node of each tree.", required=True),
        Attribute("nodes_hitrates", "tensor", "How often nodes are reached; ignored."),
        Attribute("nodes_missing_value_tracks_true", "ints", "1 where NaN takes the true branch of a node."),
        Attribute("nodes_modes", "tensor", "0 <=, 1 <, 2 >=, 3 >, 4 ==, 5 !=, 6 in a set.", required=True),
        Attribute("leaf_weights", "tensor", "What each leaf adds to the score.", required=True),
        Attribute("leaf_targetids", "ints", "The target of each leaf.", required=True),
        Attribute("nodes_falsenodeids", "ints", "The node or leaf after each false branch.", required=True),
        Attribute("n_targets", "int", "The number of targets; by default as many as the leaves name."),
        Attribute("nodes_trueleafs", "ints", "1 where the true branch ends in a leaf.", required=True),
        Attribute("nodes_featureids", "ints", "The feature that each node tests.", required=True),
        Attribute("nodes_splits", "tensor", "The value that each node compares with.", required=True),
        Attribute("nodes_falseleafs", "ints", "1 where the false branch ends in a leaf.", required=True),
        Attribute("nodes_truenodeids", "ints", "The node or leaf after each true branch.", required=True),
        Attribute("membership_values", "tensor", "The sets of the nodes with mode 6, NaN after each set."),
    ],
)

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # by the attribute's value


def _targets(n_targets: int | None, leaf_targetids: Sequence[int]) -> int:
    return n_targets if n_targets is not None else max(leaf_targetids, default=-1) + 1


@v5.infer
def infer(x: TensorType, /, *, aggregate_function: int, post_transform: int, **attributes: Any) -> TensorType:
    if x.shape is not None and len(x.shape) != len("NF"):
        raise InferenceError(f"features must have shape [N, F], not {x}")
    splits: Tensor = attributes["nodes_splits"]
    if x.element.number and x.element != splits.element:
        raise InferenceError(f"nodes_splits are {splits.element}, and the features {x.element}")
    rows, width = x.shape or (None, None)
    _, targets, _ = _forest(width, aggregate_function, attributes)
    return TensorType(x.element, (rows, targets))


@v5.evaluate
def evaluate(x: Array, /, *, aggregate_function: int, post_transform: int, **attributes: Any) -> Array:
    if x.ndim != len("NF"):
        raise ValueError(f"features must have shape [N, F], not {list(x.shape)}")
    forest, targets, how = _forest(x.shape[1], aggregate_function, attributes)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    scores = forest.scores(wide, targets, how)
    return transformed(scores, _TRANSFORMS[post_transform]).astype(x.dtype)


@v5.lower
def lower(x: Expression, /, *, aggregate_function: int, post_transform: int, **attributes: Any) -> Expression:
    if x.rank != len("NF") or not x.is_float:
        raise NotLowered("features are no matrix of floats")
    forest, targets, how = _forest(known_size(x.shape[1]), aggregate_function, attributes)
    scores = tree_kernels.scores(x, forest, targets, how)
    return classifier_kernels.transformed(scores, _TRANSFORMS[post_transform], x.element)


def _forest(width: Dim, aggregate: int, attributes: dict[str, Any]) -> tuple[trees.Forest, int, str]:
    """Return the forest, the number of targets and the aggregate; raises InferenceError if invalid."""
    forest = tree_attributes.of_nodes_and_leaves(tree_attributes.CallAttributes(attributes))
    targets = _targets(attributes["n_targets"], attributes["leaf_targetids"])
    forest.check(width, targets)
    return forest, targets, trees.AGGREGATES[aggregate]


def _attributes(kind: Any, **changes: Any) -> dict[str, Any]:
    """Return a tree of three nodes over two features, and four leaves for two targets."""
    return {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_featureids": [0, 1, 0],
        "nodes_splits": ArrayTensor(np.array([3, 1, 4], kind)),
        "nodes_modes": ArrayTensor(np.zeros(3, np.uint8)),
        "nodes_truenodeids": [1, 0, 1],
        "nodes_trueleafs": [0, 1, 1],
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [0, 1, 1],
        "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": ArrayTensor(np.array([5, 12, -12, 7], kind)),
        **changes,
    }


@tree_ensemble.examples
def examples() -> Iterator[Example]:
    # rows go to the leaves 0, 2, 1, 3 of the plain tree: by hand
    x = np.array([[3, 1], [3, 1.5], [4, 0], [np.nan, 0]])
    sums = np.array([[5.0, 0], [-12, 0], [0, 12], [0, 7]])
    for kind in (np.float16, np.float32, np.float64):
        yield Example(5, x.astype(kind), **_attributes(kind), expect=[sums.astype(kind)])
    missing: dict[str, Any] = {"nodes_missing_value_tracks_true": [0, 0, 1]}
    yield Example(5, x, **_attributes(float, **missing), expect=[[[5.0, 0], [-12, 0], [0, 12], [0, 12]]])
    two: dict[str, Any] = {"tree_roots": [0, 1]}  # the second tree has the leaves 0 and 2 alone
    second = [[5.0, 0], [-12, 0], [5, 0], [5, 0]]
    yield Example(5, x, **_attributes(float, **two), expect=[sums + second])
    yield Example(5, x, **_attributes(float, **two), aggregate_function=0, expect=[(sums + second) / 2])
    least, most = [[5, 0], [-12, 0], [5, 12], [5, 7]], [[5, 0], [-12, 0], [5, 12], [5, 7]]
    yield Example(5, x, **_attributes(float, **two), aggregate_function=2, expect=[least])
    yield Example(5, x, **_attributes(float, **two), aggregate_function=3, expect=[most])
    logistic = 1 / (1 + np.exp(-sums))
    yield Example(5, x, **_attributes(float), post_transform=2, expect=[logistic])
    softmax = np.exp(sums) / np.exp(sums).sum(1, keepdims=True)
    yield Example(5, x, **_attributes(float), post_transform=1, expect=[softmax])
    alone = [[1, 0], [1, 0], [0, 1], [0, 1]]  # the other target is 0
    yield Example(5, x, **_attributes(float), post_transform=3, expect=[alone])
    yield Example(5, x[:0], **_attributes(float, n_targets=None), expect=[sums[:0]])
    yield from _of_modes()


def _of_modes() -> Iterator[Example]:
    f = np.float32
    x = [[1], [2], [3], [np.nan]]
    leaf: dict[str, Any] = {
        "nodes_featureids": [0],
        "nodes_splits": ArrayTensor(np.array([2], f)),
        "tree_roots": [0],
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        "leaf_weights": ArrayTensor(np.array([1, -1], f)),
    }
    truths = ([1, 1, -1], [1, -1, -1], [-1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, 1])
    for mode, truth in enumerate(truths):
        expect = [np.array([[*truth, -1]], f).T]  # NaN takes the false branch
        yield Example(5, x, nodes_modes=ArrayTensor(np.array([mode], np.uint8)), **leaf, expect=expect)
    # the standard's test of sets, with two of them after a comparison
    sets: dict[str, Any] = _attributes(f, n_targets=4, leaf_targetids=[0, 1, 2, 3]) | {
        "nodes_featureids": [0, 0, 0],
        "nodes_modes": ArrayTensor(np.array([0, 6, 6], np.uint8)),
        "nodes_splits": ArrayTensor(np.array([11, 232344, np.nan], f)),
        "leaf_weights": ArrayTensor(np.array([1, 10, 1000, 100], f)),
        "membership_values": ArrayTensor(np.array([1.2, 3.7, 8, 9, np.nan, 12, 7, np.nan], f)),
        "nodes_falsenodeids": [2, 2, 3],
        "nodes_falseleafs": [1, 0, 1],
    }
    reached = [[1, 0, 0, 0], [0, 0, 0, 100], [0, 0, 1000, 0], [0, 10, 0, 0]]
    yield Example(5, [[1.2], [3.4], [np.nan], [7]], **sets, expect=[reached])
