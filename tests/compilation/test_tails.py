"""What is evaluated after the kernels of a plan: texts, sequences and maps, also in fast runs."""

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError
from sabir.compilation import Compiled

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>'
LABELS = """l, s = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.0, 0.0, 1.0, -1.0, -1.0],
    intercepts = [0.5, 0.0, 0.0], classlabels_strings = ["a", "b", "c"]> (x)"""
X = np.array([[1, 2], [3, -1], [-4, -5]], np.float32)
WORDS, SCORES = ["b", "a", "c"], [[1.5, 2, -3], [3.5, -1, -2], [-3.5, -5, 9]]


def compiled(text, **options):
    return Compiled(sabir.parse(HEAD + text), **options)


def fast(engine, feeds):
    """Return the results of a fast run, after one that goes the long way."""
    engine.run({name: np.zeros_like(x) for name, x in feeds.items()})
    found = engine.run_fast(feeds)
    assert found is not None
    return found


def test_labels_that_are_texts_are_chosen_after_the_kernels():
    engine = compiled(f"g (float[n,2] x) => (string[n] l, float[n,3] s) {{ {LABELS} }}")
    for rows in (slice(None), slice(1, 2), slice(0)):
        found = fast(engine, {"x": X[rows].copy()})
        assert [*found] == ["l", "s"]
        assert found["l"].tolist() == WORDS[rows]
        np.testing.assert_array_equal(found["s"], np.float32(SCORES[rows]).reshape(-1, 3))
    assert [e.node.split()[0] for e in engine.explain({"x": (3, 2)}).evaluated] == ["LinearClassifier"]


def test_every_classifier_computes_its_scores_in_kernels():
    tree = """nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2], nodes_featureids = [0, 0, 0],
        nodes_values = [0.0, 0.0, 0.0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"], class_treeids = [0, 0],
        nodes_truenodeids = [1, 0, 0], nodes_falsenodeids = [2, 0, 0], class_nodeids = [1, 2],
        class_ids = [0, 1], class_weights = [0.75, 0.5]"""
    calls = {
        f'TreeEnsembleClassifier <classlabels_strings = ["no", "yes"], {tree}>': ["yes", "yes", "no"],
        'LinearClassifier <classlabels_strings = ["up"], coefficients = [1.0, 1.0]>': ["up", "up", ""],
        """SVMClassifier <classlabels_strings = ["p", "q"], coefficients = [1.0, -1.0], rho = [0.5],
            support_vectors = [1.0, 0.0, 0.0, 1.0], vectors_per_class = [1, 1]>""": ["q", "p", "p"],
    }
    for call, words in calls.items():
        engine = compiled(f"g (float[n,2] x) => (string[n] l) {{ l, s = ai.onnx.ml.{call} (x) }}")
        assert fast(engine, {"x": X})["l"].tolist() == words, call
        assert [e.node.split()[0] for e in engine.explain({"x": (3, 2)}).evaluated] == [call.split()[0]]


def test_maps_of_probabilities():
    text = f"""g (float[n,2] x) => (string[n] l, m) {{ {LABELS}
        m = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c"]> (s) }}"""
    found = fast(compiled(text), {"x": X})
    assert found["l"].tolist() == WORDS
    assert found["m"] == [dict(zip("abc", row, strict=True)) for row in SCORES]


def test_results_are_the_callers_own():
    """A sequence of a feed, of an output, and of what only kernels have in memory."""
    engine = compiled(
        """g (float[n] x) => (float[n] y, s) {
        y = Neg (x)  c = Add (x, x)  d = CumSum (c, k)  t = Mul (d, d)  s = SequenceConstruct (x, y, d, t) }""".replace(
            "d = CumSum", "k = Constant <value_int = 0> ()  d = CumSum"
        )
    )
    feed = np.float32([1, 2, 3])
    expected = [[1, 2, 3], [-1, -2, -3], [2, 6, 12], [4, 36, 144]]
    first = fast(engine, {"x": feed})
    for x in (*first["s"], first["y"]):
        x[:] = 7
    assert feed.tolist() == [1, 2, 3]
    again = engine.run_fast({"x": feed})
    later = engine.run_fast({"x": feed + 1})
    assert [x.tolist() for x in again["s"]] == expected
    assert again["y"].tolist() == expected[1]
    assert later["s"][0].tolist() == [2, 3, 4]


def test_a_call_that_fails_says_why():
    text = "g (int64[2] k, float[4] x) => (s) { y = Neg (x)  s = SplitToSequence (y, k) }"
    engine, x = compiled(text), np.float32([1, 2, 3, 4])
    engine.run({"k": np.array([1, 3]), "x": x})
    assert [len(part) for part in engine.run_fast({"k": np.array([2, 2]), "x": x})["s"]] == [2, 2]
    bad = {"k": np.array([1, 1]), "x": x}
    assert engine.run_fast(bad) is None
    with pytest.raises(EvaluationError) as own:
        engine.run(bad)
    with pytest.raises(EvaluationError) as other:
        sabir.Session(sabir.parse(HEAD + text), engine="reference").run(bad)
    assert str(own.value) == str(other.value)


def test_calls_that_kernels_wait_for_are_no_tail():
    words = """g (float[n,2] x) => (string[n] l, int64[n] c) {
        l, s = ai.onnx.ml.LinearClassifier <coefficients = [1.0, 0.0, 0.0, 1.0],
            classlabels_strings = ["a", "b"]> (x)
        e = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [7, 8]> (l)  c = Add (e, e) }"""
    engine = compiled(words)
    for run in (engine.run, engine.run, engine.run_fast):  # they end a stage
        found = run({"x": X})
        assert found["l"].tolist() == ["b", "a", "a"]
        assert found["c"].tolist() == [16, 14, 14]
