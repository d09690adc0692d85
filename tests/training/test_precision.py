"""Training in 16 bits: curves beside autocast of PyTorch, masters, scaled losses, and models stored in 16 bits."""

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import onnxruntime
import pytest

import sabir
from sabir import EvaluationError, UnsupportedError
from sabir.checking import findings
from sabir.inference import infer
from sabir.training import SGD, Adam, AdamW, CrossEntropy, averaged, prepare, step_model
from support import exported

FOLDER = Path(__file__).with_name("exports")
RECORDED = json.loads((FOLDER / "curves.json").read_text())
STEPS = 60
HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
# the bias of a product takes its type; a mask that float16 does not have, and a mean, do not
LAYERS = (
    HEAD
    + "g (float[N,2] x) => (float[N,2] y) <float[2,2] w = {1, 2, 3, -4}, float[2] b = {0, 1}, float[1,2] mask = {0, -100000},"
    " float[2] s = {1, 1}> { p = MatMul (x, w)  q = Add (p, b)  r = Relu (q)  m = Add (r, mask)"
    "  n = LayerNormalization (m, s)  y = MatMul (n, w) }"
)
X = np.random.default_rng(0).standard_normal((8, 2)).astype(np.float32)
FEEDS = {"x": X, "label": (X[:, 0] > X[:, 1]).astype(np.int64)}


def network(name):
    return sabir.load(FOLDER / f"{name}.{'script-kept' if name == 'cnn' else 'script'}.onnx")


