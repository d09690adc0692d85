"""TreeEnsembleRegressor: what the leaves of decision trees say together, by target."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sabir.base import InferenceError
from sabir.ir import ArrayTensor, Builder, Dim, TensorType, Value
from sabir.opsets.families import classifiers, tree_attributes, tree_conversion, trees
from sabir.opsets.typing import Array
from sabir.schema import Attribute, Constraint, Example, Input, Operator, Output, one_of, tensors

tree_ensemble_regressor = Operator(
    "TreeEnsembleRegressor",
    domain="ai.onnx.ml",
    summary="For each row and target the sum, mean, least or greatest of the leaves that the row reaches.",
)

T = Constraint("T", tensors("double", "float", "int32", "int64"))

v1 = tree_ensemble_regressor.first(
    1,
    inputs=[Input("X", T, "Features [N, F], or one row [F].")],
    outputs=[Output("Y", "tensor(float)", "Shape [N, n_targets].")],
    attributes=[
        Attribute(
            "aggregate_function",
            "string",
            "How leaves are joined: SUM, AVERAGE, MIN or MAX.",
            default="SUM",
            values=one_of(*trees.AGGREGATES),
        ),
        classifiers.POST_TRANSFORM,
        Attribute("n_targets", "int", "The number of targets; by default as many as the leaves name."),
        Attribute("nodes_nodeids", "ints", "Each node's number in its tree."),
        Attribute("target_nodeids", "ints", "For each vote the leaf that casts it."),
        Attribute("nodes_treeids", "ints", "Each node's tree."),
        Attribute("nodes_featureids", "ints", "The feature that each node asks for."),
        Attribute("nodes_values", "floats", "What each node compares with."),
        Attribute("target_weights", "floats", "Each vote's weight."),
        Attribute("nodes_falsenodeids", "ints", "The node behind each false branch."),
        Attribute("nodes_hitrates", "floats", "How often nodes are met; of no effect."),
        Attribute("base_values", "floats", "What is added to each target after joining."),
        Attribute("nodes_missing_value_tracks_true", "ints", "1 where NaN takes the true branch of a node."),
        Attribute(
            "nodes_modes",
            "strings",
            "What each node asks: <=, <, >=, >, ==, != or nothing.",
            values=trees.NAMED_MODES,
        ),
        Attribute("nodes_truenodeids", "ints", "The node behind each true branch."),
        Attribute("target_treeids", "ints", "For each vote the tree of its leaf."),
        Attribute("target_ids", "ints", "For each vote its target."),
    ],
)
v3 = v1.extend(
    3,
    "Numbers may be given as tensors, of float64 too.",
    attributes=[
        Attribute("base_values_as_tensor", "tensor", "In place of `base_values`."),
        Attribute("target_weights_as_tensor", "tensor", "In place of `target_weights`."),
        Attribute("nodes_values_as_tensor", "tensor", "In place of `nodes_values`."),
        Attribute("nodes_hitrates_as_tensor", "tensor", "In place of `nodes_hitrates`."),
    ],
)
v5 = v3.retire(5, "Deprecated: TreeEnsemble takes its place.")


def _targets(n_targets: int | None, target_ids: Sequence[int] | None) -> int:
    return n_targets if n_targets is not None else max(target_ids or (), default=-1) + 1


@v1.infer
def infer(x: TensorType, /, *, aggregate_function: str, post_transform: str, **attributes: Any) -> TensorType:
    shape = classifiers.batch(x), _targets(attributes["n_targets"], attributes["target_ids"])
    _forest(classifiers.width(x), aggregate_function, attributes)
    return TensorType(classifiers.FLOAT, shape)


@v1.evaluate
def evaluate(x: Array, /, *, aggregate_function: str, post_transform: str, **attributes: Any) -> Array:
    rows = classifiers.rows(x)
    forest, targets, base = _forest(rows.shape[1], aggregate_function, attributes)
    scores = forest.scores(rows, targets, aggregate_function)
    if base.size:
        scores += base
    return classifiers.transformed(scores, post_transform).astype(np.float32)


def _forest(width: Dim, how: str, attributes: dict[str, Any]) -> tuple[trees.Forest, int, Array]:
    """Return the forest, the number of targets and what is added; raises InferenceError for no sound one."""
    forest = tree_attributes.of_lists(tree_attributes.Given(attributes), "target")
    targets = _targets(attributes["n_targets"], attributes["target_ids"])
    forest.check(width, targets)
    base = tree_attributes.floats(attributes, "base_values")
    if base.size not in {0, targets}:
        raise InferenceError(f"{base.size} base values are given for {targets} targets")
    return forest, targets, base


# ---------------------------------------------------------------- adapters


@v5.upgrade
def trees_become_nodes_and_leaves(
    b: Builder, x: Value, /, *, aggregate_function: str, post_transform: str, **attributes: Any
) -> Value:
    forest = tree_attributes.of_lists(tree_attributes.Given(attributes), "target")
    targets = _targets(attributes["n_targets"], attributes["target_ids"])
    said = tree_conversion.Said(
        aggregate_function, targets, tree_attributes.floats(attributes, "base_values")
    )
    return tree_conversion.ensemble(b, tree_conversion.rows_of(b, x, forest), forest, said, post_transform)


@v5.downgrade
def the_same_by_the_older_version(b: Builder, x: Value, /, **attributes: Any) -> Value:
    return b.op("TreeEnsembleRegressor", x, domain="ai.onnx.ml", **attributes)


def _attributes(**changes: Any) -> dict[str, Any]:
    """Return two trees over two features: one of five nodes, and one that is a mere leaf."""
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
    close = np.nextafter(3, 4)  # float64 tells it from 3, float32 does not
    fine = _attributes(nodes_values=None, nodes_values_as_tensor=ArrayTensor([close, 1, 0, 0, 0, 0]))
    yield Example(3, np.array([[close, 0], [np.nextafter(close, 4), 0]]), **fine, expect=[sums[[1, 0]]])
    weights = ArrayTensor([10.0, 20, 30, 40, 1])
    held = _attributes(target_weights=None, target_weights_as_tensor=weights)
    yield Example(
        3, x, **held, base_values_as_tensor=ArrayTensor([0.5, 0.25]), expect=[sums + np.array([0.5, 0.25], f)]
    )
