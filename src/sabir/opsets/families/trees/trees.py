"""Ensembles of decision trees: all rows descend all trees together, one level at a time.

Nodes are stored in arrays; both children of a leaf are the leaf itself, so that a row that has reached one
stays there. Building the forest computes its depth and refuses cycles, whether or not a row reaches them.
Inference builds the forest too, so that the checker reports its faults; a run reuses that forest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sabir.base import InferenceError, check_time, spend_work
from sabir.ir import may_be_at_most
from sabir.opsets.families.shapes.sizes import allotted
from sabir.schema import one_of

if TYPE_CHECKING:
    from sabir.ir import Dim
    from sabir.opsets.typing import Array

_BLOCK = 1 << 16  # pairs of a row and a tree at a time, so that the temporaries stay in the cache

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")  # by TreeEnsemble's number
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
NAMED_MODES = one_of(*MODES[:-1], "LEAF")  # of the older operators, which have no test for membership
LEAF, MEMBER = len(MODES), MODES.index("BRANCH_MEMBER")
_COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)


class Nodes(NamedTuple):
    """The tests of the nodes: feature, threshold, comparison, and the next node for each answer."""

    feature: Array
    threshold: Array
    mode: Array
    if_true: Array
    if_false: Array
    missing_is_true: Array


class Votes(NamedTuple):
    """The votes of the leaves: at `node`, `weight` for `target`."""

    node: Array
    target: Array
    weight: Array


class Sets(NamedTuple):
    """The sorted members of each node's set: `members[starts[node]:starts[node + 1]]`."""

    starts: Array
    members: Array


class Forest:
    """Trees ready for evaluation; `children` has those of node n at 2 n (false) and 2 n + 1 (true)."""

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
            raise InferenceError("a node tests a feature below 0, or a leaf votes for a target below 0")
        self.last_feature = int(np.max(nodes.feature[inner], initial=-1))
        self.last_target = int(np.max(votes.target, initial=-1))
        order = np.argsort(votes.node, kind="stable")
        self.nodes, self.roots, self.sets = nodes, roots, sets
        self.depth = _depth(nodes, inner, roots)
        self.children = np.stack([nodes.if_false, nodes.if_true], axis=1).ravel()
        self.modes = [int(mode) for mode in np.unique(nodes.mode[inner])]
        self.votes = Votes(*(part[order] for part in votes))
        # the votes of a node end where those of the next begin
        self.first_vote = starts_of(self.votes.node, len(inner))
        self.one_vote = bool(np.all(np.diff(self.first_vote)[~inner] == 1))

    def scores(self, x: Array, targets: int, how: str) -> Array:
        """Return the scores (N, targets) in float64 of the rows of `x` (N, F), aggregated by `how`."""
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
        """Raise InferenceError where a node tests a feature beyond `width`, or a vote is beyond `targets`."""
        if not may_be_at_most(self.last_feature + 1, width):
            raise InferenceError(f"a node tests feature {self.last_feature}, and rows have {width}")
        if self.last_target >= targets:
            raise InferenceError(f"a leaf votes for target {self.last_target}, and there are {targets}")

    def _leaves(self, x: Array) -> Array:
        """Return the leaf that each row reaches in each tree, tree by tree."""
        reached = np.repeat(self.roots, len(x))
        row = np.tile(np.arange(len(x)) * x.shape[1], len(self.roots))
        flat, has_nan = x.ravel(), bool(np.any(np.isnan(x)))
        pair, node = np.arange(len(reached)), reached
        for _ in range(self.depth):
            value = flat.take(row + self.nodes.feature.take(node))
            node = self.children.take(2 * node + self._answers(node, value, has_nan=has_nan))
            descending = self.nodes.mode.take(node) != LEAF
            if 2 * np.count_nonzero(descending) < len(node):  # most have reached a leaf: drop them
                reached[pair] = node
                pair, node, row = pair[descending], node[descending], row[descending]
                if not len(node):
                    break
        reached[pair] = node
        return reached

    def _answers(self, node: Array, value: Array, *, has_nan: bool) -> Array:
        if len(self.modes) == 1:
            answer = self._compared(self.modes[0], node, value)
        else:
            answer, mode = np.zeros(len(node), np.bool_), self.nodes.mode.take(node)
            for each in self.modes:
                at = np.flatnonzero(mode == each)
                answer[at] = self._compared(each, node[at], value[at])
        return np.where(np.isnan(value), self.nodes.missing_is_true.take(node), answer) if has_nan else answer

    def _compared(self, mode: int, node: Array, value: Array) -> Array:
        if mode != MEMBER:
            return _COMPARISONS[mode](value, self.nodes.threshold.take(node))
        return np.zeros(len(node), np.bool_) if self.sets is None else _among(self.sets, node, value)

    def _counted(self, leaves: Array, count: int, targets: int, how: str) -> Array:
        row, place = np.tile(np.arange(count), len(self.roots)), self.first_vote.take(leaves)
        if not self.one_vote:
            lengths = self.first_vote.take(leaves + 1) - place
            row, place = np.repeat(row, lengths), spans(place, lengths)
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
    """Return the depth of the trees; nodes are settled from the leaves upward.

    Raises InferenceError for nodes that are in a cycle or lead to one.
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
        above = parent[spans(starts[settled], starts[settled + 1] - starts[settled])]
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
    """Return a node of a cycle: a walk over unsettled nodes visits one twice."""
    at, seen = int(np.flatnonzero(unsettled)[0]), set[int]()
    while at not in seen:
        seen.add(at)
        at = int(nodes.if_true[at] if unsettled[nodes.if_true[at]] else nodes.if_false[at])
    return at


def starts_of(sorted_keys: Array, count: int) -> Array:
    """Return the start of each of `count` keys in a sorted array, and the end of the last."""
    return np.searchsorted(sorted_keys, np.arange(count + 1))


def spans(starts: Array, lengths: Array) -> Array:
    """Return `starts[i], starts[i] + 1, ...`, `lengths[i]` of them, for each i in turn."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(np.sum(lengths)))
