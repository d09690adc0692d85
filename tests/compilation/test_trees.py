"""Decision trees in kernels: every comparison, missing values, aggregates, and trees that are none.

Expected results come from a walk of one row after the other, and from sums in the order of the trees.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import sabir
from sabir.base import SabirError
from sabir.ir import ArrayTensor, Builder, tensor_type
from support.lowered import kernels_only, same_bits

MODES = ["LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER"]
COMPARE = [np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal]


class Forest:
    """Random trees in the lists of TreeEnsemble: inner nodes, leaves, and where they lead."""

    def __init__(self, seed, trees, depth, features, targets, kind=np.float32, modes=(0,), *, missing=False):
        self.random = np.random.default_rng(seed)
        self.kind, self.features, self.targets, self.modes = kind, features, targets, modes
        self.nodes, self.leaves, self.sets, self.roots = [], [], [], []
        for _ in range(trees):
            self.roots.append(len(self.nodes))
            self.grow(depth, root=True)
        self.missing = self.random.integers(0, 2, len(self.nodes)) if missing else [0] * len(self.nodes)

    def grow(self, depth, *, root=False):
        """Add a tree; return whether it is a leaf, and its number."""
        if depth == 0 or (not root and self.random.random() < 0.2):
            self.leaves.append((self.random.integers(self.targets), self.random.standard_normal()))
            return 1, len(self.leaves) - 1
        place = len(self.nodes)
        self.nodes.append(None)
        mode = self.random.choice(self.modes)
        split = self.kind(self.random.integers(-3, 4) / 2)
        if mode == 6:
            members = self.kind(self.random.integers(-3, 4, self.random.integers(0, 6)) / 2)
            self.sets.append(members)
            split = members
        true, false = self.grow(depth - 1), self.grow(depth - 1)
        self.nodes[place] = (self.random.integers(self.features), split, mode, true, false)
        return 0, place

    def leaf_of(self, row, root):
        """Return the leaf that a row reaches from a root."""
        is_leaf, place = 0, root
        while not is_leaf:
            feature, split, mode, true, false = self.nodes[place]
            x = row[feature]
            if np.isnan(x):
                answer = self.missing[place]
            else:
                answer = x in split if mode == 6 else COMPARE[mode](x, split)
            is_leaf, place = true if answer else false
        return place

    def scores(self, x, how):
        """Return the aggregated votes, in double and in the order of the trees."""
        votes = [[[] for _ in range(self.targets)] for _ in x]
        for row, cells in zip(x, votes, strict=True):
            for root in self.roots:
                target, weight = self.leaves[self.leaf_of(row, root)]
                cells[target].append(float(self.kind(weight)))
        combine = {0: lambda c: sum(c, 0.0) / len(self.roots), 1: lambda c: sum(c, 0.0)}
        combine |= {2: lambda c: min(c, default=0.0), 3: lambda c: max(c, default=0.0)}
        found = [[combine[how](cell) for cell in cells] for cells in votes]
        return np.array(found, np.float64).reshape(len(x), self.targets).astype(self.kind)

    def model(self, how, width=None, **changes):
        """Return the model of a TreeEnsemble."""
        b = Builder(21, opsets={"ai.onnx.ml": 5}, check=False)
        x = b.input("x", tensor_type(np.dtype(self.kind), ("N", width or self.features)))
        inner = list(zip(*self.nodes, strict=True))
        splits = [0 if mode == 6 else split for split, mode in zip(inner[1], inner[2], strict=True)]
        members = [n for s in self.sets for n in (*s, math.nan)]
        attributes = {
            "n_targets": self.targets, "aggregate_function": how,
            "tree_roots": self.roots, "nodes_featureids": inner[0],
            "nodes_splits": ArrayTensor(np.array(splits, self.kind)),
            "nodes_modes": ArrayTensor(np.array(inner[2], np.uint8)),
            "nodes_trueleafs": [leaf for leaf, _ in inner[3]], "nodes_truenodeids": [n for _, n in inner[3]],
            "nodes_falseleafs": [leaf for leaf, _ in inner[4]], "nodes_falsenodeids": [n for _, n in inner[4]],
            "nodes_missing_value_tracks_true": [int(m) for m in self.missing],
            "leaf_targetids": [int(target) for target, _ in self.leaves],
            "leaf_weights": ArrayTensor(np.array([weight for _, weight in self.leaves], self.kind)),
            **changes,
        }  # fmt: skip
        if members:
            attributes["membership_values"] = ArrayTensor(np.array(members, self.kind))
        given: dict[str, Any] = {
            k: [int(n) for n in v] if isinstance(v, tuple) else v for k, v in attributes.items()
        }
        b.output(b.op("TreeEnsemble", x, domain="ai.onnx.ml", **given), "y")
        return b.model()

    def rows(self, count, *, nan=True):
        """Return rows of few different numbers, some of them on thresholds."""
        edges = [-math.inf, -0.0, 0.0, 5e-324, math.inf, *([math.nan] * 3 if nan else [])]
        numbers = [*np.arange(-4, 5) / 2, *edges, 0.25]
        return self.random.choice(numbers, (count, self.features)).astype(self.kind)


def check(forest, how, counts=(1, 3, 8, 9, 40)):
    model = forest.model(how)
    for count in counts:
        x = forest.rows(count)
        y = kernels_only(model, {"x": x})["y"]
        same_bits(y, forest.scores(x, how), (how, count, forest.kind, forest.modes))


def test_every_comparison_and_missing_values():
    for mode, kind, missing in itertools.product(range(7), (np.float32, np.float64), (False, True)):
        check(Forest(mode, 9, 4, 3, 1, kind, (mode,), missing=missing), 1, (1, 9))
    check(Forest(7, 20, 5, 4, 1, np.float32, range(7), missing=True), 1)
    check(Forest(8, 20, 5, 4, 3, np.float64, range(7), missing=True), 1)


def test_aggregates_and_targets():
    for how, targets in itertools.product(range(4), (1, 2, 5)):
        check(Forest(targets, 6, 3, 3, targets), how)
    check(Forest(1, 1, 1, 1, 1), 1)  # two nodes
    check(Forest(2, 70, 2, 200, 1), 1, (1, 17))


def test_deep_trees():
    for depth in (1, 6, 8, 9, 12):
        check(Forest(depth, 3, depth, 5, 1), 1, (1, 20))


def test_bits_do_not_depend_on_batch_or_threads():
    forest = Forest(3, 50, 6, 6, 2)
    model, x = forest.model(1), forest.rows(1500)
    whole = sabir.Session(model, engine="compiled", threads=1).run({"x": x})["y"]
    parts = sabir.Session(model, engine="compiled", threads=2)
    same_bits(parts.run({"x": x})["y"], whole, "threads")
    for start, stop in ((0, 1), (1, 7), (7, 1500)):
        same_bits(parts.run({"x": x[start:stop]})["y"], whole[start:stop], (start, stop))
    same_bits(sabir.Session(model, engine="reference").run({"x": x})["y"], whole, "reference")


def test_nodes_that_several_lead_to():
    forest = Forest(4, 8, 4, 3, 1)
    forest.roots = [*forest.roots, forest.roots[3], forest.roots[3] + 1, forest.roots[0]]
    check(forest, 1, (1, 9))
    check(forest, 2, (1, 9))
    several = Forest(4, 8, 4, 3, 2)
    several.roots = [several.roots[1]] * 3 + several.roots
    for how in (1, 3):
        check(several, how, (1, 9))


def test_a_threshold_that_is_no_number():
    for mode, missing in itertools.product(range(6), (False, True)):
        forest = Forest(5, 3, 3, 2, 1, np.float32, (mode,), missing=missing)
        forest.nodes = [(f, np.float32("nan"), *others) for f, _, *others in forest.nodes]
        check(forest, 1, (5,))


def both(model, feeds):
    """Return what both engines say of feeds: an error's type and text."""
    found = []
    for engine in ("reference", "compiled"):
        try:
            result = sabir.Session(model, engine=engine).run(feeds)
        except SabirError as error:
            found.append((type(error), str(error)))
        else:
            found.append(result["y"].tolist())
    return found