@pytest.mark.parametrize(
    ("name", "precision", "skipped"),
    [
        ("mlp", "bfloat16", 0), ("cnn", "bfloat16", 0), ("lm", "bfloat16", 0), ("lstm", "bfloat16", 0),
        ("mlp", "float16", 0), ("vit", "float16", 2),
    ],
)  # fmt: skip
def test_losses_are_near_those_of_autocast(name, precision, skipped):
    """PyTorch's scaler skips the same steps; the one of the mlp comes later."""
    every, curves = RECORDED["every"], RECORDED["losses"][f"{name} adamw"]
    options = {"optimizer": AdamW(exported.RATES["adamw"]), "precision": precision}
    session = sabir.TrainingSession(
        prepare(network(name), CrossEntropy(axis=-1), **options), engine="reference"
    )
    found = [
        float(session.step({"x": x, "label": y}, 0, outputs="loss")["loss"])
        for x, y in exported.batches(name, STEPS)
    ]
    expected = {kind: np.array(curve[: STEPS // every]) for kind, curve in curves.items()}
    np.testing.assert_allclose(found[every - 1 :: every], expected[precision], rtol=0.02)
    if not skipped:
        np.testing.assert_allclose(found[every - 1 :: every], expected["float"], rtol=0.04)
    assert session.state.get("skipped_steps", 0) == skipped
    assert {v.dtype for n, v in session.state.items() if n.endswith("weight")} == {np.dtype(np.float32)}
    assert {str(v.element) for v in session.export().graph.initializers if v.element.is_float} == {"float"}


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_types_are_placed_by_operator(precision):
    model = prepare(sabir.parse(LAYERS), precision=precision, optimizer=SGD(0.1))
    step = step_model(model)
    found = {
        (node.op, str(node.output.type.element))
        for node in infer(model).training[0].algorithm
        if node.op in {"MatMul", "LayerNormalization", "Relu"}
    }
    assert found == {
        ("MatMul", precision), ("LayerNormalization", "float"), ("Relu", precision),
    }  # fmt: skip
    elements = {v.name: str(v.element) for v in step.graph.outputs}
    assert {elements["loss"], elements["next_w"], elements["next_b"]} == {"float"}
    assert all(str(v.element) == "float" for v in model.graph.initializers)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("options", [{}, {"split": True}, {"accumulate": 2}])
def test_the_file_is_one_of_the_standard(tmp_path, precision, options):
    model = prepare(sabir.parse(LAYERS), precision=precision, optimizer=Adam(0.01), **options)
    path = tmp_path / "training.onnx"
    sabir.save(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    assert [f for f in findings(path) if f.severity == "error"] == []


def test_onnxruntime_computes_the_same_step():
    model = prepare(sabir.parse(LAYERS), precision="float16", optimizer=SGD(0.1))
    session = sabir.TrainingSession(model, engine="reference")
    step = step_model(model)
    other = onnxruntime.InferenceSession(sabir.dumps(step), providers=["CPUExecutionProvider"])
    feeds = {**FEEDS, **session.state}
    names = [v.name for v in other.get_outputs()]
    expected = dict(
        zip(names, other.run(None, {v.name: feeds[v.name] for v in other.get_inputs()}), strict=True)
    )
    loss = session.step(FEEDS)["loss"]
    np.testing.assert_allclose(loss, np.asarray(expected["loss"]), rtol=1e-3)
    for name in ("w", "b", "s"):
        np.testing.assert_allclose(
            session.state[name], np.asarray(expected[f"next_{name}"]), rtol=2e-3, atol=2e-4
        )
    assert expected["next_loss_scale"] == session.state["loss_scale"] == 2**16


def test_a_step_that_overflows_is_skipped_and_counted():
    session = sabir.TrainingSession(
        prepare(sabir.parse(LAYERS), precision="float16", optimizer=Adam(0.1)), engine="reference"
    )
    session.step(FEEDS)
    session.state["good_steps"] = 5
    before = {n: v.tobytes() for n, v in session.state.items()}
    huge = {**FEEDS, "x": X * np.float32(1e6)}
    with np.errstate(all="ignore"):
        session.step(huge)
    after = session.state
    assert {n for n, v in after.items() if v.tobytes() != before[n]} == {
        "loss_scale",
        "good_steps",
        "skipped_steps",
    }
    assert (after["loss_scale"], after["good_steps"], after["skipped_steps"]) == (2.0**15, 0, 1)
    session.state["good_steps"] = 1999
    session.step(FEEDS)
    assert (session.state["loss_scale"], session.state["good_steps"]) == (2.0**16, 0)
    assert session.state["training_step"] == 2


def test_sums_that_overflow_are_skipped_when_they_are_applied():
    options = {"precision": "float16", "optimizer": SGD(0.1)}
    summed = sabir.TrainingSession(prepare(sabir.parse(LAYERS), accumulate=2, **options), engine="reference")
    split = sabir.TrainingSession(prepare(sabir.parse(LAYERS), split=True, **options), engine="reference")
    batches = [FEEDS, {**FEEDS, "x": X * np.float32(1e6)}, FEEDS, FEEDS]
    with np.errstate(all="ignore"):
        for index, feeds in enumerate(batches):
            summed.step(feeds, 0, outputs=())
            split.step(feeds, 0, outputs=())
            if index % 2:
                split.step({}, 1, outputs=())
    for session in (summed, split):
        counts = [int(session.state[name]) for name in ("training_step", "skipped_steps", "good_steps")]
        assert (counts, float(session.state["loss_scale"])) == ([1, 1, 1], 2.0**15)
    np.testing.assert_allclose(summed.state["w"], split.state["w"], rtol=1e-6)


def test_an_epoch_may_end_with_a_step_that_is_skipped():
    options = {"precision": "float16", "optimizer": SGD(0.1), "split": True}
    session = sabir.TrainingSession(prepare(sabir.parse(LAYERS), **options), engine="reference")
    huge = {**FEEDS, "x": X * np.float32(1e6)}
    with np.errstate(all="ignore"):
        (epoch,) = session.fit([FEEDS, huge])
    assert (session.state["skipped_steps"], session.state["training_step"], epoch.steps) == (1, 1, 2)
    sums = [array for name, array in session.state.items() if name.startswith("grad_w")]
    assert not all(np.isfinite(array).all() for array in sums)


def test_statistics_outlive_a_batch_that_overflows():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 2])
    h = b.MatMul(x, b.initializer("w", np.eye(2, dtype=np.float32)))
    names = {"scale": 1, "bias": 0, "mean": 0, "var": 1}
    h = b.BatchNormalization(h, *(b.initializer(n, np.full(2, v, np.float32)) for n, v in names.items()))
    b.output(b.Identity(h), "y")
    session = sabir.TrainingSession(prepare(b.model(), precision="float16"), engine="reference")
    with np.errstate(all="ignore"):
        session.step({**FEEDS, "x": X * np.float32(1e9)})
    assert (session.state["mean"].tolist(), session.state["skipped_steps"]) == ([0, 0], 1)
    session.step(FEEDS)
    np.testing.assert_allclose(session.state["mean"], 0.1 * X.mean(0), rtol=1e-3)


def test_fit_goes_on_after_an_overflow_and_stops_where_nothing_helps():
    model = prepare(sabir.parse(LAYERS), precision="float16", optimizer=SGD(0.01))
    session = sabir.TrainingSession(model, engine="reference")
    x = X.copy()
    x[0] = 1e6
    with np.errstate(all="ignore"):
        session.fit({**FEEDS, "x": x}, epochs=3, batch=4)
        assert session.state["skipped_steps"] == 3
        with pytest.raises(EvaluationError, match="the loss is nan, and the loss scale has fallen to 0.5"):
            session.fit({**FEEDS, "x": X * np.float32(1e6)}, epochs=20, batch=4)
    assert np.isfinite(session.state["w"]).all()


def halves(dtype):
    """A network with weights, activations and statistics in 16 bits."""
    b, rng = sabir.Builder(21), np.random.default_rng(0)

    def initializer(name, value):
        return b.initializer(name, np.asarray(value).astype(dtype))

    x = b.input("x", sabir.ir.ArrayTensor(np.zeros(1, dtype)).element.name, ["N", 2])
    h = b.Add(b.MatMul(x, initializer("w1", rng.standard_normal((2, 8)))), initializer("b1", np.zeros(8)))
    names = {"scale": 1, "bias": 0, "mean": 0, "var": 1}
    h = b.BatchNormalization(h, *(initializer(name, np.full(8, v)) for name, v in names.items()))
    b.output(b.MatMul(b.Relu(h), initializer("w2", rng.standard_normal((8, 2)))), "y")
    return b.model()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_a_model_that_is_stored_in_16_bits(dtype):
    model, feeds = halves(dtype), {**FEEDS, "x": X.astype(dtype)}
    session = sabir.TrainingSession(prepare(model, optimizer=Adam(0.02), average=0.5), engine="reference")
    np.testing.assert_array_equal(
        session.run({"x": feeds["x"]})["y"], sabir.Session(model).run({"x": feeds["x"]})["y"]
    )
    losses = [float(session.step(feeds)["loss"]) for _ in range(30)]
    assert losses[-1] < 0.6 * losses[0]
    assert {session.state[n].dtype.name for n in ("w1", "mean_w1", "squares_w1", "mean", "average_w1")} == {
        "float32"
    }
    for network in (session.export(), averaged(session.checkpoint())):
        stored = {v.name: v.constant.array().dtype for v in network.graph.initializers}
        assert {stored.pop("mean"), stored.pop("var")} == {np.dtype(np.float32)}
        assert set(stored.values()) == {np.dtype(dtype)}
        assert [n.op for n in network.graph] == [n.op for n in model.graph]
    expected = session.run({"x": feeds["x"]})["y"]
    np.testing.assert_array_equal(sabir.Session(session.export()).run({"x": feeds["x"]})["y"], expected)
    # small steps add up in the masters, which 16 bits would round away
    slow = sabir.TrainingSession(prepare(model, optimizer=SGD(1e-5)), engine="reference")
    slow.step(feeds)
    assert not np.array_equal(slow.state["w2"], model.graph.initializers["w2"].array().astype(np.float32))


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_bodies_and_functions(precision):
    """A body computes in single precision, and returns more where a gradient reads what it computes."""
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[N,2] x, bool c) => (float[N,2] y) <float[2,2] w = {1, 2, 3, 4}, float[2,2] v = {0.1, 0, 0, 0.2}, int64 n = {2}> {
        p = f.layer (x, w)  ok = Constant <value = bool {1}> ()
        q = If (c) <then_branch = a () => (float[N,2] t) { t = MatMul (p, v) }, else_branch = b () => (float[N,2] e) { e = Tanh (p) }>
        y = Loop (n, ok, q) <body = l (int64 i, bool k, float[N,2] s) => (bool m, float[N,2] r) { m = Identity (k)  r = MatMul (s, v) }>
    }
    <domain: "f", opset_import: ["" : 21]> layer (a, m) => (r) { r = MatMul (a, m) }"""
    model = sabir.parse(text)
    states = []
    for options in ({}, {"precision": precision}):
        session = sabir.TrainingSession(prepare(model, optimizer=SGD(0.1), **options), engine="reference")
        for taken in (True, False):
            session.step({**FEEDS, "c": np.array(taken)})
        states.append(session.state)
    for name in ("w", "v"):
        np.testing.assert_allclose(states[1][name], states[0][name], rtol=0.01, atol=1e-3)
        assert not np.array_equal(states[0][name], model.graph.initializers[name].array())


def test_what_cannot_compute_in_16_bits():
    with pytest.raises(
        UnsupportedError, match="there is no precision 'int8'; there are bfloat16, float16, or None"
    ):
        prepare(sabir.parse(LAYERS), precision="int8")
    double = sabir.parse(LAYERS.replace("float[", "double["))
    with pytest.raises(
        UnsupportedError, match="no product, convolution or attention in single precision .* bfloat16"
    ):
        prepare(double, precision="bfloat16")


def test_a_gradient_that_reads_more_results_of_a_node_takes_no_name_of_the_main_graph():
    b = sabir.Builder(21)
    weight = b.initializer("weight", np.eye(4, 3, dtype=np.float32))
    scale = b.initializer("scale", np.ones(4, np.float32))
    b.output(b.MatMul(b.LayerNormalization(b.input("x", "float", ["N", 4]), scale), weight), "y")
    session = sabir.TrainingSession(prepare(b.model(), precision="float16"), engine="reference")
    feeds = {"x": np.eye(4, dtype=np.float32), "label": np.array([0, 1, 2, 0])}
    # by hand: three labels have a score that is 4 / sqrt(3) above the others, and one has equal scores
    expected = (3 * np.log(1 + 2 * np.exp(-4 / np.sqrt(3))) + np.log(3)) / 4
    assert session.step(feeds)["loss"] == pytest.approx(expected, rel=1e-3)
