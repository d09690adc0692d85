"""Forests from the attributes of the tree operators: lists of nodes, of leaves and of votes.

The operators older than TreeEnsemble declare their nodes by the same attributes, which are here too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.trees.trees import (
    LEAF,
    MEMBER,
    MODES,
    NAMED_MODES,
    Forest,
    Nodes,
    Sets,
    Votes,
    starts_of,
)
from sabir.schema import Attribute

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Tensor
    from sabir.opsets.typing import Array

_CACHED = 8  # forests; building one takes far longer than evaluating it on a row

# of TreeEnsembleClassifier and TreeEnsembleRegressor
NODES = (
    Attribute("nodes_nodeids", "ints", "Each node's number in its tree."),
    Attribute("nodes_treeids", "ints", "Each node's tree."),
    Attribute("nodes_featureids", "ints", "The feature that each node tests."),
    Attribute("nodes_values", "floats", "The value that each node compares with."),
    Attribute("nodes_hitrates", "floats", "How often nodes are reached; ignored."),
    Attribute("nodes_truenodeids", "ints", "The node that follows each true branch."),
    Attribute("nodes_falsenodeids", "ints", "The node that follows each false branch."),
    Attribute("nodes_missing_value_tracks_true", "ints", "1 where NaN takes the true branch of a node."),
    Attribute("nodes_modes", "strings", "Each node's test, or LEAF for a leaf.", values=NAMED_MODES),
)


def tensor_forms(*names: str) -> list[Attribute]:
    """Return the attributes that pass the numbers of `names`, and those of the nodes, as tensors."""
    numbers = (*names, "nodes_values", "nodes_hitrates")
    return [Attribute(f"{name}_as_tensor", "tensor", f"In place of `{name}`.") for name in numbers]


class CallAttributes:
    """A call's attributes as a cache key; two are equal if their values are the same objects."""

    __slots__ = ("_identity", "by_name")

    def __init__(self, by_name: Mapping[str, Any]) -> None:
        self.by_name = by_name
        self._identity = (tuple(by_name), tuple(map(id, by_name.values())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallAttributes) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@lru_cache(_CACHED)
def of_lists(call: CallAttributes, votes: str) -> Forest:
    """Return the forest of an operator older than TreeEnsemble; `votes` is the prefix of the votes' lists."""
    a = call.by_name
    trees, ids = _ints(a, "nodes_treeids"), _ints(a, "nodes_nodeids")
    mode = _modes(a["nodes_modes"] or ())
    threshold = floats(a, "nodes_values")
    feature = _ints(a, "nodes_featureids")
    _same_length(nodes_treeids=trees, nodes_nodeids=ids, nodes_modes=mode, nodes_featureids=feature)
    _same_length(nodes_treeids=trees, nodes_values=threshold)
    where = _Directory(trees, ids)
    children: list[Array] = []
    for name in ("nodes_truenodeids", "nodes_falsenodeids"):
        to = _ints(a, name)
        _same_length(**{"nodes_treeids": trees, name: to})
        leads, child = mode != LEAF, np.arange(len(trees))
        child[leads] = where.find(trees[leads], to[leads], name)
        children.append(child)
    missing = _missing(a, len(trees))
    cast = Votes(
        where.find(_ints(a, f"{votes}_treeids"), _ints(a, f"{votes}_nodeids"), f"{votes}_nodeids"),
        _ints(a, f"{votes}_ids"),
        floats(a, f"{votes}_weights").astype(np.float64),
    )
    _same_length(**{
        f"{votes}_nodeids": cast.node,
        f"{votes}_ids": cast.target,
        f"{votes}_weights": cast.weight,
    })
    nodes = Nodes(np.where(mode == LEAF, 0, feature), threshold, mode, children[0], children[1], missing)
    return Forest(nodes, _roots(trees, children, mode), cast)


@lru_cache(_CACHED)
def of_nodes_and_leaves(call: CallAttributes) -> Forest:
    """Return the forest of TreeEnsemble; its leaves become nodes after the inner ones."""
    a = call.by_name
    threshold, mode = _array(a["nodes_splits"]), _array(a["nodes_modes"]).astype(np.int64)
    weight, target = _array(a["leaf_weights"]), _ints(a, "leaf_targetids")
    inner, leaves = len(threshold), len(weight)
    feature = _ints(a, "nodes_featureids")
    _same_length(nodes_splits=threshold, nodes_modes=mode, nodes_featureids=feature)
    _same_length(leaf_weights=weight, leaf_targetids=target)
    if np.any((mode < 0) | (mode > MEMBER)):
        raise InferenceError(f"nodes_modes must be 0 to {MEMBER}")
    roots = _ints(a, "tree_roots")
    _check_range("tree_roots", roots, inner)
    own = np.arange(inner, inner + leaves)
    children = [np.concatenate([_children(a, side, inner, leaves), own]) for side in ("true", "false")]
    nodes = Nodes(
        np.concatenate([feature, np.zeros(leaves, np.int64)]),
        np.concatenate([threshold, np.zeros(leaves, threshold.dtype)]),
        np.concatenate([mode, np.full(leaves, LEAF)]),
        children[0],
        children[1],
        np.concatenate([_missing(a, inner), np.zeros(leaves, np.bool_)]),
    )
    return Forest(nodes, roots, Votes(own, target, weight.astype(np.float64)), _sets(a, nodes.mode))


def floats(attributes: Mapping[str, Any], name: str) -> Array:
    """Return the numbers of an attribute: of a list, or of its tensor form."""
    listed, tensor = attributes[name], attributes.get(f"{name}_as_tensor")
    if listed and tensor is not None and tensor.size:
        raise InferenceError(f"`{name}` is set both as a list and as a tensor; keep one")
    return np.array(listed or (), np.float32) if tensor is None or not tensor.size else _array(tensor)


def _array(tensor: Tensor) -> Array:
    array = tensor.array().reshape(-1)
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _ints(attributes: Mapping[str, Any], name: str) -> Array:
    return np.array(attributes[name] or (), np.int64)


def _modes(names: Sequence[str]) -> Array:
    codes = {"LEAF": LEAF, **{name: code for code, name in enumerate(MODES)}}
    return np.array([codes[name] for name in names], np.int64)


def _missing(attributes: Mapping[str, Any], count: int) -> Array:
    flags = _ints(attributes, "nodes_missing_value_tracks_true") == 1
    if len(flags) not in {0, count}:
        raise InferenceError(f"nodes_missing_value_tracks_true has {len(flags)} entries for {count} nodes")
    return flags if len(flags) else np.zeros(count, np.bool_)


def _children(attributes: Mapping[str, Any], side: str, inner: int, leaves: int) -> Array:
    to, is_leaf = _ints(attributes, f"nodes_{side}nodeids"), _ints(attributes, f"nodes_{side}leafs") != 0
    if not len(to) == len(is_leaf) == inner:
        raise InferenceError(f"nodes_{side}nodeids and nodes_{side}leafs need {inner} entries each")
    _check_range(f"nodes_{side}nodeids", to[~is_leaf], inner)
    _check_range(f"nodes_{side}nodeids", to[is_leaf], leaves)
    return np.where(is_leaf, to + inner, to)


def _check_range(name: str, ids: Array, count: int) -> None:
    if np.any((ids < 0) | (ids >= count)):
        raise InferenceError(f"`{name}` names a place outside [0, {count - 1}]")


def _same_length(**lists: Array) -> None:
    lengths = {name: len(array) for name, array in lists.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InferenceError(f"lists of the same items differ in length: {listed}")


def _sets(attributes: Mapping[str, Any], mode: Array) -> Sets | None:
    """Return the members of each node's set; the sets are in the order of the nodes, NaN ends each."""
    testing = np.flatnonzero(mode == MEMBER)
    tensor = attributes["membership_values"]
    values = np.zeros(0, np.float32) if tensor is None else _array(tensor)
    ends = np.isnan(values)
    owner = np.cumsum(ends) - ends  # the number of sets that have ended before
    if len(values) and not ends[-1]:
        ends = np.append(ends, True)
    if np.count_nonzero(ends) != len(testing):
        raise InferenceError(f"membership_values has {np.count_nonzero(ends)} sets for {len(testing)} nodes")
    if not len(testing):
        return None
    real = ~np.isnan(values)
    node, members = testing[owner[real]], values[real]
    order = np.lexsort((members, node))
    return Sets(starts_of(node[order], len(mode)), members[order])


def _roots(trees: Array, children: Sequence[Array], mode: Array) -> Array:
    """Return the root of each tree: the node that is no child; of several, the first listed."""
    inner, is_child = mode != LEAF, np.zeros(len(trees), np.bool_)
    for child in children:
        is_child[child[inner]] = True
    order = np.lexsort((is_child, trees))
    _, first = np.unique(trees[order], return_index=True)
    return order[first]


class _Directory:
    """Finds the place of a node by the number of its tree and its own."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        self.trees, tree = np.unique(trees, return_inverse=True)
        self.nodes, node = np.unique(nodes, return_inverse=True)
        code = tree * len(self.nodes) + node
        self.order = np.argsort(code, kind="stable")
        self.codes = code[self.order]
        twice = np.flatnonzero(self.codes[1:] == self.codes[:-1])
        if len(twice):
            at = self.order[twice[0]]
            raise InferenceError(f"node {nodes[at]} of tree {trees[at]} is listed twice")

    def find(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the places; raises InferenceError for a node that does not exist."""
        _same_length(nodes_treeids=trees, **{what: nodes})
        if not len(trees):
            return np.zeros(0, np.int64)
        if not len(self.codes):
            raise InferenceError(f"`{what}` names nodes, and the model has none")
        tree, node = np.searchsorted(self.trees, trees), np.searchsorted(self.nodes, nodes)
        tree, node = tree.clip(max=len(self.trees) - 1), node.clip(max=len(self.nodes) - 1)
        code = tree * len(self.nodes) + node
        at = np.searchsorted(self.codes, code).clip(max=len(self.codes) - 1)
        wrong = (self.trees[tree] != trees) | (self.nodes[node] != nodes) | (self.codes[at] != code)
        if np.any(wrong):
            first = np.flatnonzero(wrong)[0]
            raise InferenceError(
                f"`{what}` names node {nodes[first]} of tree {trees[first]}, which does not exist"
            )
        return self.order[at]