def test_nodes_that_form_no_tree():
    forest = Forest(6, 2, 3, 4, 1)
    nodes, x = len(forest.nodes), forest.rows(3)
    changes = (
        {"nodes_truenodeids": [0] * nodes, "nodes_trueleafs": [0] * nodes},  # a cycle
        {"nodes_truenodeids": [nodes + 5] * nodes, "nodes_trueleafs": [0] * nodes},
        {"nodes_falsenodeids": [-1] * nodes},
        {"nodes_falsenodeids": [2**31 + 1] * nodes},
        {"nodes_featureids": [4] * nodes},
        {"nodes_featureids": [-1] * nodes},
        {"leaf_targetids": [1] * len(forest.leaves)},
        {"leaf_targetids": [-1] * len(forest.leaves)},
        {"tree_roots": [nodes]},
        {"nodes_featureids": [0]},
    )
    for change in changes:
        reference, compiled = both(forest.model(1, **change), {"x": x})
        assert reference == compiled, change
        assert isinstance(reference, tuple), change


def test_rows_of_open_width():
    forest = Forest(9, 4, 3, 5, 1)
    model, rows = forest.model(1, width="F"), forest.rows(11)
    same_bits(kernels_only(model, {"x": rows})["y"], forest.scores(rows, 1), "wide enough")
    wider = np.concatenate([rows, rows], axis=1)
    same_bits(kernels_only(model, {"x": wider})["y"], forest.scores(rows, 1), "wider")
    reference, compiled = both(model, {"x": rows[:, :2]})
    assert reference == compiled
    assert isinstance(reference, tuple)


