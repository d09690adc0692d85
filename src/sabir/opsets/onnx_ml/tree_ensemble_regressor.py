"""TreeEnsembleRegressor: the leaves of decision trees, aggregated by target."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Builder, Dim, TensorType, Value
from sabir.loops import Expression
from sabir.opsets.families.classification import classifier_kernels, classifiers
from sabir.opsets.families.classification.classifier_kernels import known_size
from sabir.opsets.families.trees import tree_attributes, tree_conversion, tree_kernels, trees
from sabir.opsets.typing import Array, Ints
from sabir.schema import Attribute, Constraint, Example, Operator, Output, one_of

tree_ensemble_regressor = Operator(
    "TreeEnsembleRegressor",
    domain="ai.onnx.ml",
    summary="For each row and target the sum, mean, minimum or maximum of the leaves that the row reaches.",
)

T = Constraint("T", classifiers.FEATURE_TYPES)
_AGGREGATES = one_of(*trees.AGGREGATES)

v1 = tree_ensemble_regressor.first(
    1,
    inputs=[classifiers.features_port(T)],
    outputs=[Output("Y", "tensor(float)", "Shape [N, n_targets].")],
    attributes=[
        Attribute("aggregate_function", "string", "Of the leaves.", default="SUM", values=_AGGREGATES),
        classifiers.POST_TRANSFORM,
        *tree_attributes.NODES,
        Attribute("n_targets", "int", "The number of targets; by default as many as the votes name."),
        Attribute("base_values", "floats", "Added to each target after the aggregation."),
        Attribute("target_treeids", "ints", "The tree of each vote's leaf."),
        Attribute("target_nodeids", "ints", "The leaf of each vote."),
        Attribute("target_ids", "ints", "The target of each vote."),
        Attribute("target_weights", "floats", "The weight of each vote."),
    ],
)
v3 = v1.extend(
    3,
    "Numbers may also be passed as tensors, float64 included.",
    attributes=tree_attributes.tensor_forms("base_values", "target_weights"),
)
v5 = v3.retire(5, "Deprecated: TreeEnsemble takes its place.")


def _targets(n_targets: int | None, target_ids: Ints) -> int:
    return n_targets if n_targets is not None else max(target_ids or (), default=-1) + 1


@v1.infer
def infer(x: TensorType, /, *, aggregate_function: str, post_transform: str, **attributes: Any) -> TensorType:
    shape = classifiers.batch(x), _targets(attributes["n_targets"], attributes["target_ids"])
    _forest(classifiers.feature_count(x), aggregate_function, attributes)
    return TensorType(classifiers.FLOAT, shape)


@v1.evaluate
def evaluate(x: Array, /, *, aggregate_function: str, post_transform: str, **attributes: Any) -> Array:
    rows = classifiers.rows(x)
    forest, targets, base = _forest(rows.shape[1], aggregate_function, attributes)
    scores = forest.scores(rows, targets, aggregate_function)
    if base.size:
        scores += base
    return classifiers.transformed(scores, post_transform).astype(np.float32)


@v1.lower
def lower(x: Expression, /, *, aggregate_function: str, post_transform: str, **attributes: Any) -> Expression:
    rows = classifier_kernels.rows(x)
    forest, targets, base = _forest(known_size(rows.shape[1]), aggregate_function, attributes)
    scores = tree_kernels.scores(rows, forest, targets, aggregate_function)
    return classifier_kernels.transformed(classifier_kernels.shifted(scores, base), post_transform)


def _forest(width: Dim, how: str, attributes: dict[str, Any]) -> tuple[trees.Forest, int, Array]:
    """Return the forest, the number of targets and the base values; raises InferenceError if invalid."""
    forest = tree_attributes.of_lists(tree_attributes.CallAttributes(attributes), "target")
    targets = _targets(attributes["n_targets"], attributes["target_ids"])
    forest.check(width, targets)
    base = tree_attributes.floats(attributes, "base_values")
    if base.size not in {0, targets}:
        raise InferenceError(f"there are {base.size} base values for {targets} targets")
    return forest, targets, base


# ---------------------------------------------------------------- adapters


@v5.upgrade
def trees_become_nodes_and_leaves(
    b: Builder, x: Value, /, *, aggregate_function: str, post_transform: str, **attributes: Any
) -> Value:
    forest = tree_attributes.of_lists(tree_attributes.CallAttributes(attributes), "target")
    targets = _targets(attributes["n_targets"], attributes["target_ids"])
    outputs = tree_conversion.Outputs(
        aggregate_function, targets, tree_attributes.floats(attributes, "base_values")
    )
    return tree_conversion.ensemble(b, tree_conversion.rows_of(b, x, forest), forest, outputs, post_transform)


@v5.downgrade
def same_call(b: Builder, x: Value, /, **attributes: Any) -> Value:
    return b.op("TreeEnsembleRegressor", x, domain="ai.onnx.ml", **attributes)


def _attributes(**changes: Any) -> dict[str, Any]:
    """Return two trees over two features: one of five nodes, and one of a single leaf."""
    return {
        "n_targets": 2,
        "nodes_treeids": [0, 0, 0, 0, 0, 7],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0],
        "nodes_featureids": [0, 1, 0, 0, 0, 0],
        "nodes_values": [3.0, 1, 0, 0, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", "LEAF", "LEAF", "LEAF"],
        "nodes_truenodeids": [1, 3, 0, 0, 0, 0],
        "nodes_falsenodeids": [2, 4, 0, 0, 0, 0],
        "target_treeids": [0, 0, 0, 0, 7],
        "target_nodeids": [2, 3, 4, 4, 0],
        "target_ids": [0, 1, 0, 1, 0],
        "target_weights": [10.0, 20, 30, 40, 1],
        **changes,
    }


@tree_ensemble_regressor.examples
def examples() -> Iterator[Example]:
    f = np.float32
    x = np.array([[4, 0], [3, 0], [3, 1], [np.nan, 5]], f)  # to the leaves 2, 3, 4, 2: by hand
    sums = np.array([[11, 0], [1, 20], [31, 40], [11, 0]], f)
    for opset in (1, 3, 5):
        yield Example(opset, x, **_attributes(), expect=[sums])
        yield Example(opset, x, **_attributes(), aggregate_function="AVERAGE", expect=[sums / 2])
        based = _attributes(base_values=[100.0, -1.0])
        yield Example(opset, x, **based, expect=[sums + np.array([100, -1], f)])
        least = [[1, 0], [1, 20], [1, 40], [1, 0]]
        yield Example(opset, x, **_attributes(), aggregate_function="MIN", expect=[least])
        most = [[10, 0], [1, 20], [30, 40], [10, 0]]
        yield Example(opset, x, **_attributes(), aggregate_function="MAX", expect=[most])
        missing = _attributes(nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 0])
        yield Example(opset, x, **missing, expect=[np.array([*sums[:3], [31, 40]], f)])
        yield Example(opset, x[:3].astype(np.int64), **_attributes(), expect=[sums[:3]])
        yield Example(opset, x[2], **_attributes(n_targets=None), expect=[sums[2:3]])
        yield Example(opset, x[:0], **_attributes(), expect=[sums[:0]])
        ratio = 1 / (1 + np.exp(9 - sums))
        small = _attributes(base_values=[-9.0, -9.0], post_transform="LOGISTIC")
        yield Example(opset, x, **small, expect=[ratio.astype(f)])
    close = np.nextafter(3, 4)  # equal to 3 in float32, but not in float64
    fine = _attributes(
        nodes_values=None, nodes_values_as_tensor=ArrayTensor(np.array([close, 1, 0, 0, 0, 0]))
    )
    yield Example(3, np.array([[close, 0], [np.nextafter(close, 4), 0]]), **fine, expect=[sums[[1, 0]]])
    weights = ArrayTensor(np.array([10.0, 20, 30, 40, 1]))
    by_tensors = _attributes(target_weights=None, target_weights_as_tensor=weights)
    yield Example(
        3,
        x,
        **by_tensors,
        base_values_as_tensor=ArrayTensor(np.array([0.5, 0.25])),
        expect=[sums + np.array([0.5, 0.25], f)],
    )
