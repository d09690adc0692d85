"""Decision trees: models that scikit-learn trained, and trees that no row may be sent down."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

import sabir
from sabir.base import CheckError, EvaluationError, SabirError
from sabir.evaluation import Runner
from sabir.ir import ArrayTensor, Attribute, Builder, tensor_type
from sabir.opsets.families.trees import tree_attributes, trees

NODE_LISTS = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")


def model_of(operator, x, opset, outputs, attributes):
    b = Builder(21, opsets={"ai.onnx.ml": opset}, check=False)
    value = b.input("x", tensor_type(x.dtype, x.shape))
    made = b.op(operator, value, outputs=outputs, domain="ai.onnx.ml", **attributes)
    for each in made if isinstance(made, tuple) else (made,):
        b.output(each)
    return b.model()


def run(operator, x, opset=3, outputs=1, **attributes):
    return list(Runner(model_of(operator, x, opset, outputs, attributes)).run({"x": x}).values())


def of_sklearn(estimators, votes, targets):
    """The lists of an ensemble, whose leaves vote with `tree.value` for each of `targets`."""
    lists = {name: [] for name in (*NODE_LISTS, "vote_trees", "vote_nodes", "vote_ids", "vote_weights")}
    for number, estimator in enumerate(estimators):
        tree = estimator.tree_
        leaf = tree.children_left < 0
        columns = (
            np.full(len(leaf), number), np.arange(len(leaf)), np.where(leaf, 0, tree.feature), tree.threshold,
            np.where(leaf, "LEAF", "BRANCH_LEQ"), np.where(leaf, 0, tree.children_left),
            np.where(leaf, 0, tree.children_right),
        )  # fmt: skip
        for name, column in zip(NODE_LISTS, columns, strict=True):
            lists[name] += column.tolist()
        for node in np.flatnonzero(leaf).tolist():
            lists["vote_trees"] += [number] * targets
            lists["vote_nodes"] += [node] * targets
            lists["vote_ids"] += range(targets)
            lists["vote_weights"] += tree.value[node, 0].tolist()
    names = {
        **{name: f"nodes_{name}" for name in NODE_LISTS},
        "vote_trees": f"{votes}_treeids", "vote_nodes": f"{votes}_nodeids",
        "vote_ids": f"{votes}_ids", "vote_weights": f"{votes}_weights",
    }  # fmt: skip
    found = {names[name]: value for name, value in lists.items()}
    for name in ("nodes_values", f"{votes}_weights"):  # in float64, as they were trained
        found[f"{name}_as_tensor"] = ArrayTensor(np.array(found.pop(name)))
    return found


@pytest.fixture(scope="module")
def data():
    datasets = pytest.importorskip("sklearn.datasets")
    x, y = datasets.make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)
    return x.astype(np.float32), y


@pytest.mark.parametrize("block", [64, 1 << 16])
def test_random_forest_of_sklearn(data, block, monkeypatch):
    ensemble = pytest.importorskip("sklearn.ensemble")
    monkeypatch.setattr(trees, "_BLOCK", block)
    x, y = data
    model = ensemble.RandomForestClassifier(12, max_depth=6, random_state=0).fit(x, y)
    lists = of_sklearn(model.estimators_, "class", 3)

    labels, scores = run("TreeEnsembleClassifier", x, outputs=2, classlabels_int64s=[0, 1, 2], **lists)

    np.testing.assert_array_equal(labels, model.predict(x))
    np.testing.assert_allclose(scores / 12, model.predict_proba(x), rtol=1e-5)


def test_boosting_of_sklearn(data):
    ensemble = pytest.importorskip("sklearn.ensemble")
    x, y = data
    model = ensemble.GradientBoostingRegressor(n_estimators=20, learning_rate=0.5, random_state=0).fit(x, y)
    lists = of_sklearn(model.estimators_[:, 0], "target", 1)
    weights = lists.pop("target_weights_as_tensor").array() * 0.5

    (values,) = run(
        "TreeEnsembleRegressor", x, n_targets=1, base_values=[float(np.float32(y.mean()))],
        target_weights_as_tensor=ArrayTensor(weights), **lists,
    )  # fmt: skip

    np.testing.assert_allclose(values[:, 0], model.predict(x), rtol=1e-4, atol=1e-5)


def chain(length, **changes):
    """A tree in which each node leads to the next one, and the last to a leaf."""
    ids = list(range(length + 1))
    return {
        "nodes_treeids": [0] * len(ids),
        "nodes_nodeids": ids,
        "nodes_featureids": [0] * len(ids),
        "nodes_values": [0.0] * len(ids),
        "nodes_modes": ["BRANCH_LEQ"] * length + ["LEAF"],
        "nodes_truenodeids": [*ids[1:], 0],
        "nodes_falsenodeids": [length] * len(ids),
        "target_treeids": [0],
        "target_nodeids": [length],
        "target_ids": [0],
        "target_weights": [2.5],
        **changes,
    }


def test_a_deep_tree_is_walked_to_its_end():
    x = np.array([[-1.0], [1.0]], np.float32)

    (values,) = run("TreeEnsembleRegressor", x, n_targets=1, **chain(2000))

    np.testing.assert_array_equal(values, np.array([[2.5], [2.5]], np.float32))


WRONG = {
    "leads back": {"nodes_truenodeids": [1, 2, 0, 0]},
    "names node 9 of tree 0": {"nodes_truenodeids": [1, 2, 9, 0]},
    "listed twice": {"nodes_nodeids": [0, 1, 1, 3]},
    "feature 5": {"nodes_featureids": [0, 5, 0, 0]},
    "below 0": {"nodes_featureids": [0, -1, 0, 0]},
    "target 4": {"target_ids": [4]},
    "names node 7 of tree 0": {"target_nodeids": [7]},
    "'BRANCH_UP'": {"nodes_modes": ["BRANCH_UP", "LEAF", "LEAF", "LEAF"]},
    "differ in length": {"nodes_values": [0.0]},
}


@pytest.mark.parametrize("told", WRONG)
def test_lists_that_make_no_tree(told):
    x = np.zeros((1, 2), np.float32)

    with pytest.raises(SabirError, match=told):
        run("TreeEnsembleRegressor", x, n_targets=1, **chain(3, **WRONG[told]))


def test_a_long_circle_is_found_at_once():
    x, ids = np.zeros((1, 1), np.float32), list(range(100_000))
    circle = chain(len(ids) - 1, nodes_truenodeids=[*ids[1:], 0], nodes_falsenodeids=[*ids[1:], 0])
    circle["nodes_modes"] = ["BRANCH_LEQ"] * len(ids)
    start = time.process_time()

    with pytest.raises(EvaluationError, match="leads back"):
        run("TreeEnsembleRegressor", x, n_targets=1, **circle)

    assert time.process_time() - start < 5


def leaves_and_nodes(**changes):
    facts = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0, 0],
        "nodes_splits": ArrayTensor(np.zeros(2, np.float32)),
        "nodes_modes": ArrayTensor(np.zeros(2, np.uint8)),
        "nodes_truenodeids": [1, 0],
        "nodes_trueleafs": [0, 1],
        "nodes_falsenodeids": [0, 1],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0],
        "leaf_weights": ArrayTensor(np.ones(2, np.float32)),
    }
    return facts | changes


@pytest.mark.parametrize(
    ("told", "changes"),
    [
        ("leads back", {"nodes_trueleafs": [0, 0]}),
        ("tree_roots", {"tree_roots": [2]}),
        ("nodes_truenodeids", {"nodes_truenodeids": [2, 0]}),
        ("nodes_falsenodeids", {"nodes_falsenodeids": [-1, 1]}),
        ("0 to 6", {"nodes_modes": ArrayTensor(np.array([0, 7], np.uint8))}),
        ("0 sets for 1 nodes", {"nodes_modes": ArrayTensor(np.array([0, 6], np.uint8))}),
        ("differ in length", {"leaf_targetids": [0]}),
        ("0, 1, 2 or 3", {"aggregate_function": 4}),
    ],
)
def test_nodes_and_leaves_that_make_no_tree(told, changes):
    x = np.zeros((1, 1), np.float32)

    with pytest.raises(SabirError, match=told):
        run("TreeEnsemble", x, opset=5, **leaves_and_nodes(**changes))


def test_the_root_is_where_no_node_leads_to():
    x = np.array([[-1.0], [1.0]], np.float32)
    listed_last = chain(
        1, nodes_nodeids=[1, 0], target_nodeids=[0], nodes_truenodeids=[0, 0], nodes_falsenodeids=[0, 0]
    )

    (values,) = run("TreeEnsembleRegressor", x, n_targets=1, **listed_last)

    np.testing.assert_array_equal(values, np.array([[2.5], [2.5]], np.float32))


def test_a_forest_is_made_once_for_one_node():
    x = np.zeros((1, 1), np.float32)
    tree_attributes.of_lists.cache_clear()
    b = Builder(21, opsets={"ai.onnx.ml": 3}, check=False)
    value = b.input("x", tensor_type(x.dtype, x.shape))
    facts: dict[str, Any] = {name: Attribute.of(name, v) for name, v in chain(3).items()}
    b.output(b.op("TreeEnsembleRegressor", value, domain="ai.onnx.ml", n_targets=1, **facts))
    runner = Runner(b.model())

    for _ in range(3):
        runner.run({"x": x})

    info = tree_attributes.of_lists.cache_info()  # inference makes it, and every run uses it
    assert (info.misses, info.hits) == (1, 3)


# a sound tree of the nodes 0 and 1, and two nodes apart from it, which lead to each other or to themselves
APART = {
    "each other": ([1, 1, 3, 2], [1, 1, 3, 2]),
    "itself": ([1, 1, 2, 1], [1, 1, 2, 1]),
    "itself by the false branch": ([1, 1, 1, 1], [1, 1, 1, 3]),
    "a cycle beyond": ([1, 1, 3, 3], [1, 1, 1, 1]),
}


def lists_with_a_cycle(where, votes):
    to_true, to_false = APART[where]
    return {
        "nodes_treeids": [0] * 4,
        "nodes_nodeids": [0, 1, 2, 3],
        "nodes_featureids": [0] * 4,
        "nodes_values": [0.0] * 4,
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "BRANCH_LEQ", "BRANCH_GT"],
        "nodes_truenodeids": to_true,
        "nodes_falsenodeids": to_false,
        f"{votes}_treeids": [0],
        f"{votes}_nodeids": [1],
        f"{votes}_ids": [0],
        f"{votes}_weights": [1.0],
    }


def nodes_with_a_cycle(where):
    """The same for TreeEnsemble, whose leaf is no node."""
    to_true, to_false = (np.array(side) for side in APART[where])
    inner = np.array([0, 2, 3])
    number = {0: 0, 1: 0, 2: 1, 3: 2}
    return {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_featureids": [0] * 3,
        "nodes_splits": ArrayTensor(np.zeros(3, np.float32)),
        "nodes_modes": ArrayTensor(np.zeros(3, np.uint8)),
        "nodes_truenodeids": [number[n] for n in to_true[inner].tolist()],
        "nodes_trueleafs": (to_true[inner] == 1).astype(int).tolist(),
        "nodes_falsenodeids": [number[n] for n in to_false[inner].tolist()],
        "nodes_falseleafs": (to_false[inner] == 1).astype(int).tolist(),
        "leaf_targetids": [0],
        "leaf_weights": ArrayTensor(np.ones(1, np.float32)),
    }


def cyclic(operator, where):
    match operator:
        case "TreeEnsemble":
            return {"attributes": nodes_with_a_cycle(where)}
        case "TreeEnsembleRegressor":
            return {"attributes": {"n_targets": 1, **lists_with_a_cycle(where, "target")}}
        case _:
            facts = {"classlabels_int64s": [1, 2], **lists_with_a_cycle(where, "class")}
            return {"attributes": facts, "outputs": 2}


VERSIONS = [
    ("TreeEnsemble", 5),
    *itertools.product(("TreeEnsembleRegressor", "TreeEnsembleClassifier"), (1, 3)),
]


@pytest.mark.parametrize("where", APART)
@pytest.mark.parametrize(("operator", "opset"), VERSIONS)
def test_a_cycle_that_no_row_reaches(operator, opset, where):
    call = cyclic(operator, where)
    x, told = np.zeros((1, 1), np.float32), r"the node at place [123] of the `nodes_` lists leads back"
    with pytest.raises(EvaluationError, match=told):
        run(operator, x, opset=opset, outputs=call.get("outputs", 1), **call["attributes"])
    with pytest.raises(CheckError, match=f"TYPE001: {told}"):
        sabir.check(model_of(operator, x, opset, call.get("outputs", 1), call["attributes"]), select=["TYPE"])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"nodes_featureids": [5, 0, 0, 0]}, "feature 5, and rows have 1"),
        ({"target_ids": [4]}, "target 4, and there are 1"),
        ({"base_values": [1.0, 2.0]}, "there are 2 base values for 1 targets"),
        (
            {"nodes_modes": ["BRANCH_UP", "LEAF", "LEAF", "LEAF"]},
            "item 0 of attribute 'nodes_modes' is 'BRANCH_UP'",
        ),
        ({"aggregate_function": "MOST"}, "'MOST'"),
    ],
)
def test_the_checker_finds_what_a_run_finds(changes, told):
    x = np.zeros((1, 1), np.float32)
    facts = {"n_targets": 1, **chain(3, **changes)}
    with pytest.raises(CheckError, match=told):
        sabir.check(model_of("TreeEnsembleRegressor", x, 3, 1, facts), select=["TYPE", "ATTR"])
    with pytest.raises(SabirError, match=told):
        run("TreeEnsembleRegressor", x, **facts)


def test_nodes_that_share_a_branch_form_no_cycle():
    x = np.array([[-1.0], [1.0]], np.float32)
    diamond = chain(3, nodes_truenodeids=[1, 2, 3, 0], nodes_falsenodeids=[2, 3, 3, 0])
    (values,) = run("TreeEnsembleRegressor", x, n_targets=1, **diamond)
    np.testing.assert_array_equal(values, np.array([[2.5], [2.5]], np.float32))
