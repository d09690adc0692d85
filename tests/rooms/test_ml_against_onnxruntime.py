"""Linear models, support vectors, trees and n-grams of random make, against onnxruntime and scikit-learn."""

import itertools

import numpy as np
import pytest

from sabir import dumps
from sabir.evaluation import Runner
from sabir.ir import Builder, minimum_ir, tensor_type

onnxruntime = pytest.importorskip("onnxruntime")

ML = "ai.onnx.ml"


def built(operator, opset, x, outputs, domain, facts):
    b = Builder(21 if domain else opset, opsets={domain: opset} if domain else {})
    value = b.input("x", tensor_type(x.dtype, x.shape))
    made = b.op(operator, value, outputs=outputs, domain=domain, **facts)
    for each in made if isinstance(made, tuple) else (made,):
        b.output(each)
    return b.model(ir_version=minimum_ir(21))


def compare(operator, x, *, opset=1, outputs=1, domain=ML, tolerance=1e-4, **facts):
    model = built(operator, opset, x, outputs, domain, facts)
    got = list(Runner(model).run({"x": x}).values())
    for value, array in zip(model.graph.outputs, got, strict=True):
        value.type = tensor_type(array.dtype, array.shape)
    quiet = onnxruntime.SessionOptions()
    quiet.intra_op_num_threads = 1
    expected = onnxruntime.InferenceSession(dumps(model), quiet).run(None, {"x": x})

    for ours, theirs in zip(got, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        if ours.dtype.kind in "Oi":
            assert ours.tolist() == theirs.tolist()
        else:
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=1e-5)


def floats(numbers, *shape):
    return numbers.standard_normal(shape).astype(np.float32)


def listed(numbers, count):
    return floats(numbers, count).tolist()


@pytest.mark.parametrize("how", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_linear_models(classes, how):
    numbers = np.random.default_rng(classes)
    x = floats(numbers, 7, 4)
    model = {"coefficients": listed(numbers, classes * 4), "intercepts": listed(numbers, classes)}

    compare("LinearRegressor", x, targets=classes, post_transform=how, **model)
    labels = {"classlabels_ints": list(range(5, 5 + classes))}
    compare("LinearClassifier", x.astype(np.float64), outputs=2, post_transform=how, **model, **labels)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_support_vectors(classes, kernel):
    numbers = np.random.default_rng(classes)
    x, counts = floats(numbers, 9, 3), [3, 1, 2, 4][:classes]
    vectors, pairs = sum(counts), classes * (classes - 1) // 2
    shape = {"kernel_type": kernel, "kernel_params": [0.3, 0.1, 3.0]}
    model = {
        "coefficients": listed(numbers, (classes - 1) * vectors),
        "support_vectors": listed(numbers, vectors * 3),
        "vectors_per_class": counts,
        "rho": listed(numbers, pairs),
        "classlabels_strings": list("abcd")[:classes],
    }
    platt = {"prob_a": (-np.abs(floats(numbers, pairs))).tolist(), "prob_b": listed(numbers, pairs)}

    compare("SVMClassifier", x, outputs=2, tolerance=1e-3, **model, **shape)
    compare("SVMClassifier", x, outputs=2, tolerance=1e-3, **model, **shape, post_transform="LOGISTIC")
    compare("SVMClassifier", x, outputs=2, tolerance=1e-3, **model, **shape, **platt)
    lone = {"coefficients": listed(numbers, 2), "support_vectors": listed(numbers, 6), "rho": [0.5]}
    compare("SVMRegressor", x, tolerance=1e-3, n_supports=2, **lone, **shape)


def test_votes_of_sklearn():
    svm = pytest.importorskip("sklearn.svm")
    numbers = np.random.default_rng(0)
    x, y = numbers.standard_normal((60, 3)).astype(np.float32), numbers.integers(0, 3, 60)
    trained = svm.SVC(gamma=0.5, decision_function_shape="ovo").fit(x, y)
    facts = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 0.0], "classlabels_ints": [0, 1, 2],
        "coefficients": trained.dual_coef_.ravel().tolist(), "rho": trained.intercept_.tolist(),
        "support_vectors": trained.support_vectors_.ravel().tolist(),
        "vectors_per_class": trained.n_support_.tolist(),
    }  # fmt: skip

    labels, decisions = Runner(built("SVMClassifier", 1, x, 2, ML, facts)).run({"x": x}).values()

    assert labels.tolist() == trained.predict(x).tolist()
    np.testing.assert_allclose(decisions, trained.decision_function(x), rtol=1e-3, atol=1e-5)


def random_trees(numbers, targets):
    """The lists of three complete trees of depth 3 whose leaves vote for every target."""
    lists = {
        name: [] for name in ("treeids", "nodeids", "featureids", "values", "truenodeids", "falsenodeids")
    }
    modes, votes = [], []
    for tree, node in itertools.product(range(3), range(15)):
        leaf = node >= 7
        row = (tree, node, numbers.integers(3), numbers.integers(-2, 3), 2 * node + 1, 2 * node + 2)
        for name, value in zip(lists, row, strict=True):
            lists[name].append(
                float(value) if name == "values" else 0 if leaf and "nodes" in name else int(value)
            )
        named = ("LEQ", "LT", "GTE", "GT", "EQ")[tree if numbers.random() < 0.5 else 4]
        modes.append("LEAF" if leaf else f"BRANCH_{named}")
        votes += [(tree, node, target) for target in range(targets) if leaf]
    missing = numbers.integers(0, 2, len(modes)).tolist()
    nodes = {f"nodes_{name}": values for name, values in lists.items()}
    return {**nodes, "nodes_modes": modes, "nodes_missing_value_tracks_true": missing}, votes


@pytest.mark.parametrize("seed", range(10))
def test_trees(seed):
    numbers = np.random.default_rng(seed)
    targets = 3 + seed % 2
    nodes, votes = random_trees(numbers, targets)
    treeids, nodeids, ids = map(list, zip(*votes, strict=True))
    x = numbers.integers(-3, 4, (20, 3)).astype(np.float32)
    x[numbers.random(x.shape) < 0.1] = np.nan
    weights, base = listed(numbers, len(ids)), listed(numbers, targets)

    said = {
        "target_treeids": treeids,
        "target_nodeids": nodeids,
        "target_ids": ids,
        "target_weights": weights,
    }
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        model = {**nodes, **said, "n_targets": targets, "base_values": base, "aggregate_function": how}
        compare("TreeEnsembleRegressor", x, opset=3, **model)
    said = {"class_treeids": treeids, "class_nodeids": nodeids, "class_ids": ids, "class_weights": weights}
    model = {**nodes, **said, "classlabels_int64s": list(range(targets)), "post_transform": "SOFTMAX"}
    compare("TreeEnsembleClassifier", x, outputs=2, **model)


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("seed", range(5))
def test_n_grams(mode, seed):
    numbers = np.random.default_rng(seed)
    grams = [
        [0],
        [2],
        *numbers.permutation(list(itertools.product(range(3), repeat=2)))[:4].tolist(),
        [0, 1, 2],
    ]
    facts = {
        "mode": mode,
        "pool_int64s": [item for gram in grams for item in gram],
        "ngram_counts": [0, 2, 10],
        "ngram_indexes": list(range(len(grams))),
        "weights": listed(numbers, len(grams)),
        "min_gram_length": 1 + seed % 3,
        "max_gram_length": 3,
        "max_skip_count": seed,
    }

    compare("TfIdfVectorizer", numbers.integers(0, 4, (5, 9)), opset=9, domain="", **facts)
