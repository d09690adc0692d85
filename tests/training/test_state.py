# ruff: file-ignore[implicit-string-concatenation-in-collection-literal]  a model is one string of several lines
"""State that changes whole or not at all, is saved and resumed bit for bit, and random numbers that follow it."""

import sys

import numpy as np
import pytest

import sabir
from sabir import EvaluationError, LimitError, SabirError, SchemaError
from sabir.checking import findings
from sabir.elements import FLOAT
from sabir.opsets.families.random.randomness import unit
from sabir.training._random import keys_for
from support.engines import ENGINES

HEAD = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>\n'
# every operator that draws random numbers, one in a branch and one in a loop
DRAWS = (
    "g (float[N] x) => (float[N] y) <float w = {1}, float[3] v = {0, 0, 0}> { y = Mul (x, w) }\n"
    "@training {"
    " initialization: i () => (float[3] v0) { v0 = RandomUniform <shape = [3], low = 2.0, high = 4.0> () },"
    " algorithm: a () => (float[N] kept, bool[N] mask, float[3] v2, float[N] n, double[2] u, float[N] ones, float[N] part, float[K] looped)"
    " <float ratio = {0.25}, bool on = {1}, float[1] half = {0.5}, bool yes = {1}, int64 three = {3}> {"
    "  kept, mask = Dropout (y, ratio, on)"
    "  n = RandomNormalLike <mean = 1.0, scale = 2.0> (x)"
    "  u = RandomUniform <shape = [2], dtype = 11> ()"
    "  s = Shape (x)  p = Expand (half, s)  ones = Bernoulli (p)"
    "  v2 = RandomNormal <shape = [3]> ()"
    "  part = If (yes) <then_branch = t () => (float[N] z) { z, zm = Dropout (y, ratio, on) },"
    "   else_branch = e () => (float[N] z2) { z2 = Identity (y) }>"
    "  looped = Loop (three, , ) <body = b (int64 k, bool c) => (bool c2, float q)"
    "   { c2 = Identity (c)  q = RandomUniform <shape: ints = []> () }>"
    ' }, initialization_binding: ["v": "v0"], update_binding: ["v": "v2"]}'
)  # fmt: skip
X = {"x": np.ones(4000, np.float32)}
NAMES = ["kept", "mask", "v2", "n", "u", "ones", "part", "looped"]


def same(one, other):
    return all(one[k].tobytes() == other[k].tobytes() for k in one) and list(one) == list(other)


def test_random_numbers_depend_on_seed_node_and_step_and_on_no_engine():
    model = sabir.parse(HEAD + DRAWS)
    sessions = [sabir.TrainingSession(model, engine=e, seed=5) for e in ("reference", "compiled")]
    first, other = [[s.step(X, outputs=NAMES) for _ in range(3)] for s in sessions]
    for one, two in zip(first, other, strict=True):
        for name in NAMES:
            np.testing.assert_allclose(one[name], two[name], rtol=1e-5, atol=1e-6)
            assert name in {"v2", "n"} or one[name].tobytes() == two[name].tobytes()  # those have logarithms
    assert all(not np.array_equal(first[0][n], first[1][n]) for n in NAMES)
    assert not np.array_equal(first[0]["kept"], first[0]["part"])
    assert len(set(first[0]["looped"].tolist())) == 3
    elsewhere = sabir.TrainingSession(model, engine="reference", seed=6).step(X, outputs=NAMES)
    assert all(not np.array_equal(first[0][n], elsewhere[n]) for n in NAMES)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_draws_what_a_node_with_its_key_draws(engine):
    """The first of the seven nodes; a dropped element is 0, even if it is infinite."""
    x = {"x": np.full(4000, np.inf, np.float32)}
    found = sabir.TrainingSession(sabir.parse(HEAD + DRAWS), engine=engine, seed=5).step(x, outputs=NAMES)
    key = tuple(keys_for((5, 1, 0, 0), 7)[:2].tolist())
    assert np.array_equal(found["mask"], unit((4000,), FLOAT, key) >= 0.25)
    assert np.array_equal(found["kept"], np.where(found["mask"], np.float32(np.inf), 0))


