"""Ensembles of decision trees: all rows go down all trees together, one level at a time.

Nodes lie in arrays; a leaf is a node whose two children are itself, so that whoever has arrived stays. That
no path is endless is settled when the forest is made, and the depth with it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir.base import spend_work
from sabir.opsets.families.sizes import allotted
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sabir.ir import Tensor
    from sabir.opsets.typing import Array

_BLOCK = 1 << 16  # walkers at a time: few enough that the temporaries stay in the cache
_KEPT = 8  # forests remembered; making one takes far longer than sending a row down

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # a place is TreeEnsemble's number
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
NAMED_MODES = one_of(*MODES[:-1], "LEAF")  # of the older operators, which ask for no member of a set
LEAF, _MEMBER = len(MODES), MODES.index("BRANCH_MEMBER")
_COMPARISONS: tuple[Callable[..., Array], ...] = (
    np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal,
)  # fmt: skip


class Nodes(NamedTuple):
    """What the nodes ask: of which feature, against what, and where each answer leads."""

    feature: Array
    threshold: Array
    mode: Array
    if_true: Array
    if_false: Array
    missing_is_true: Array


class Votes(NamedTuple):
    """What is said at the leaves: at `node`, `weight` for `target`."""

    node: Array
    target: Array
    weight: Array


class Sets(NamedTuple):
    """For each node the sorted members of its set: `members[starts[node]:starts[node + 1]]`."""

    starts: Array
    members: Array


class Forest:
    """Trees ready to be walked; the children of node n lie at 2 n and, of the true answer, 2 n + 1."""

    __slots__ = (
        "children", "depth", "first_vote", "last_feature", "last_target", "modes", "nodes", "one_vote",
        "roots", "sets", "votes",
    )  # fmt: skip

    def __init__(self, nodes: Nodes, roots: Array, votes: Votes, sets: Sets | None = None) -> None:
        """Raise ValueError for an endless path, or a feature or target below 0."""
        inner = nodes.mode != LEAF
        if np.any(nodes.feature[inner] < 0) or np.any(votes.target < 0):
            raise ValueError("a node asks for a feature below 0, or a leaf votes for a target below 0")
        self.last_feature = int(np.max(nodes.feature[inner], initial=-1))
        self.last_target = int(np.max(votes.target, initial=-1))
        order = np.argsort(votes.node, kind="stable")
        self.nodes, self.roots, self.sets = nodes, roots, sets
        self.depth = _depth(nodes, inner, roots)
        self.children = np.stack([nodes.if_false, nodes.if_true], axis=1).ravel()
        self.modes = [int(mode) for mode in np.unique(nodes.mode[inner])]
        self.votes = Votes(*(part[order] for part in votes))
        self.first_vote = _starts(self.votes.node, len(inner))  # the next node's is where a node's votes end
        self.one_vote = bool(np.all(np.diff(self.first_vote)[~inner] == 1))

    def scores(self, x: Array, targets: int, how: str) -> Array:
        """Return what the leaves say of each row of `x` (N, F), as float64 (N, targets)."""
        self._check(x, targets)
        result = np.zeros(allotted((len(x), targets), np.dtype(np.float64), x.size), np.float64)
        spend_work(8 * len(x) * len(self.roots) * self.depth)
        step = max(1, _BLOCK // max(1, len(self.roots)))
        for start in range(0, len(x), step):
            block = x[start : start + step]
            result[start : start + step] = self._counted(self._leaves(block), len(block), targets, how)
        if how == "AVERAGE":
            result /= max(1, len(self.roots))
        return result

    def _check(self, x: Array, targets: int) -> None:
        if self.last_feature >= x.shape[1]:
            raise ValueError(f"a node asks for feature {self.last_feature}, and rows have {x.shape[1]}")
        if self.last_target >= targets:
            raise ValueError(f"a leaf votes for target {self.last_target}, and there are {targets}")

    def _leaves(self, x: Array) -> Array:
        """Return the leaf at which each row arrives in each tree, tree by tree."""
        arrived = np.repeat(self.roots, len(x))
        row = np.tile(np.arange(len(x)) * x.shape[1], len(self.roots))
        flat, lossy = x.ravel(), bool(np.any(np.isnan(x)))
        walker, node = np.arange(len(arrived)), arrived
        for _ in range(self.depth):
            value = flat.take(row + self.nodes.feature.take(node))
            node = self.children.take(2 * node + self._answers(node, value, lossy=lossy))
            walking = self.nodes.mode.take(node) != LEAF
            if 2 * np.count_nonzero(walking) < len(node):  # most have arrived: go on without them
                arrived[walker] = node
                walker, node, row = walker[walking], node[walking], row[walking]
                if not len(node):
                    break
        arrived[walker] = node
        return arrived

    def _answers(self, node: Array, value: Array, *, lossy: bool) -> Array:
        if len(self.modes) == 1:
            answer = self._compared(self.modes[0], node, value)
        else:
            answer, mode = np.zeros(len(node), np.bool_), self.nodes.mode.take(node)
            for each in self.modes:
                at = np.flatnonzero(mode == each)
                answer[at] = self._compared(each, node[at], value[at])
        return np.where(np.isnan(value), self.nodes.missing_is_true.take(node), answer) if lossy else answer

    def _compared(self, mode: int, node: Array, value: Array) -> Array:
        if mode != _MEMBER:
            return _COMPARISONS[mode](value, self.nodes.threshold.take(node))
        return np.zeros(len(node), np.bool_) if self.sets is None else _among(self.sets, node, value)

    def _counted(self, leaves: Array, count: int, targets: int, how: str) -> Array:
        row, place = np.tile(np.arange(count), len(self.roots)), self.first_vote.take(leaves)
        if not self.one_vote:
            lengths = self.first_vote.take(leaves + 1) - place
            row, place = np.repeat(row, lengths), _spans(place, lengths)
        cell, weight = row * targets + self.votes.target.take(place), self.votes.weight.take(place)
        size = count * targets
        if how in {"SUM", "AVERAGE"}:
            return np.bincount(cell, weight, size).reshape(count, targets)
        best: Array = np.full(size, np.inf if how == "MIN" else -np.inf)
        (np.minimum if how == "MIN" else np.maximum).at(best, cell, weight)
        return np.where(np.bincount(cell, minlength=size) > 0, best, 0.0).reshape(count, targets)


def _among(sets: Sets, node: Array, value: Array) -> Array:
    """Return whether each value is in its node's set: one binary search for all of them."""
    low, end = sets.starts[node], sets.starts[node + 1]
    high = end
    for _ in range(int(np.max(end - low, initial=0)).bit_length()):
        middle = (low + high) // 2
        below = (low < high) & (sets.members.take(middle, mode="clip") < value)
        low, high = np.where(below, middle + 1, low), np.where(below, high, middle)
    return (low < end) & (sets.members.take(low, mode="clip") == value)


