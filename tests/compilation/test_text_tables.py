"""Texts that become numbers before all kernels: one plan, whose fast runs look them up in tables."""

import itertools

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, FeedError
from sabir.compilation import Compiled

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>'
COLORS, CITIES = ["blue", "green", "red"], ["Oslo", "Rome"]
PIPELINE = """g (string[n,1] color, string[n,1] city, float[n,2] x) => (string[n] label, float[n,2] scores, m) {
    one = Constant <value = int64[2] {-1, 3}> ()  column = Constant <value = int64[2] {-1, 1}> ()
    a = ai.onnx.ml.OneHotEncoder <cats_strings = ["blue", "green", "red"], zeros = 1> (color)
    b = Reshape (a, one)
    c = ai.onnx.ml.LabelEncoder <keys_strings = ["Oslo", "Rome"], values_floats = [0.5, 2.0],
        default_float = -1.0> (city)
    d = Reshape (c, column)
    features = Concat <axis = 1> (b, d, x)
    label, scores = ai.onnx.ml.LinearClassifier <classlabels_strings = ["no", "yes"], intercepts = [0.1, -0.1],
        coefficients = [1.0, 2.0, 3.0, 0.5, 1.0, -1.0, -1.0, -2.0, -3.0, -0.5, -1.0, 1.0]> (features)
    m = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (scores)
}"""
ONE_HOT = """g (string[n] x) => (float[n,3] y) {
    h = ai.onnx.ml.OneHotEncoder <cats_strings = ["blue", "green", "red"], zeros = ZEROS> (x)  y = Add (h, h) }"""


def model(text):
    return sabir.parse(HEAD + text)


def feeds_of(rows, seed=0):
    random = np.random.default_rng(seed)
    return {
        "color": random.choice([*COLORS, "black"], (rows, 1)).astype(object),
        "city": random.choice([*CITIES, "Lima"], (rows, 1)).astype(object),
        "x": random.standard_normal((rows, 2)).astype(np.float32),
    }


def check_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if isinstance(value, list):
            assert [sorted(row) for row in found[name]] == [sorted(row) for row in value]
            rows = [[[row[key] for key in sorted(row)] for row in rows] for rows in (found[name], value)]
            np.testing.assert_allclose(*rows, rtol=1e-5)
        elif value.dtype == object:
            assert found[name].tolist() == value.tolist()
        else:
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


def test_a_pipeline_on_texts_is_one_plan():
    engine = Compiled(model(PIPELINE))
    explained = engine.explain({"color": (4, 1), "city": (4, 1), "x": (4, 2)})
    assert [e.node.split()[0] for e in explained.evaluated] == [
        "OneHotEncoder", "LabelEncoder", "LinearClassifier", "ZipMap",
    ]  # fmt: skip
    assert "compiled in a run" not in str(explained)


def test_fast_runs_look_texts_up():
    engine = Compiled(model(PIPELINE))
    for rows in (1, 7):
        engine.run(feeds_of(rows))
        feeds = feeds_of(rows, seed=1)
        found = engine.run_fast(feeds)
        assert found is not None
        check_equal(found, sabir.evaluate(model(PIPELINE), feeds))


def test_fast_runs_of_any_number_of_rows():
    engine, whole = Compiled(model(PIPELINE)), model(PIPELINE)
    for rows in (20, 9):
        engine.run(feeds_of(rows))
    for rows, seed in itertools.product((8, 30, 12, 30, 8), (2, 3)):
        feeds = feeds_of(rows, seed)
        found = engine.run_fast(feeds)
        assert found is not None, rows
        check_equal(found, sabir.evaluate(whole, feeds))


def test_texts_of_numpy_are_converted():
    engine, feeds = Compiled(model(PIPELINE)), feeds_of(3)
    engine.run(feeds)
    found = engine.run_fast({**feeds, "color": feeds["color"].astype("U")})
    assert found is not None
    check_equal(found, sabir.evaluate(model(PIPELINE), feeds))


