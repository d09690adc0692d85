"""Lowering of tree ensembles: forests as tables for kernels, in which each node makes one comparison.

All tests become `x <= threshold`, on floats mapped to integers of the same order, where NaN is the largest. A
test that sends NaN the other way reads a copy of the features in which NaN is minus infinity. A test for
equality becomes two nodes, a test for membership of a set a tree of comparisons. The two children of a node
are adjacent; a node with several parents is stored several times, and its subtree once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sabir import loops
from sabir.base import check_time
from sabir.loops import NotLowered
from sabir.opsets.families.trees.trees import LEAF, MEMBER, MODES, spans

if TYPE_CHECKING:
    from sabir.loops import Descend, Expression
    from sabir.opsets.families.trees.trees import Forest
    from sabir.opsets.typing import Array

_CACHED = 8  # forests
_LANES = 8  # rows that `Descend` processes together
_NARROW = 32  # bits of `next` in nodes that compare floats
_MOST_SURE = 8  # levels of a tree that all rows descend without tests for leaves
_SURE = 6  # steps in a deeper tree before the first test for leaves
_LEQ, _LT, _GTE, _GT, _EQ, _NEQ = (
    MODES.index(f"BRANCH_{m}") for m in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")
)
_MOST_STEPS = 1 << 12  # of a row in a tree
_MOST_FEATURES = 1 << 28  # of a row whose width is known in a run only: links have 64 bits
_MOST_VOTES = 1 << 16  # of a small forest
_COPIES = 16  # parents of a leaf, on average


def scores(x: Expression, forest: Forest, targets: int, how: str) -> Expression:
    """Return the scores (N, targets) in double of rows (N, F) of floats, aggregated by `how`.

    Raises NotLowered for a tree that is too deep, and for a missing feature or target.
    """
    if forest.last_feature >= (x.shape[1] if isinstance(x.shape[1], int) else _MOST_FEATURES):
        raise NotLowered("a node tests a feature that rows do not have")
    if forest.last_target >= targets or not targets:
        raise NotLowered("a leaf votes for a target that there is not")
    if forest.depth > _MOST_STEPS:
        raise NotLowered(f"a tree has {forest.depth} levels")
    tables = _tables(forest, targets, narrow=x.element == "float")
    features = _features(x, tables)
    trees = len(forest.roots)
    if how in {"SUM", "AVERAGE"}:
        total = _descend(features, forest, tables, tables.weights, targets, "sum")
        return total if how == "SUM" else loops.apply("div", total, max(1, trees))
    best = _descend(features, forest, tables, tables.weights, targets, how.lower())
    if tables.first is None and trees:  # each leaf has one weight, for the only target
        return best
    ones = np.ones(len(tables.weights), np.float32)
    counted = _descend(features, forest, tables, ones, targets, "sum")
    return loops.where(loops.apply("gt", counted, 0), best, 0)


def _features(x: Expression, tables: _Tables) -> Expression:
    """Return the integers that nodes compare; if NaN goes both ways, a feature has two adjacent integers."""
    if tables.is_wide:
        x = loops.cast(x, "double")
    if not tables.has_copy:
        return loops.order(x)
    low = loops.where(loops.apply("isnan", x), -np.inf, x)
    both = [loops.order(loops.reshape(part, (*x.shape, 1))) for part in (x, low)]
    return loops.reshape(loops.join(both, 2), (x.shape[0], 2 * x.shape[1]))


def _descend(
    x: Expression, forest: Forest, tables: _Tables, weights: Array, targets: int, op: str
) -> Descend:
    trees, steps = len(forest.roots), max(1, forest.depth)
    return loops.Descend(
        "double", (x.shape[0], targets), x, op,
        nodes=loops.tensor(tables.nodes), roots=loops.tensor(tables.roots), weights=loops.tensor(weights),
        first=None if tables.first is None else loops.tensor(tables.first),
        targets=None if tables.targets is None else loops.tensor(tables.targets),
        trees=trees, bits=tables.bits, widest=tables.widest, steps=steps,
    )  # fmt: skip


# ---------------------------------------------------------------- tables


class _Tables(NamedTuple):
    """The tables of Descend; `is_wide`: nodes compare doubles; `has_copy`: features have a copy for NaN."""

    nodes: Array
    roots: Array
    weights: Array
    first: Array | None
    targets: Array | None
    bits: int
    widest: int
    is_wide: bool
    has_copy: bool


class _Tests(NamedTuple):
    """Nodes in one form: `below` is next if the feature is at most the threshold, else `above`.

    In a `copied` node NaN goes below, else above. Leaves have a feature of -1.
    """

    feature: Array
    threshold: Array
    below: Array
    above: Array
    copied: Array


class _Places(NamedTuple):
    """The node at each place, the first place of the children of each node, the sure steps of each tree."""

    content: Array
    pair: Array
    sure: Array


@lru_cache(_CACHED)
def _tables(forest: Forest, targets: int, *, narrow: bool) -> _Tables:
    """Return the tables of a forest for rows of float, if `narrow`, or of double."""
    numbers = [forest.nodes.threshold, *([] if forest.sets is None else [forest.sets.members])]
    is_wide = not narrow or any(n.dtype != np.float32 for n in numbers)
    tests = _tests(forest, np.float64 if is_wide else np.float32)
    has_copy = bool(np.any(tests.copied[tests.feature >= 0]))
    if has_copy:
        tests = tests._replace(feature=np.where(tests.feature < 0, -1, 2 * tests.feature + tests.copied))
    places = _places(tests, forest.roots)
    widest = int(np.max(tests.feature, initial=0))
    bits = (_LANES * widest + 1).bit_length()
    if not is_wide and len(places.content).bit_length() + bits > _NARROW:
        return _tables(forest, targets, narrow=False)
    nodes = _nodes(tests, places, bits, np.dtype(np.uint64 if is_wide else np.uint32))
    trees = len(forest.roots)
    roots = np.zeros((2, trees + -trees % _LANES), np.int32)
    roots[:, :trees] = np.arange(trees), places.sure
    leaves = _leaves(forest, places.content, targets)
    return _Tables(nodes, roots, *leaves, bits, widest, is_wide, has_copy)


def _nodes(tests: _Tests, places: _Places, bits: int, kind: np.dtype[Any]) -> Array:
    """Return the pair of each place: its threshold, and `next` combined with the feature."""
    content = places.content
    is_leaf = tests.feature[content] < 0
    following = np.where(is_leaf, np.arange(len(content)), places.pair[content])
    nodes = np.empty((len(content), 2), kind)
    nodes[:, 0] = np.where(is_leaf, np.iinfo(kind).max, tests.threshold[content])
    nodes[:, 1] = following << bits | np.where(is_leaf, 0, _LANES * tests.feature[content])
    return nodes


def _leaves(forest: Forest, content: Array, targets: int) -> tuple[Array, Array | None, Array | None]:
    """Return the weights; for leaves with any number of weights also `first` and `targets`."""
    weight, start = forest.votes.weight, forest.first_vote
    narrow = weight.astype(np.float32)
    weight = narrow if np.array_equal(narrow, weight, equal_nan=True) else weight
    is_leaf = np.append(forest.nodes.mode == LEAF, np.zeros(len(content), np.bool_))[content]
    leaf = np.where(is_leaf, content, 0)
    if targets == 1 and forest.one_vote:
        return np.where(is_leaf, weight[np.where(is_leaf, start[leaf], 0)], weight.dtype.type(0)), None, None
    counts = np.where(is_leaf, np.diff(start)[leaf], 0)
    first = np.concatenate([[0], np.cumsum(counts)])
    if first[-1] > _MOST_VOTES + _COPIES * len(weight):  # a leaf is stored once for each parent
        raise NotLowered("many nodes lead to leaves with many votes")
    votes = spans(start[leaf], counts)
    return weight[votes], first.astype(np.int32), forest.votes.target[votes].astype(np.int32)


# ---------------------------------------------------------------- tests in one form


def key_of(x: Array) -> Array:
    """Return the integers of `loops.order`, in 64 bits."""
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    bits: Array = (x + x.dtype.type(0)).view(unsigned)
    sign = unsigned.type(1 << 8 * unsigned.itemsize - 1)
    found: Array = np.where(bits & sign, ~bits, bits | sign)
    return found.astype(np.uint64)


def _tests(forest: Forest, kind: Any) -> _Tests:
    """Return all tests in one form; tests for equality have a second node, after all others."""
    nodes, mode = forest.nodes, forest.nodes.mode
    threshold = nodes.threshold.astype(kind)
    inverted = np.isin(mode, (_GTE, _GT, _NEQ))
    tests = _Tests(
        np.where(mode == LEAF, -1, nodes.feature),
        key_of(threshold) - np.isin(mode, (_LT, _GTE)).astype(np.uint64),
        np.where(inverted, nodes.if_false, nodes.if_true),
        np.where(inverted, nodes.if_true, nodes.if_false),
        nodes.missing_is_true ^ inverted,
    )
    is_nan = np.isnan(threshold) & (mode != MEMBER)
    tests = _with_nan(tests, forest, np.flatnonzero(is_nan), kind)
    tests = _with_equal(tests, np.flatnonzero(np.isin(mode, (_EQ, _NEQ)) & ~is_nan))
    return _with_members(tests, forest, kind)


def _with_nan(tests: _Tests, forest: Forest, at: Array, kind: Any) -> _Tests:
    """Return tests where all numbers go one way at some nodes: their threshold is NaN."""
    nodes, differs = forest.nodes, forest.nodes.mode[at] == _NEQ
    way = np.where(differs, nodes.if_true[at], nodes.if_false[at])
    other = np.where(differs, nodes.if_false[at], nodes.if_true[at])
    for column, value in (
        (tests.threshold, _largest(kind)),
        (tests.below, way),
        (tests.above, other),
        (tests.copied, nodes.missing_is_true[at] == differs),
    ):
        column[at] = value
    return tests


def _with_equal(tests: _Tests, equal: Array) -> _Tests:
    """Return tests with a second node for each of `equal`: rows at the threshold go below."""
    second = len(tests.feature) + np.arange(len(equal))
    hit, miss = tests.below[equal], tests.above[equal]
    below = tests.below.copy()
    below[equal] = second
    return _Tests(
        np.append(tests.feature, tests.feature[equal]),
        np.append(tests.threshold, tests.threshold[equal] - np.uint64(1)),
        np.append(below, miss),
        np.append(tests.above, hit),
        np.append(tests.copied, np.zeros(len(equal), np.bool_)),  # a NaN that reaches it is equal
    )


def _with_members(tests: _Tests, forest: Forest, kind: Any) -> _Tests:
    """Return tests where each test for membership of a set is a tree of comparisons."""
    searches = np.flatnonzero(forest.nodes.mode == MEMBER)
    if not len(searches):
        return tests
    columns: list[list[Any]] = [column.tolist() for column in tests]
    for node in searches.tolist():
        _search(columns, node, forest, kind)
    kinds = (np.int64, np.uint64, np.int64, np.int64, np.bool_)
    return _Tests(*map(np.array, columns, kinds))


def _search(columns: list[list[Any]], node: int, forest: Forest, kind: Any) -> None:
    """Replace a node by a binary search of its set, which ends with two comparisons for one member."""
    hit, miss = int(forest.nodes.if_true[node]), int(forest.nodes.if_false[node])
    missing = bool(forest.nodes.missing_is_true[node])
    feature, members = columns[0][node], _members(forest, node, kind)

    def new() -> int:
        for column in columns:
            column.append(0)
        return len(columns[0]) - 1

    def write(at: int, threshold: int, below: int, above: int, *, copied: bool) -> None:
        for column, value in zip(columns, (feature, threshold, below, above, copied), strict=True):
            column[at] = value

    if not members:
        write(node, _largest(kind), miss, hit, copied=not missing)
    pending = [(node, 0, len(members))] if members else []
    while pending:
        at, low, high = pending.pop()
        middle, second = (low + high) // 2, new()
        if high - low > 1:
            third = new()
            write(at, members[middle - 1], second, third, copied=missing)
            pending += [(second, low, middle), (third, middle, high)]
        else:
            write(at, members[low], second, miss, copied=missing)
            write(second, members[low] - 1, miss, hit, copied=False)


def _members(forest: Forest, node: int, kind: Any) -> list[int]:
    if forest.sets is None:
        return []
    low, high = forest.sets.starts[node], forest.sets.starts[node + 1]
    return np.unique(key_of(forest.sets.members[low:high].astype(kind))).tolist()


def _largest(kind: Any) -> int:
    """Return the integer of infinity, the largest of all numbers."""
    return int(key_of(np.array([np.inf], kind))[0])


# ---------------------------------------------------------------- places


def _places(tests: _Tests, roots: Array) -> _Places:
    """Return the places of nodes: the roots first, then the pairs of children of each tree, by level."""
    seen = tests.feature < 0  # leaves, which have no children
    node, first = np.unique(roots, return_index=True)
    node, tree = node[~seen[node]], first[~seen[node]]
    none = np.zeros(0, np.int64)
    levels, owners, depth = [none], [none], np.zeros(len(roots), np.int64)
    while len(node):
        check_time()
        seen[node] = True
        depth[tree] = len(levels)
        levels.append(node)
        owners.append(tree)
        children, tree = np.concatenate([tests.below[node], tests.above[node]]), np.tile(tree, 2)
        is_new = ~seen[children]
        node, first = np.unique(children[is_new], return_index=True)
        tree = tree[is_new][first]
    inner = np.concatenate(levels)[np.argsort(np.concatenate(owners), kind="stable")]
    pair = np.zeros(len(seen), np.int64)
    pair[inner] = len(roots) + 2 * np.arange(len(inner))
    content = np.concatenate([roots, np.stack([tests.below[inner], tests.above[inner]], axis=1).ravel()])
    if (
        len(content) and np.max(np.bincount(content)) > 1
    ):  # the depth of a node with several parents is ambiguous
        return _Places(content, pair, np.zeros(len(roots), np.int64))
    return _Places(content, pair, np.where(depth > _MOST_SURE, _SURE, depth))