def test_long_chains_are_left_to_the_interpreter():
    count = 5000
    b = Builder(21, opsets={"ai.onnx.ml": 5})
    x = b.input("x", tensor_type(np.dtype(np.float32), ("N", 1)))
    chain = {
        "tree_roots": [0], "nodes_featureids": [0] * count,
        "nodes_splits": ArrayTensor(np.arange(count, dtype=np.float32)),
        "nodes_modes": ArrayTensor(np.zeros(count, np.uint8)),
        "nodes_trueleafs": [1] * count, "nodes_truenodeids": [*range(count)],
        "nodes_falseleafs": [0] * (count - 1) + [1], "nodes_falsenodeids": [*range(1, count), count],
        "leaf_targetids": [0] * (count + 1), "leaf_weights": ArrayTensor(np.arange(count + 1, dtype=np.float32)),
    }  # fmt: skip
    b.output(b.op("TreeEnsemble", x, domain="ai.onnx.ml", **chain), "y")
    session = sabir.Session(b.model(), engine="compiled")
    assert session.run({"x": np.float32([[-1], [77.5], [9e9]])})["y"].ravel().tolist() == [0, 78, count]


@pytest.mark.parametrize("count", [1, 300])
def test_a_pipeline_is_one_plan(count):
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
        g (float[N, 3] x) => (int64[N] label, float[N, 2] scores) {
            f = ai.onnx.ml.Imputer <imputed_value_floats = [1.0, 2.0, 3.0], replaced_value_float = -1.0> (x)
            s = ai.onnx.ml.Scaler <offset = [0.5, 0.0, -1.0], scale = [2.0, 1.0, 0.25]> (f)
            label, scores = ai.onnx.ml.TreeEnsembleClassifier <
                nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [2, 0, 0],
                nodes_values = [1.0, 0.0, 0.0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
                nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_treeids = [0, 0],
                class_nodeids = [1, 2], class_ids = [0, 0], class_weights = [0.25, 0.75],
                classlabels_int64s = [4, 9]> (s) }""")
    x = np.random.default_rng(1).integers(-1, 8, (count, 3)).astype(np.float32)
    third = (np.where(x[:, 2] == -1, 3, x[:, 2]) + 1) * np.float32(0.25)
    second = np.where(third <= 1, 0.25, 0.75)
    found = kernels_only(model, {"x": x})
    assert found["label"].tolist() == np.where(second > 0.5, 9, 4).tolist()
    same_bits(found["scores"], np.stack([1 - second, second], 1).astype(np.float32), "scores")
