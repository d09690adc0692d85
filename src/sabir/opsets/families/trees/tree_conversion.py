"""The upgrade of the older tree operators: their forests as nodes of TreeEnsemble."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.elements import element
from sabir.ir import ArrayTensor, TensorType, Value
from sabir.opsets.families.trees import trees
from sabir.opsets.families.trees.trees import AGGREGATES, Forest
from sabir.schema import Unconvertible

if TYPE_CHECKING:
    from sabir.ir import Builder
    from sabir.opsets.typing import Array

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")  # by TreeEnsemble's number
FLOAT, DOUBLE = element("float"), element("double")


class Outputs(NamedTuple):
    """The outputs of a forest: the aggregate of its leaves, the number of targets, the base values to add."""

    aggregate: str
    targets: int
    base: Array


class Rows(NamedTuple):
    """Features as TreeEnsemble takes them, and their dtype."""

    value: Value
    kind: type[Any]


def rows_of(b: Builder, x: Value, forest: Forest) -> Rows:
    """Return the features as rows of floats, of a type that distinguishes all thresholds."""
    kind = x.type
    if not isinstance(kind, TensorType) or kind.shape is None or not kind.element.number:
        raise Unconvertible(
            "the features' rank or type is unknown, and TreeEnsemble takes rows of floats alone"
        )
    if len(kind.shape) == 1:
        x = b.Reshape(x, b.initializer("row", np.array([1, -1], np.int64)))
    if kind.element == FLOAT and forest.nodes.threshold.dtype == np.float32:
        return Rows(x, np.float32)
    return Rows(x if kind.element == DOUBLE else b.Cast(x, to=DOUBLE.number), np.float64)


def ensemble(b: Builder, rows: Rows, forest: Forest, outputs: Outputs, transform: str = "NONE") -> Value:
    """Return the scores of each row as float32, the type of the older operators' outputs."""
    weights, how = _weights(forest, outputs)
    lists = _Lists(forest, weights)
    for target, value in enumerate(outputs.base):
        lists.add_leaf_tree(target, float(value))
    scores = b.op(
        "TreeEnsemble",
        rows.value,
        domain="ai.onnx.ml",
        n_targets=outputs.targets,
        aggregate_function=AGGREGATES.index(how),
        post_transform=TRANSFORMS.index(transform),
        **lists.attributes(rows.kind),
    )
    return scores if rows.kind is np.float32 else b.Cast(scores, to=FLOAT.number)


def _weights(forest: Forest, outputs: Outputs) -> tuple[Array, str]:
    """Return the votes' weights and the aggregate that joins them with copies of trees and base values."""
    counts = np.diff(forest.first_vote)[forest.nodes.mode == trees.LEAF]
    several = bool(outputs.base.size) or bool(np.any(counts != 1))
    if outputs.aggregate in {"MIN", "MAX"} and (
        outputs.base.size or np.any(counts != max(counts, default=1))
    ):
        raise Unconvertible("TreeEnsemble adds no base value to a minimum or maximum; a leaf has one vote")
    if outputs.aggregate == "AVERAGE" and several:
        return forest.votes.weight / max(1, len(forest.roots)), "SUM"
    return forest.votes.weight, outputs.aggregate


class _Lists:
    """The attributes of TreeEnsemble under construction: inner nodes, leaves, roots."""

    def __init__(self, forest: Forest, weights: Array) -> None:
        nodes, inner = forest.nodes, forest.nodes.mode != trees.LEAF
        leaf_places = np.flatnonzero(~inner)
        first, counts = forest.first_vote[leaf_places], np.diff(forest.first_vote)[leaf_places]
        number = np.where(inner, np.cumsum(inner), np.cumsum(~inner)) - 1
        self.columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self.leaves: list[tuple[int, float]] = []
        self.roots: list[int] = []
        copies = int(max(counts, default=1)) or 1  # a leaf with several votes becomes a leaf of several trees
        for copy in range(copies):
            start, end = len(self.columns["split"]), len(self.leaves)
            for side, to in (("true", nodes.if_true[inner]), ("false", nodes.if_false[inner])):
                self.columns[side] += (number[to] + np.where(inner[to], start, end)).tolist()
                self.columns[f"{side}_leaf"] += (~inner[to]).astype(np.int64).tolist()
            for name, column in (
                ("feature", nodes.feature),
                ("split", nodes.threshold),
                ("mode", nodes.mode),
                ("missing", nodes.missing_is_true.astype(np.int64)),
            ):
                self.columns[name] += column[inner].tolist()
            for vote, count in zip(first.tolist(), counts.tolist(), strict=True):
                at = vote + copy
                leaf = (int(forest.votes.target[at]), float(weights[at])) if copy < count else (0, 0.0)
                self.leaves.append(leaf)
            for root in forest.roots.tolist():
                if inner[root]:
                    self.roots.append(int(number[root]) + start)
                else:
                    self._add_node(int(number[root]) + end)

    def add_leaf_tree(self, target: int, weight: float) -> None:
        """Add a tree that adds the same weight to every row."""
        self.leaves.append((target, weight))
        self._add_node(len(self.leaves) - 1)

    def _add_node(self, leaf: int) -> None:
        self.roots.append(len(self.columns["split"]))
        for name, value in _COLUMNS.items():
            self.columns[name].append(leaf if value is None else value)

    def attributes(self, kind: type[Any]) -> dict[str, Any]:
        """Return TreeEnsemble's attributes."""
        c = self.columns
        return {
            "tree_roots": self.roots,
            "nodes_featureids": c["feature"],
            "nodes_splits": ArrayTensor(np.array(c["split"], kind)),
            "nodes_modes": ArrayTensor(np.array(c["mode"], np.uint8)),
            "nodes_truenodeids": c["true"],
            "nodes_trueleafs": c["true_leaf"],
            "nodes_falsenodeids": c["false"],
            "nodes_falseleafs": c["false_leaf"],
            "nodes_missing_value_tracks_true": c["missing"],
            "leaf_targetids": [target for target, _ in self.leaves],
            "leaf_weights": ArrayTensor(np.array([weight for _, weight in self.leaves], kind)),
        }


# the columns of an inner node, with their values for a node whose branches both end in one leaf (None)
_COLUMNS: dict[str, Any] = {
    "feature": 0,
    "split": 0.0,
    "mode": 0,
    "missing": 0,
    "true": None,
    "true_leaf": 1,
    "false": None,
    "false_leaf": 1,
}