def test_random_numbers_have_their_distributions():
    found = sabir.TrainingSession(sabir.parse(HEAD + DRAWS), engine="reference").step(X, outputs=NAMES)
    assert set(np.unique(found["kept"]).tolist()) == {0.0, float(np.float32(1) / np.float32(0.75))}
    assert np.array_equal(found["kept"] != 0, found["mask"])
    for name, mean, spread in (("mask", 0.75, 0.433), ("n", 1, 2), ("ones", 0.5, 0.5)):
        values = found[name].astype(np.float64)
        assert abs(values.mean() - mean) < 5 * spread / np.sqrt(4000)
        assert abs(values.std() - spread) < 0.1 * spread
    assert found["u"].dtype == np.float64
    assert ((found["u"] >= 0) & (found["u"] < 1)).all()


def test_an_initialization_is_repeatable_and_within_its_bounds():
    trained = sabir.TrainingSession(sabir.parse(HEAD + DRAWS), engine="reference", seed=1)
    trained.initialize()
    first = trained.state["v"]
    assert ((first >= 2) & (first < 4)).all()
    trained.step(X, outputs=())
    trained.initialize()
    assert np.array_equal(trained.state["v"], first)


def test_a_seeded_node_keeps_its_numbers():
    text = HEAD + DRAWS.replace("Dropout (y", "Dropout <seed = 3> (y", 1)
    trained = sabir.TrainingSession(sabir.parse(text), engine="reference")
    one, two = (trained.step(X, outputs=["kept", "part"]) for _ in range(2))
    assert np.array_equal(one["kept"], two["kept"])
    assert not np.array_equal(one["part"], two["part"])


@pytest.mark.parametrize("engine", ENGINES)
def test_a_saved_session_goes_on_bit_for_bit(engine, tmp_path):
    model = sabir.parse(HEAD + DRAWS)
    whole = sabir.TrainingSession(model, engine=engine, seed=9)
    whole.initialize()
    whole.step(X, outputs=())
    whole.save(tmp_path / "half.onnx")
    resumed = sabir.TrainingSession(tmp_path / "half.onnx", engine=engine)
    assert (resumed.seed, resumed.steps) == (9, 1)
    for _ in range(2):
        assert same(whole.step(X, outputs=NAMES), resumed.step(X, outputs=NAMES))
    assert same(dict(whole.state), dict(resumed.state))
    # it is reset to what it was saved with, which is all that the file says
    assert sabir.dumps(sabir.load(tmp_path / "half.onnx")) != sabir.dumps(whole.checkpoint())
    assert not [f for f in findings(tmp_path / "half.onnx") if f.severity == "error"]


def test_the_inference_model_of_a_session():
    trained = sabir.TrainingSession(sabir.parse(HEAD + DRAWS), engine="reference")
    trained.state["v"] = [1, 2, 3]
    found = trained.export()
    assert (found.training, found.metadata, list(found.opsets)) == ([], None, [""])
    assert [v.name for v in found.graph.initializers] == ["w"]  # only training read v
    assert np.array_equal(sabir.evaluate(found, X)["y"], trained.run(X)["y"])
    assert len(trained.model.training) == 1