@pytest.mark.parametrize("text", [PIPELINE, "g (string[n] x) => (string[n] y) { y = StringConcat (x, x) }"])
def test_what_is_no_text_is_refused_after_fast_runs(text):
    engine = Compiled(model(text))
    good = feeds_of(3) if "color" in text else {"x": np.array(["a", "b"], object)}
    name = next(iter(good))
    engine.run(good)
    assert engine.run_fast(good) is not None
    bad = {**good, name: np.full(good[name].shape, None, object)}
    assert engine.run_fast(bad) is None
    with pytest.raises(FeedError, match="pass texts"):
        engine.run(bad)


def test_an_unknown_category_is_the_error_of_the_interpreter():
    text = ONE_HOT.replace("ZEROS", "0")
    engine, bad = Compiled(model(text)), {"x": np.array(["red", "black"], object)}
    engine.run({"x": np.array(["red", "blue"], object)})
    assert engine.run_fast(bad) is None
    for run in (engine.run, lambda feeds: sabir.evaluate(model(text), feeds)):
        with pytest.raises(EvaluationError, match="'black' is in none of the categories, and `zeros` is 0"):
            run(bad)
    found = Compiled(model(ONE_HOT.replace("ZEROS", "1"))).run(bad)
    np.testing.assert_array_equal(found["y"], [[0, 0, 2], [0, 0, 0]])


def test_tables_in_every_direction():
    words, numbers = np.array(["b", "a", "z", "b"], object), np.array([2, 1, 7, 2])
    calls = {
        'CategoryMapper <cats_strings = ["a", "b"], cats_int64s = [1, 2]> (x)': (words, [2, 1, -1, 2]),
        'LabelEncoder <keys_strings = ["a", "b", "b"], values_int64s = [1, 9, 2]> (x)': (
            words,
            [2, 1, -1, 2],
        ),
        'LabelEncoder <keys_strings = ["a", "b"], values_strings = ["A", "B"]> (x)': (
            words,
            ["B", "A", "_Unused", "B"],
        ),
        'LabelEncoder <keys_int64s = [1, 2], values_strings = ["A", "B"], default_string = "?"> (x)': (
            numbers,
            ["B", "A", "?", "B"],
        ),
    }
    for call, (x, expected) in calls.items():
        kinds = ["string" if isinstance(item, str) else "int64" for item in (x[0], expected[0])]
        text = f"g ({kinds[0]}[n] x) => ({kinds[1]}[n] y) {{ y = ai.onnx.ml.{call} }}"
        engine = Compiled(model(text))
        assert engine.run({"x": x})["y"].tolist() == expected, call
        found = engine.run_fast({"x": x.copy()})
        assert found is not None, call
        assert found["y"].tolist() == expected, call


def test_outputs_that_no_kernel_computes():
    text = """g (string[n] x) => (string[n] same, float[3] counts, float[3] doubled) {
        same = Identity (x)
        counts = TfIdfVectorizer <mode = "TF", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0,
            ngram_counts = [0], ngram_indexes = [2, 0, 1], pool_strings = ["a", "b", "c"]> (x)
        doubled = Add (counts, counts) }"""
    engine, x = Compiled(model(text)), np.array(["a", "b", "a", "z"], object)
    engine.run({"x": x})
    found = engine.run_fast({"x": x})
    assert found is not None
    assert found["same"].tolist() == x.tolist()
    assert not np.shares_memory(found["same"], x)
    np.testing.assert_array_equal(found["counts"], [1, 0, 2])
    np.testing.assert_array_equal(found["doubled"], [2, 0, 4])


def test_limits_count_the_calls_before_kernels():
    engine, feeds = Compiled(model(PIPELINE), limits=sabir.Limits()), feeds_of(3)
    engine.run(feeds)
    found = engine.run_fast(feeds)
    assert found is not None
    check_equal(found, sabir.evaluate(model(PIPELINE), feeds))
