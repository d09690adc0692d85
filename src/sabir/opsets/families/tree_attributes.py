"""Forests from the attributes of the tree operators: lists of nodes, of leaves and of votes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from sabir.base import InferenceError
from sabir.opsets.families.trees import LEAF, MEMBER, MODES, Forest, Nodes, Sets, Votes, starts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sabir.ir import Tensor
    from sabir.opsets.typing import Array

_KEPT = 8  # forests remembered; making one takes far longer than sending a row down


class Given:
    """A call's attributes, equal to another's where they are the same objects."""

    __slots__ = ("_identity", "by_name")

    def __init__(self, by_name: Mapping[str, Any]) -> None:
        self.by_name = by_name
        self._identity = (tuple(by_name), tuple(map(id, by_name.values())))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Given) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)


@lru_cache(_KEPT)
def of_lists(given: Given, votes: str) -> Forest:
    """Return the forest of an operator older than TreeEnsemble; `votes` begins the names of its votes."""
    a = given.by_name
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
    said = Votes(
        where.find(_ints(a, f"{votes}_treeids"), _ints(a, f"{votes}_nodeids"), f"{votes}_nodeids"),
        _ints(a, f"{votes}_ids"),
        floats(a, f"{votes}_weights").astype(np.float64),
    )
    _same_length(**{
        f"{votes}_nodeids": said.node,
        f"{votes}_ids": said.target,
        f"{votes}_weights": said.weight,
    })
    nodes = Nodes(np.where(mode == LEAF, 0, feature), threshold, mode, children[0], children[1], missing)
    return Forest(nodes, _roots(trees, children, mode), said)


@lru_cache(_KEPT)
def of_nodes_and_leaves(given: Given) -> Forest:
    """Return the forest of TreeEnsemble; its leaves become nodes behind the inner ones."""
    a = given.by_name
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
    """Return numbers that a list holds, or since version 3 a tensor."""
    listed, held = attributes[name], attributes.get(f"{name}_as_tensor")
    if listed and held is not None and held.size:
        raise InferenceError(f"`{name}` is given both as a list and as a tensor")
    return np.array(listed or (), np.float32) if held is None or not held.size else _array(held)


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
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InferenceError(f"lists that belong together differ in length: {told}")


def _sets(attributes: Mapping[str, Any], mode: Array) -> Sets | None:
    """Return the members of each node's set: NaN ends one, and they come in the order of the nodes."""
    asking = np.flatnonzero(mode == MEMBER)
    given = attributes["membership_values"]
    values = np.zeros(0, np.float32) if given is None else _array(given)
    ends = np.isnan(values)
    belongs = np.cumsum(ends) - ends  # the number of sets that have ended before
    if len(values) and not ends[-1]:
        ends = np.append(ends, True)
    if np.count_nonzero(ends) != len(asking):
        raise InferenceError(f"membership_values has {np.count_nonzero(ends)} sets for {len(asking)} nodes")
    if not len(asking):
        return None
    real = ~np.isnan(values)
    node, members = asking[belongs[real]], values[real]
    order = np.lexsort((members, node))
    return Sets(starts_of(node[order], len(mode)), members[order])


def _roots(trees: Array, children: Sequence[Array], mode: Array) -> Array:
    """Return for each tree the node to which none leads, the first listed where that does not decide."""
    inner, led_to = mode != LEAF, np.zeros(len(trees), np.bool_)
    for child in children:
        led_to[child[inner]] = True
    order = np.lexsort((led_to, trees))
    _, first = np.unique(trees[order], return_index=True)
    return order[first]


class _Directory:
    """Finds the place of a node by its tree's number and its own."""

    def __init__(self, trees: Array, nodes: Array) -> None:
        self.trees, tree = np.unique(trees, return_inverse=True)
        self.nodes, node = np.unique(nodes, return_inverse=True)
        code = tree * len(self.nodes) + node
        self.order = np.argsort(code, kind="stable")
        self.codes = code[self.order]
        twice = np.flatnonzero(self.codes[1:] == self.codes[:-1])
        if len(twice):
            at = self.order[twice[0]]
            raise InferenceError(f"node {nodes[at]} of tree {trees[at]} is given twice")

    def find(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the places; raises InferenceError for a node that there is not."""
        _same_length(nodes_treeids=trees, **{what: nodes})
        if not len(trees):
            return np.zeros(0, np.int64)
        if not len(self.codes):
            raise InferenceError(f"`{what}` names nodes, and there are none")
        tree, node = np.searchsorted(self.trees, trees), np.searchsorted(self.nodes, nodes)
        tree, node = tree.clip(max=len(self.trees) - 1), node.clip(max=len(self.nodes) - 1)
        code = tree * len(self.nodes) + node
        at = np.searchsorted(self.codes, code).clip(max=len(self.codes) - 1)
        wrong = (self.trees[tree] != trees) | (self.nodes[node] != nodes) | (self.codes[at] != code)
        if np.any(wrong):
            first = np.flatnonzero(wrong)[0]
            raise InferenceError(
                f"`{what}` names node {nodes[first]} of tree {trees[first]}, and there is none"
            )
        return self.order[at]