def _depth(nodes: Nodes, inner: Array, roots: Array) -> int:
    """Return the most steps from a root to a leaf: nodes are settled from the leaves upward."""
    parents = np.flatnonzero(inner)
    child = np.concatenate([nodes.if_true[parents], nodes.if_false[parents]])
    order = np.argsort(child, kind="stable")
    parent, starts = np.concatenate([parents, parents])[order], _starts(child[order], len(inner))
    unsettled, height = np.where(inner, 2, 0), np.zeros(len(inner), np.int64)
    settled, level = np.flatnonzero(~inner), 0
    while len(settled):
        level += 1
        above = parent[_spans(starts[settled], starts[settled + 1] - starts[settled])]
        np.subtract.at(unsettled, above, 1)
        above = np.unique(above)
        settled = above[unsettled[above] == 0]
        height[settled] = level
    if np.any(unsettled[roots]):
        raise ValueError("a tree leads back to one of its own nodes: a row would never reach a leaf")
    return int(np.max(height[roots], initial=0))


def _starts(sorted_keys: Array, count: int) -> Array:
    """Return where each of `count` keys begins in a sorted array, and where the last ends."""
    return np.searchsorted(sorted_keys, np.arange(count + 1))


def _spans(starts: Array, lengths: Array) -> Array:
    """Return `starts[i], starts[i] + 1, ...`, `lengths[i]` of them, for each i in turn."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(np.sum(lengths)))


# ---------------------------------------------------------------- forests from attributes


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
    if np.any((mode < 0) | (mode > _MEMBER)):
        raise ValueError(f"nodes_modes must be 0 to {_MEMBER}")
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
        raise ValueError(f"`{name}` is given both as a list and as a tensor")
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
        raise ValueError(f"nodes_missing_value_tracks_true has {len(flags)} entries for {count} nodes")
    return flags if len(flags) else np.zeros(count, np.bool_)


def _children(attributes: Mapping[str, Any], side: str, inner: int, leaves: int) -> Array:
    to, is_leaf = _ints(attributes, f"nodes_{side}nodeids"), _ints(attributes, f"nodes_{side}leafs") != 0
    if not len(to) == len(is_leaf) == inner:
        raise ValueError(f"nodes_{side}nodeids and nodes_{side}leafs need {inner} entries each")
    _check_range(f"nodes_{side}nodeids", to[~is_leaf], inner)
    _check_range(f"nodes_{side}nodeids", to[is_leaf], leaves)
    return np.where(is_leaf, to + inner, to)


def _check_range(name: str, ids: Array, count: int) -> None:
    if np.any((ids < 0) | (ids >= count)):
        raise ValueError(f"`{name}` names a place outside [0, {count - 1}]")


def _same_length(**lists: Array) -> None:
    lengths = {name: len(array) for name, array in lists.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"lists that belong together differ in length: {told}")


def _sets(attributes: Mapping[str, Any], mode: Array) -> Sets | None:
    """Return the members of each node's set: NaN ends one, and they come in the order of the nodes."""
    asking = np.flatnonzero(mode == _MEMBER)
    given = attributes["membership_values"]
    values = np.zeros(0, np.float32) if given is None else _array(given)
    ends = np.isnan(values)
    belongs = np.cumsum(ends) - ends  # the number of sets that have ended before
    if len(values) and not ends[-1]:
        ends = np.append(ends, True)
    if np.count_nonzero(ends) != len(asking):
        raise ValueError(f"membership_values has {np.count_nonzero(ends)} sets for {len(asking)} nodes")
    if not len(asking):
        return None
    real = ~np.isnan(values)
    node, members = asking[belongs[real]], values[real]
    order = np.lexsort((members, node))
    return Sets(_starts(node[order], len(mode)), members[order])


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
            raise ValueError(f"node {nodes[at]} of tree {trees[at]} is given twice")

    def find(self, trees: Array, nodes: Array, what: str) -> Array:
        """Return the places; raises ValueError for a node that there is not."""
        _same_length(nodes_treeids=trees, **{what: nodes})
        if not len(trees):
            return np.zeros(0, np.int64)
        if not len(self.codes):
            raise ValueError(f"`{what}` names nodes, and there are none")
        tree, node = np.searchsorted(self.trees, trees), np.searchsorted(self.nodes, nodes)
        tree, node = tree.clip(max=len(self.trees) - 1), node.clip(max=len(self.nodes) - 1)
        code = tree * len(self.nodes) + node
        at = np.searchsorted(self.codes, code).clip(max=len(self.codes) - 1)
        wrong = (self.trees[tree] != trees) | (self.nodes[node] != nodes) | (self.codes[at] != code)
        if np.any(wrong):
            first = np.flatnonzero(wrong)[0]
            raise ValueError(f"`{what}` names node {nodes[first]} of tree {trees[first]}, and there is none")
        return self.order[at]
