"""Ensembles of decision trees: all rows go down all trees together, one level at a time.

Nodes lie in arrays; a leaf is a node whose two children are itself, so that whoever has arrived stays. That
no path is endless is settled when the forest is made, and the depth with it: nodes that form a cycle make no
tree, whether or not a row gets there. Inference makes the forest too, so that the checker finds what is wrong
with it; a run then uses the one that inference made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, check_time, spend_work
from sabir.opsets.families.sizes import allotted
from sabir.schema import one_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_BLOCK = 1 << 16  # walkers at a time: few enough that the temporaries stay in the cache

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # a place is TreeEnsemble's number
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
NAMED_MODES = one_of(*MODES[:-1], "LEAF")  # of the older operators, which ask for no member of a set
LEAF, MEMBER = len(MODES), MODES.index("BRANCH_MEMBER")
_COMPARISONS: tuple[Callable[..., Array], ...] = (
    np.less_equal,
    np.less,
    np.greater_equal,
    np.greater,
    np.equal,
    np.not_equal,
)


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
        "children",
        "depth",
        "first_vote",
        "last_feature",
        "last_target",
        "modes",
        "nodes",
        "one_vote",
        "roots",
        "sets",
        "votes",
    )

    def __init__(self, nodes: Nodes, roots: Array, votes: Votes, sets: Sets | None = None) -> None:
        """Raise InferenceError for nodes that form a cycle, or a feature or target below 0."""
        inner = nodes.mode != LEAF
        if np.any(nodes.feature[inner] < 0) or np.any(votes.target < 0):
            raise InferenceError("a node asks for a feature below 0, or a leaf votes for a target below 0")
        self.last_feature = int(np.max(nodes.feature[inner], initial=-1))
        self.last_target = int(np.max(votes.target, initial=-1))
        order = np.argsort(votes.node, kind="stable")
        self.nodes, self.roots, self.sets = nodes, roots, sets
        self.depth = _depth(nodes, inner, roots)
        self.children = np.stack([nodes.if_false, nodes.if_true], axis=1).ravel()
        self.modes = [int(mode) for mode in np.unique(nodes.mode[inner])]
        self.votes = Votes(*(part[order] for part in votes))
        self.first_vote = starts_of(
            self.votes.node, len(inner)
        )  # the next node's is where a node's votes end
        self.one_vote = bool(np.all(np.diff(self.first_vote)[~inner] == 1))

    def scores(self, x: Array, targets: int, how: str) -> Array:
        """Return what the leaves say of each row of `x` (N, F), as float64 (N, targets)."""
        self.check(x.shape[1], targets)
        result = np.zeros(allotted((len(x), targets), np.dtype(np.float64), x.size), np.float64)
        spend_work(8 * len(x) * len(self.roots) * self.depth)
        step = max(1, _BLOCK // max(1, len(self.roots)))
        for start in range(0, len(x), step):
            block = x[start : start + step]
            result[start : start + step] = self._counted(self._leaves(block), len(block), targets, how)
        if how == "AVERAGE":
            result /= max(1, len(self.roots))
        return result

    def check(self, width: Dim, targets: int) -> None:
        """Raise InferenceError where rows of so many features cannot be sent down, or give so many scores."""
        if isinstance(width, int) and self.last_feature >= width:
            raise InferenceError(f"a node asks for feature {self.last_feature}, and rows have {width}")
        if self.last_target >= targets:
            raise InferenceError(f"a leaf votes for target {self.last_target}, and there are {targets}")

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
        if mode != MEMBER:
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
    """Return the most steps from a root to a leaf: nodes are settled from the leaves upward.

    Raises InferenceError where some cannot be settled, as they form a cycle or lead to one.
    """
    parents = np.flatnonzero(inner)
    child = np.concatenate([nodes.if_true[parents], nodes.if_false[parents]])
    order = np.argsort(child, kind="stable")
    parent, starts = np.concatenate([parents, parents])[order], starts_of(child[order], len(inner))
    unsettled, height = np.where(inner, 2, 0), np.zeros(len(inner), np.int64)
    settled, level = np.flatnonzero(~inner), 0
    while len(settled):
        check_time()
        level += 1
        above = parent[_spans(starts[settled], starts[settled + 1] - starts[settled])]
        np.subtract.at(unsettled, above, 1)
        above = np.unique(above)
        settled = above[unsettled[above] == 0]
        height[settled] = level
    if np.any(unsettled):
        place = _in_cycle(nodes, unsettled)
        raise InferenceError(
            f"the node at place {place} of the `nodes_` lists leads back to itself: a tree has no cycles"
        )
    return int(np.max(height[roots], initial=0))


def _in_cycle(nodes: Nodes, unsettled: Array) -> int:
    """Return a node of a cycle: whoever goes from unsettled node to unsettled node comes to one twice."""
    at, seen = int(np.flatnonzero(unsettled)[0]), set[int]()
    while at not in seen:
        seen.add(at)
        at = int(nodes.if_true[at] if unsettled[nodes.if_true[at]] else nodes.if_false[at])
    return at


def starts_of(sorted_keys: Array, count: int) -> Array:
    """Return where each of `count` keys begins in a sorted array, and where the last ends."""
    return np.searchsorted(sorted_keys, np.arange(count + 1))


def _spans(starts: Array, lengths: Array) -> Array:
    """Return `starts[i], starts[i] + 1, ...`, `lengths[i]` of them, for each i in turn."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(np.sum(lengths)))