LAST = (
    "g (float[N] x) => (float y) <float w = {1}, float[2] v = {1, 2}> { y = ReduceSum <keepdims = 0> (x) }\n"
)
FAILING = {
    "a shape that depends on the feeds": (
        '@training {algorithm: a () => (float w2, float[M] v2) { w2 = Neg (w)  v2 = Identity (x) }, update_binding: ["w": "w2", "v": "v2"]}',
        EvaluationError, r"assigns float32\[3\] to the state variable 'v', which is float32\[2\]",
    ),
    "a node that fails": (
        "@training {algorithm: a () => (float w2, float[M] v2) <int64 far = {9}> { w2 = Neg (w)  q = Gather (x, far)  v2 = Add (v, q) },"
        ' update_binding: ["w": "w2", "v": "v2"]}',
        EvaluationError, "index 9",
    ),
    "a second algorithm that fails": (
        '@training {algorithm: a () => (float w2) { w2 = Neg (w) }, update_binding: ["w": "w2"]}\n'
        '@training {algorithm: c () => (float[M] v2) { v2 = Identity (x) }, update_binding: ["v": "v2"]}',
        EvaluationError, "algorithm 1 assigns",
    ),
    "an endless loop": (
        "@training {algorithm: a () => (float w2) <bool yes = {1}> { w2 = Loop (, yes, w)"
        ' <body = b (int64 i, bool c, float f) => (bool c2, float f2) { c2 = Identity (c)  f2 = Neg (f) }> }, update_binding: ["w": "w2"]}',
        LimitError, "as often as they may",
    ),
    "terabytes": (
        "@training {algorithm: a () => (float w2) <int64[2] huge = {1000000, 1000000}> { q = ConstantOfShape (huge)  w2 = ReduceSum <keepdims = 0> (q) },"
        ' update_binding: ["w": "w2"]}',
        LimitError, "memory",
    ),
    "a cycle": (
        '@training {algorithm: a () => (float w2) { q = Neg (w2)  w2 = Neg (q) }, update_binding: ["w": "w2"]}',
        SchemaError, "cycle",
    ),
    "a derivative of itself": (
        '@training {algorithm: a () => (float w2) { w2 = ai.onnx.preview.training.Gradient <xs = ["w"], y = "w2"> (w) }, update_binding: ["w": "w2"]}',
        SchemaError, "own result",
    ),
    "a derivative by a name of nothing": (
        '@training {algorithm: a () => (float w2) { w2 = ai.onnx.preview.training.Gradient <xs = ["ww"], y = "y"> (w) }, update_binding: ["w": "w2"]}',
        SabirError, "'ww'",
    ),
    "an unknown operator": (
        '@training {algorithm: a () => (float w2) { w2 = Nag (w) }, update_binding: ["w": "w2"]}',
        SchemaError, "Nag",
    ),
    "random numbers without a number of the iteration": (
        "@training {algorithm: a () => (float[M] v2) { v2 = Scan <num_scan_inputs = 1, body = b (float e) => (float f)"
        ' { f = RandomUniform <shape: ints = []> () }> (v) }, update_binding: ["v": "v2"]}',
        SabirError, "Scan",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAILING)
def test_a_step_that_fails_leaves_the_state(name):
    text, error, words = FAILING[name]
    trained = sabir.TrainingSession(sabir.parse(HEAD + LAST + text), limits=sabir.Limits(iterations=1000))
    before = dict(trained.state)
    for _ in range(2):
        with pytest.raises(error, match=words):
            trained.step({"x": np.ones(3, np.float32)})
        assert same(before, dict(trained.state))
        assert trained.steps == 0


def test_bad_metadata_is_refused():
    model = sabir.parse(HEAD + LAST)
    for text in ("-1", "many", "9" * 40, "\u0663"):
        model.metadata = {"sabir.training.step": text}
        with pytest.raises(SchemaError, match=r"sabir\.training\.step"):
            sabir.TrainingSession(model)
    with pytest.raises(SabirError, match="no engine 'turbo'"):
        sabir.TrainingSession(sabir.parse(HEAD + LAST), engine="turbo")
    with pytest.raises(SabirError, match="seed"):
        sabir.TrainingSession(sabir.parse(HEAD + LAST), seed=-1)


def test_an_interrupt_leaves_all_or_nothing():
    """A KeyboardInterrupt at every line of the training package: both variables change, or none does."""
    text = (
        "g (float x) => (float y) <float a = {0}, float b = {0}> { y = Add (x, a) }\n"
        "@training {algorithm: s () => (float a2, float b2) <float one = {1}> { a2 = Add (a, one)  b2 = Add (b, one) },"
        ' update_binding: ["a": "a2", "b": "b2"]}'
    )
    trained = sabir.TrainingSession(sabir.parse(HEAD + text), engine="reference")
    trained.step({"x": 1})
    left, stops = [0], 0

    def trace(frame, event, _):
        if not frame.f_globals.get("__name__", "").startswith("sabir.training"):
            return None
        if event == "line":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt
        return trace

    for lines in range(1, 200):
        left[0], before = lines, float(trained.state["a"])
        sys.settrace(trace)
        try:
            trained.step({"x": 1})
        except KeyboardInterrupt:
            stops += 1
        finally:
            sys.settrace(None)
        a, b = float(trained.state["a"]), float(trained.state["b"])
        assert a == b
        assert a in {before, before + 1}
        assert trained.steps == a
    assert 20 < stops < 199


def test_a_range_without_numbers_is_refused():
    text = HEAD + DRAWS.replace("low = 2.0, high = 4.0", "low = 2.0, high = 1.0")
    trained = sabir.TrainingSession(sabir.parse(text), engine="reference")
    with pytest.raises(EvaluationError, match="no numbers lie evenly between 2"):
        trained.initialize()
