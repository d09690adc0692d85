"""`prepare`: its parts beside numpy in double precision, and what other implementations think of the models."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import onnxruntime
import pytest

import sabir
from sabir import UnsupportedError
from sabir.base import NotFoundError
from sabir.checking import findings
from sabir.training import (
    SGD,
    Adagrad,
    Adam,
    AdamW,
    BinaryCrossEntropy,
    Constant,
    Cosine,
    Group,
    Linear,
    StandardOptimizer,
    Step,
    initialization_model,
    prepare,
    step_model,
    trained_weights,
    training_plan,
)

LINEAR = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (double[N,2] x) => (double[N] y) <double[2] w = {1.0, -2.0}, double[1] b = {0.5}> { p = MatMul (x, w)  y = Add (p, b) }"
)
X, T = np.array([[1.0, 2], [3, 4], [-1, 0.5]]), np.array([0.0, 1, 2])
FEEDS = {"x": X, "label": T}
STYLE = {"ATTR006", "MODEL009", "GRAPH014"}  # documentation that the model did not have before either


def trained(text=LINEAR, loss="mse", steps=1, feeds=FEEDS, **options):
    session = sabir.TrainingSession(prepare(sabir.parse(text), loss, **options), engine="reference")
    return session, [session.step(feeds, 0, session.outputs_of(0)) for _ in range(steps)]


def slope(w, b, x=X, t=T):
    """The gradient of the mean squared error by the weights and the bias."""
    error = x @ w + b - t
    return 2 * x.T @ error / len(t), 2 * error.mean(keepdims=True)


def test_a_step_of_gradient_descent_by_hand():
    session, (found,) = trained(optimizer=SGD(0.1), metrics=["mae", "mse"])
    w, b = np.array([1.0, -2]), np.array([0.5])
    dw, db = slope(w, b)
    np.testing.assert_allclose(session.state["w"], w - 0.1 * dw, rtol=1e-14)
    np.testing.assert_allclose(session.state["b"], b - 0.1 * db, rtol=1e-14)
    error = X @ w + b - T
    np.testing.assert_allclose([found["loss"], found["mse"]], np.mean(error**2))
    np.testing.assert_allclose(found["mae"], np.mean(np.abs(error)))
    assert session.state["training_step"] == 1
    assert session.step(FEEDS).keys() == {"loss"}, "metrics, the rate and the output of inference on request"
    # the evaluation assigns nothing, and sees the new weights
    before = {n: v.tobytes() for n, v in session.state.items()}
    found = session.step(FEEDS, 1)
    np.testing.assert_allclose(found["loss"], np.mean((X @ session.state["w"] + session.state["b"] - T) ** 2))
    assert {n: v.tobytes() for n, v in session.state.items()} == before


def test_the_norm_of_the_gradients_is_clipped():
    dw, db = slope(np.array([1.0, -2]), np.array([0.5]))
    norm = np.sqrt((dw**2).sum() + (db**2).sum())
    for clip in (0.5, 1000.0):
        session, _ = trained(optimizer=SGD(1.0), clip=clip)
        share = min(1, clip / (norm + 1e-6))
        np.testing.assert_allclose(session.state["w"], [1, -2] - share * dw, rtol=1e-13)


def test_gradients_are_accumulated():
    batches = [(X[:2], T[:2]), (X[1:], T[1:]), (X, T)]
    session = sabir.TrainingSession(
        prepare(sabir.parse(LINEAR), "mse", optimizer=Adam(0.1), accumulate=3), engine="reference"
    )
    plain = sabir.TrainingSession(
        prepare(sabir.parse(LINEAR), "mse", optimizer=Adam(0.1), split=True), engine="reference"
    )
    for _ in range(2):
        for x, t in batches:
            session.step({"x": x, "label": t}, 0)
            plain.step({"x": x, "label": t}, 0)
        plain.step({}, 1, outputs="rate")
    assert session.state["training_step"] == plain.state["training_step"] == 2
    assert plain.state["grad_count"] == 3
    for name in ("w", "b", "mean_w", "squares_b"):
        np.testing.assert_allclose(session.state[name], plain.state[name], rtol=1e-13)
    # one step by hand: Adam moves each parameter by its rate at first
    first, _ = trained(optimizer=Adam(0.1), accumulate=3, steps=2)
    assert first.state["w"].tolist() == [1, -2]
    first.step(FEEDS, 0)
    np.testing.assert_allclose(np.abs(first.state["w"] - [1, -2]), 0.1, rtol=1e-7)


def test_a_split_model_lets_the_caller_average_gradients():
    one = sabir.TrainingSession(
        prepare(sabir.parse(LINEAR), "mse", optimizer=SGD(0.1), split=True), engine="reference"
    )
    one.step({"x": X[:1], "label": T[:1]}, 0)
    dw, _ = slope(np.array([1.0, -2]), np.array([0.5]), X[:1], T[:1])
    np.testing.assert_allclose(one.state["grad_w"], dw)
    one.state["grad_w"] = [1.0, 2.0]
    one.step({}, 1, outputs=())
    np.testing.assert_allclose(one.state["w"], [0.9, -2.2])
    assert [v.name for v in one.export().graph.initializers] == ["w", "b"]


def test_patterns_choose_what_is_trained():
    session, _ = trained(frozen=["b"], optimizer=SGD(0.1))
    assert "b" not in session.state
    for one_pattern in ({"frozen": "b*"}, {"trainable": "w*"}):
        assert trained(optimizer=SGD(0.1), **one_pattern)[0].state.keys() == session.state.keys()
    session, _ = trained(trainable=["b"], optimizer=SGD(0.1))
    assert "w" not in session.state
    w, b = np.array([1.0, -2]), np.array([0.5])
    dw, db = slope(w, b)
    groups = [Group("*", scale=0.5), Group("b", weight_decay=0.0, scale=2.0)]
    session, _ = trained(optimizer=SGD(0.1, weight_decay=0.25), groups=groups)
    np.testing.assert_allclose(session.state["w"], w - 0.05 * (dw + 0.25 * w), rtol=1e-14)
    np.testing.assert_allclose(session.state["b"], b - 0.2 * db, rtol=1e-14)
    for options in ({"trainable": ["q*"]}, {"frozen": ["q"]}, {"groups": [Group("q")]}):
        with pytest.raises(NotFoundError, match="q"):
            trained(**options)
    with pytest.raises(UnsupportedError, match="nothing to train"):
        trained(frozen=["*"])


def test_what_no_gradient_reaches_is_not_trained():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N,2,2,2] x) => (float[N,2] y) <float[2] s = {1, 1}, float[2] t = {0, 0}, float[2] mean = {0, 0}, float[2] var = {1, 1},"
        " float[4] scales = {1, 1, 2, 2}, float[2] unused = {0, 0}, int64[2] axes = {2, 3}> {"
        " n = BatchNormalization <momentum = 0.75> (x, s, t, mean, var)  r = Resize (n, , scales)  y = ReduceMean <keepdims = 0> (r, axes) }"
    )
    feeds = {
        "x": np.random.default_rng(1).standard_normal((4, 2, 2, 2)).astype(np.float32),
        "label": np.zeros((4, 2), np.float32),
    }
    session, _ = trained(text, "mse", feeds=feeds, optimizer=SGD(0.1))
    assert set(session.state) == {"s", "t", "mean", "var", "learning_rate", "training_step"}
    batch = feeds["x"].astype(np.float64).transpose(1, 0, 2, 3).reshape(2, -1)
    np.testing.assert_allclose(session.state["mean"], 0.25 * batch.mean(1), rtol=1e-5)
    np.testing.assert_allclose(session.state["var"], 0.75 + 0.25 * batch.var(1), rtol=1e-5)
    # inference uses the running statistics, and frozen ones stay
    got = session.run({"x": feeds["x"]})["y"]
    at = session.state
    n = (feeds["x"] - at["mean"][:, None, None]) / np.sqrt(at["var"] + 1e-5)[:, None, None]
    n = n * at["s"][:, None, None] + at["t"][:, None, None]
    np.testing.assert_allclose(got, n.mean((2, 3)), rtol=1e-4, atol=1e-5)
    session, _ = trained(text, "mse", feeds=feeds, optimizer=SGD(0.1), frozen=["mean", "var"])
    assert not {"mean", "var"} & set(session.state)


def test_dropout_is_on_in_the_algorithm_alone():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (float[N,200] x) => (float[N,200] y) <float[200] w, float r = {0.25}> { d = Dropout (x, r)  y = Mul (d, w) }"
    )
    model = sabir.parse(text.replace("w,", "w = {" + ", ".join(["1"] * 200) + "},"))
    session = sabir.TrainingSession(prepare(model, "mse", optimizer=SGD(1.0)), engine="reference", seed=3)
    ones = np.ones((1, 200), np.float32)
    masks = []
    for _ in range(2):
        session.state["w"] = np.ones(200, np.float32)
        session.step({"x": ones, "label": ones * 0}, 0)
        # d(mean(d w)^2)/dw = 2 d^2 w / 200: zero where an element is dropped, 2 (4/3)^2 / 200 elsewhere
        moved = 1 - session.state["w"]
        kept = moved > 1e-6
        np.testing.assert_allclose(moved[kept], 2 * (4 / 3) ** 2 / 200, rtol=1e-4)
        assert 120 < kept.sum() < 180
        masks.append(kept)
    assert not np.array_equal(*masks)
    session.state["w"] = np.ones(200, np.float32)
    assert session.step({"x": ones, "label": ones * 0}, 1) == {"y": pytest.approx(ones), "loss": 1}


def test_dropout_in_a_function_is_on_too():
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>\n'
        "g (float[N,20] x) => (float[N,20] y) <float[20] w = {W}> { d = local.drop (x)  y = Mul (d, w) }\n"
        '<domain: "local", opset_import: ["" : 21]>\ndrop (x) => (y) { r = Constant <value_float = 0.5> ()  y = Dropout (x, r) }'
    ).replace("{W}", "{" + ", ".join("1" * 20) + "}")
    ones = np.ones((1, 20), np.float32)
    session, _ = trained(text, "mse", feeds={"x": ones, "label": ones * 0}, optimizer=SGD(1.0))
    assert 0 < (session.state["w"] == 1).sum() < 20


def rates(schedule, steps):
    _, found = trained(optimizer=SGD(schedule), steps=steps)
    return [float(f["rate"]) for f in found]


def test_schedules():
    assert rates(0.5, 2) == rates(Constant(0.5), 2) == [0.5, 0.5]
    np.testing.assert_allclose(rates(Step(0.4, every=2, factor_each=0.5), 5), [0.4, 0.4, 0.2, 0.2, 0.1])
    np.testing.assert_allclose(
        rates(Linear(0.4, 6, warmup=2, end=0.1), 8), [0.2, 0.4, 0.4, 0.325, 0.25, 0.175, 0.1, 0.1]
    )
    wave = [0.5 * (1 + np.cos(np.pi * k / 4)) for k in range(5)]
    np.testing.assert_allclose(rates(Cosine(1e-2, 4), 6), np.array([*wave, 0]) * 1e-2, atol=1e-9)
    session, _ = trained(optimizer=SGD(Step(0.4, every=1)))
    session.state["learning_rate"] = 8.0
    np.testing.assert_allclose(session.step(FEEDS, 0, "rate")["rate"], 0.8)
    for wrong in (lambda: Constant(-1.0), lambda: Cosine(0.1, 5, warmup=5), lambda: Step(0.1, every=0)):
        with pytest.raises(UnsupportedError):
            wrong()


def standard(name, steps):
    """The parameters after some steps of an optimizer of the standard, by the formulas of its text."""
    w, b = np.array([1.0, -2]), np.array([0.5])
    state = [[np.zeros_like(p), np.zeros_like(p)] for p in (w, b)]
    for t in range(1, steps + 1):
        new = []
        for p, g, s in zip((w, b), slope(w, b), state, strict=True):
            if name == "Momentum":
                s[0] = 0.9 * s[0] + g
                new.append(p - 0.1 * s[0])
            elif name == "Adagrad":
                s[0] += g * g
                new.append(p - 0.1 * g / (np.sqrt(s[0]) + 1e-6))
            else:
                s[0] = 0.9 * s[0] + (1 - 0.9) * g
                s[1] = 0.999 * s[1] + (1 - 0.999) * g * g
                rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
                new.append(p - rate * s[0] / (np.sqrt(s[1]) + 1e-6))
        w, b = new
    return w, b


@pytest.mark.parametrize("name", ["Momentum", "Adagrad", "Adam"])
def test_optimizers_of_the_standard(name):
    options = {} if name == "Momentum" else {"epsilon": 1e-6}
    session, _ = trained(optimizer=StandardOptimizer(0.1, name, options), steps=20)
    assert name in [node.op for node in session.model.training[0].algorithm]
    for found, expected in zip((session.state["w"], session.state["b"]), standard(name, 20), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    with pytest.raises(UnsupportedError, match="'Lion'"):
        trained(optimizer=StandardOptimizer(0.1, "Lion"))


def test_losses():  # ruff: ignore[too-many-locals]  a table and what it is made of
    rng = np.random.default_rng(2)
    logits, classes = rng.standard_normal((5, 3)), rng.integers(0, 3, 5)
    truth = (rng.standard_normal((5, 3)) > 0).astype(float)
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    ways, truths = np.log(chances), 1 / (1 + np.exp(-logits))
    picked = -ways[np.arange(5), classes].mean()
    binary = -(truth * np.log(truths) + (1 - truth) * np.log(1 - truths)).mean()
    head = '<ir_version: 10, opset_import: ["" : 21]>\ng (double[N,3] x) => (double[N,3] y) <double[3] w = {0, 0, 0}> {'
    cases = [
        ("cross_entropy", "y = Add (x, w) }", logits, classes, picked, (logits.argmax(1) == classes).mean()),
        ("cross_entropy", "z = Add (x, w)  y = Softmax <axis = 1> (z) }", logits, classes, picked, (logits.argmax(1) == classes).mean()),
        ("nll", "y = Add (x, w) }", ways, classes, picked, (logits.argmax(1) == classes).mean()),
        ("mse", "y = Add (x, w) }", logits, truth, ((logits - truth) ** 2).mean(), None),
        ("mae", "y = Add (x, w) }", logits, truth, np.abs(logits - truth).mean(), None),
        ("bce_logits", "y = Add (x, w) }", logits, truth, binary, ((logits > 0) == truth).mean()),
        ("bce", "y = Add (x, w) }", truths, truth, binary, ((logits > 0) == truth).mean()),
        (BinaryCrossEntropy(logits=False), "y = Add (x, w) }", truths, truth, binary, ((logits > 0) == truth).mean()),
    ]  # fmt: skip
    for loss, text, x, t, expected, accuracy in cases:
        metrics = [] if accuracy is None else ["accuracy"]
        _, (found,) = trained(head + text, loss, feeds={"x": x, "label": t}, metrics=metrics)
        np.testing.assert_allclose(found["loss"], expected, rtol=1e-12, err_msg=str(loss))
        assert accuracy is None or found["accuracy"] == pytest.approx(accuracy)
    # a loss that the model computes itself
    own = (
        head.replace("(double[N,3] y)", "(double cost)")
        + "q = Add (x, w)  s = Mul (q, q)  cost = ReduceSum <keepdims = 0> (s) }"
    )
    session, (found,) = trained(own, "cost", feeds={"x": np.ones((1, 3))}, optimizer=SGD(0.5))
    assert session.state["w"].tolist() == [-1, -1, -1]
    assert found["cost"] == 3
    assert session.step({"x": np.ones((1, 3))}, 1)["cost"] == 0


NETWORK = (
    '<ir_version: 10, opset_import: ["" : 21]>\n'
    "g (float[N,1,4,4] x) => (float[N,2] y) <float[3,1,3,3] k = {WEIGHTS}, float[3] s = {1, 1, 1}, float[3] t = {0, 0, 0}, float[3] mean = {0, 0, 0},"
    " float[3] var = {1, 1, 1}, float[3,2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {0, 0}, float r = {0.5}> {"
    " c = Conv <pads = [1, 1, 1, 1]> (x, k)  n = BatchNormalization (c, s, t, mean, var)  a = Relu (n)  p = GlobalAveragePool (a)"
    " f = Flatten (p)  d = Dropout (f, r)  y = Gemm (d, w, b) }"
).replace("WEIGHTS", ", ".join(str(i % 5 - 2) for i in range(27)))
SETTINGS = [
    {"metrics": ["accuracy"], "initialize": {"*": "he", "w": "glorot", "t": "ones"}},
    {"optimizer": SGD(Cosine(0.1, 50, warmup=5), momentum=0.9, nesterov=True), "clip": 1.0, "accumulate": 2},
    {"optimizer": Adagrad(Step(0.1, every=3)), "split": True, "loss": "bce_logits"},
]  # fmt: skip


@pytest.mark.parametrize("options", [*SETTINGS, {"recompute": "norm"}], ids=str)
def test_trained_weights_are_those_that_gradients_change(options):
    """Neither running statistics nor the sums of a split model, which are initializers of the main graph too."""
    model = sabir.loads(
        sabir.dumps(prepare(sabir.parse(NETWORK.replace(" n = ", " [norm] n = ")), frozen="b", **options))
    )
    assert trained_weights(model) == ["k", "s", "t", "w"]


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_prepared_models_pass_the_checkers_and_load_elsewhere(options):
    model = sabir.loads(sabir.dumps(prepare(sabir.parse(NETWORK), **options)))
    every = [model, *(step_model(model, i) for i in range(len(model.training))), initialization_model(model)]
    for found in filter(None, every):
        assert {f.rule for f in findings(found, strict=True)} <= STYLE
        data = sabir.dumps(found)
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    session = sabir.TrainingSession(model, engine="reference")
    if "initialize" in options:
        before = session.state["mean"]
        session.initialize()
        assert np.array_equal(session.state["mean"], before)
        assert session.state["t"].tolist() == [1, 1, 1]
        assert abs(session.state["k"]).max() < 5 * np.sqrt(2 / 9)
        assert abs(session.state["w"]).max() < np.sqrt(6 / 5)
    for x in (sabir.text(model), sabir.dumps(sabir.strip_training(model))):
        assert x


def test_a_step_elsewhere_is_the_same():
    """onnxruntime runs the same step: it needs the state as feeds, and returns the updates."""
    model = prepare(sabir.parse(NETWORK.replace("Dropout (f, r)", "Identity (f)")), optimizer=AdamW(0.01))
    session = sabir.TrainingSession(model, engine="reference")
    rng = np.random.default_rng(3)
    feeds = {"x": rng.standard_normal((4, 1, 4, 4)).astype(np.float32), "label": np.array([0, 1, 0, 1])}
    other = onnxruntime.InferenceSession(sabir.dumps(step_model(model)), providers=["CPUExecutionProvider"])
    wanted = [i.name for i in other.get_inputs()]
    names = [o.name for o in other.get_outputs()]
    got = dict(
        zip(names, other.run(names, {n: feeds.get(n, session.state.get(n)) for n in wanted}), strict=True)
    )
    found = session.step(feeds, 0)
    np.testing.assert_allclose(np.asarray(got["loss"]), found["loss"], rtol=1e-5)
    for name, value in session.state.items():
        np.testing.assert_allclose(np.asarray(got[f"next_{name}"]), value, rtol=1e-3, atol=1e-4, err_msg=name)


def test_recomputation_changes_no_result():
    text = (
        NETWORK
        .replace("c = Conv", "[block_conv] c = Conv")
        .replace("n = Batch", "[block_norm] n = Batch")
        .replace("a = Relu", "[block_relu] a = Relu")
    )
    text = text.replace("d = Dropout", "[drop] d = Dropout").replace(
        "p = GlobalAveragePool (a)", "q = MaxPool <kernel_shape = [2, 2]> (a)  p = GlobalAveragePool (q)"
    )
    rng = np.random.default_rng(3)
    feeds = {"x": rng.standard_normal((4, 1, 4, 4)).astype(np.float32), "label": np.array([0, 1, 0, 1])}
    sessions = [
        trained(text, "cross_entropy", steps=3, feeds=feeds, optimizer=SGD(0.1), recompute=r)[0]
        for r in ((), ["(block)_.*"])
    ]
    plain, again = sessions
    for name, value in plain.state.items():
        np.testing.assert_allclose(again.state[name], value, rtol=1e-5, atol=1e-6, err_msg=name)
    nodes = [node.op for node in again.model.training[0].algorithm]
    assert "Gradient" not in nodes
    assert nodes.count("Dropout") == 1
    assert nodes.count("Conv") == 2, "the one computed again, and the gradient of its filters"
    assert {f.rule for f in findings(again.model, strict=True)} <= STYLE | {"NAME004"}
    with pytest.raises(NotFoundError, match="none of these"):
        prepare(sabir.parse(text), recompute=["none of these"])


def test_a_loss_of_the_model_is_what_a_step_returns_and_fit_reports():
    text = (
        '<ir_version: 10, opset_import: ["" : 21]>\n'
        "g (double[N] x) => (double[N] q, double cost) <double[1] w = {3}, double r = {0}, bool train = {1}>"
        " { [off] e = Sub (x, w)  q = {MODE}  s = Mul (q, q)  cost = ReduceMean <keepdims = 0> (s) }"
    )
    x = {"x": np.ones(4)}
    cases = {("Abs (e)", ()): "cost", ("Abs (e)", "off"): "loss", ("Dropout (e, r, train)", ()): "cost_1"}
    for (mode, recompute), name in cases.items():
        model = prepare(
            sabir.parse(text.replace("{MODE}", mode)), "cost", optimizer=SGD(0.5), recompute=recompute
        )
        session = sabir.TrainingSession(model, engine="reference")
        assert session.step(x) == {name: 4}
        session.initialize()
        (epoch,) = session.fit(x, batch=4, validate=x)
        assert (epoch.results[name], epoch.validation) == (4, {"cost": 0})
        assert next(iter(epoch.results)) == name, "what early stopping looks at"


def test_what_is_refused():
    model = sabir.parse(LINEAR)
    cases = [
        (NotFoundError, {"loss": "hinge"}), (UnsupportedError, {"metrics": ["accuracy"]}), (UnsupportedError, {"metrics": ["f1"]}),
        (UnsupportedError, {"target": "x"}), (NotFoundError, {"output": "z"}), (UnsupportedError, {"accumulate": 0}),
        (UnsupportedError, {"accumulate": 2, "split": True}), (UnsupportedError, {"clip": 0.0}), (UnsupportedError, {"initialize": "magic"}),
        (UnsupportedError, {"loss": "cross_entropy"}), (UnsupportedError, {"loss": "y"}),
        (UnsupportedError, {"optimizer": "adam"}), (NotFoundError, {"initialize": {"q*": "zeros"}}),
        (UnsupportedError, {"frozen": "*"}), (NotFoundError, {"trainable": "q*"}),
    ]  # fmt: skip
    for error, options in cases:
        with pytest.raises(error):
            sabir.TrainingSession(prepare(model, **{"loss": "mse", **options})).step(FEEDS, 0)
    for wrong in (
        lambda: SGD(0.1, momentum=-0.1), lambda: AdamW(0.1, weight_decay=-3), lambda: Adam(0.1, betas=(0.9, 1.0)),
        lambda: Adam(0.1, eps=float("nan")), lambda: Group("*", scale=-1), lambda: Group("*", weight_decay=-1),
    ):  # fmt: skip
        with pytest.raises(UnsupportedError, match="0 or more"):
            wrong()
    with pytest.raises(UnsupportedError, match="strip_training"):
        prepare(prepare(model, "mse"), "mse")
    old = sabir.convert(
        sabir.parse(LINEAR.replace("21", "11").replace("ir_version: 10", "ir_version: 6")), 11
    )
    assert (prepare(old, "mse").opsets[""], prepare(old, "mse").ir_version >= 7) == (18, True)


def test_a_model_in_training_mode_is_for_inference_in_the_main_graph():
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2,2] x) => (float[N,2,2] y)
      <float[2] s = {2, 3}, float[2] t = {0, 1}, float[2] mean = {1, 1}, float[2] var = {4, 4}, float r = {0.5}> {
      on = Constant <value = bool {1}> ()
      n, m1, v1 = BatchNormalization <training_mode = 1, epsilon = 0.0> (x, s, t, mean, var)
      y = Dropout (n, r, on)
    }"""
    x = np.random.default_rng(1).standard_normal((64, 2, 2)).astype(np.float32)
    session, _ = trained(text, "mse", feeds={"x": x, "label": np.zeros_like(x)}, optimizer=SGD(0.0))
    assert [n.op for n in session.model.graph] == ["BatchNormalization", "Dropout"]
    batch = x.astype(np.float64).transpose(1, 0, 2).reshape(2, -1)
    mean, var = 0.9 + 0.1 * batch.mean(1), 3.6 + 0.1 * batch.var(1)
    np.testing.assert_allclose(session.state["mean"], mean, rtol=1e-5)
    np.testing.assert_allclose(session.state["var"], var, rtol=1e-5)
    scale, shift = np.array([2.0, 3]), np.array([0.0, 1])
    expected = (x - mean[:, None]) * (scale / np.sqrt(var))[:, None] + shift[:, None]
    np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-5)
    exported = sabir.Session(session.export(), engine="reference")
    np.testing.assert_allclose(exported.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-5)
    # who decides the mode, or reads what training mode computes, keeps it
    read = text.replace("n, r, on", "n, r, fed").replace("(float[N,2,2] x)", "(float[N,2,2] x, bool fed)")
    graph = prepare(
        sabir.parse(read.replace("(float[N,2,2] y)", "(float[N,2,2] y, float[2] m1)")), "mse"
    ).graph
    layer, dropout = (next(n for n in graph if n.op == op) for op in ("BatchNormalization", "Dropout"))
    assert layer.attributes["training_mode"].value == 1
    assert [v.name for v in dropout.inputs] == ["n", "r", "fed"]


def test_running_statistics_belong_to_one_layer():
    # exporters store equal tensors once, and let Identity name them
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x) => (float[N,2] y) <float[2] one = {1, 1}, float[2] zero = {0, 0}, float[2] b = {0, 0}> {
      var1 = Identity (one)
      copy = Identity (zero)
      mean1 = Identity (copy)
      n = BatchNormalization (x, one, zero, mean1, var1)
      m = BatchNormalization (n, one, b, zero, one)
      y = BatchNormalization (m, one, b, zero, one)
    }"""
    x = np.random.default_rng(1).standard_normal((16, 2)).astype(np.float32) + 3
    feeds = {"x": x, "label": np.ones((16, 2), np.float32)}
    session, _ = trained(text, "mse", feeds=feeds, optimizer=SGD(0.1))
    first, *others = (n.inputs for n in session.model.graph if n.op == "BatchNormalization")
    assert [v.name for v in first] == ["x", "one", "zero", "mean1", "var1"]
    assert others[0][3:] == others[1][3:]
    assert len({*(v.name for v in first[1:]), *(v.name for v in others[0][1:])}) == 8
    np.testing.assert_allclose(session.state["mean1"], 0.1 * x.mean(0), rtol=1e-5)
    np.testing.assert_allclose(session.state["var1"], 0.9 + 0.1 * x.var(0), rtol=1e-5)
    scale = others[0][1].name
    assert scale != "one"
    assert not np.array_equal(session.state[scale], [1, 1])  # it is trained, and no variance any more


@pytest.mark.parametrize("recompute", [(), ("product",)])  # by the operator Gradient, and written out
def test_fake_quantization_trains_the_weights_before_it(recompute):
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x) => (float[N] y) <float[2] w = {1.0, -2.0}, float s = {0.02}, int8 p = {0}> {
        q = QuantizeLinear (w, s, p)  r = DequantizeLinear (q, s, p)  [product] y = MatMul (x, r) }"""
    x = np.random.default_rng(1).standard_normal((16, 2)).astype(np.float32)
    feeds = {"x": x, "label": x @ np.float32([0.3, 0.6])}
    session, _ = trained(text, steps=60, feeds=feeds, optimizer=SGD(0.1), recompute=recompute)
    np.testing.assert_allclose(session.state["w"], [0.3, 0.6], atol=0.02)  # a step of the quantization


@pytest.mark.parametrize("recompute", [(), ("product",)])
def test_a_weight_that_cannot_learn_is_refused(recompute):
    text = """<ir_version: 10, opset_import: ["" : 21]>
    g (float[N,2] x) => (float[N] y) <float[2] w = {0.5, 0.25}> {
        r = Bernoulli (w)  [product] y = MatMul (x, r) }"""
    # Bernoulli, or the comparison with random numbers that a session replaces it by
    with pytest.raises(UnsupportedError, match=r"reaches 'w': it ends at <Node (Bernoulli|Less)>$"):
        trained(text, feeds={"x": np.float32(X), "label": np.float32(T)}, recompute=recompute)


BODIES = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x, bool c) => (float[N,2] y) <int64 three = {{3}}, bool yes = {{1}}{outer}> {{
  h = If (c) <then_branch = t () => (float[N,2] a) {then} {{ a = MatMul (x, {w}) }},
              else_branch = e () => (float[N,2] b) {orelse} {{ b = MatMul (x, {u}) }}>
  p = Loop (three, yes, h) <body = body (int64 i, bool k, float[N,2] s) => (bool k2, float[N,2] s2) {{
        k2 = Identity (k)  {v}  m = MatMul (s, v)  half = Constant <value = float {{0.5}}> ()  s2 = Mul (m, half) }}>
  state, y = Scan (zero, p) <num_scan_inputs = 1, body = row (float[2] q, float[2] r) => (float[2] q2, float[2] o) {rows} {{
        d = MatMul (q, k_weight)  q2 = Add (d, r)  o = Identity (q2) }}>
}}"""


def test_parameters_in_bodies_are_trained():
    w, u, v, k = (
        f"float[2,2] {n} = {{{x}}}"
        for n, x in (
            ("w", "1, 2, 3, 4"),
            ("w", "0.5, 0, 0, 1"),
            ("v", "0.5, 0.1, 0.1, 0.5"),
            ("k_weight", "0, 1, 1, 0"),
        )
    )
    zero = ", float[2] zero = {0, 0}"
    constant = "v = Constant <value = float[2,2] {0.5, 0.1, 0.1, 0.5}> ()"
    inside = BODIES.format(
        outer=zero, then=f"<{w}>", orelse=f"<{u}>", v=constant, rows=f"<{k}>", w="w", u="w"
    )
    first, second = w.replace(" w ", " w_1 "), u.replace(" w ", " w_2 ")
    outside = BODIES.format(
        outer=f"{zero}, {first}, {second}, {v}, {k}", then="", orelse="", v="", rows="", w="w_1", u="w_2"
    )
    trainees = [
        sabir.TrainingSession(
            prepare(sabir.parse(text), "mse", optimizer=SGD(0.01), frozen="zero"), engine="reference"
        )
        for text in (inside, outside)
    ]
    x = np.array([[1, 2], [3, 4]], np.float32)
    for branch in (True, False):
        one, other = (t.step({"x": x, "c": np.array(branch), "label": x})["loss"] for t in trainees)
        assert one == other
    one, other = trainees
    assert {"v", "w_1", "w_2", "k_weight"} <= set(one.state) == set(other.state)
    for name, value in other.state.items():
        np.testing.assert_array_equal(one.state[name], value, err_msg=name)
    assert [one.step({"x": x, "c": x[0, 0] > 0, "label": x})["loss"] for _ in range(20)][-1] < 2


def test_the_plan_says_why_a_constant_of_a_body_is_left():
    text = BODIES.format(
        outer=", float[2] zero = {0, 0}, float[2,2] w = {1, 0, 0, 1}", then="", orelse="", w="w", u="w",
        v="v = Constant <value = float[2,2] {1, 0, 0, 1}> ()",
        rows="<float[2,2] k_weight = {0, 1, 1, 0}, float[2] most = {0, 1}>",
    ).replace("Add (d, r)", "Max (d, most)")  # fmt: skip
    plan = training_plan(sabir.parse(text), frozen="w")
    assert plan.trained == ("v", "k_weight")
    (most,) = (decision for decision in plan.decisions if decision.name == "most")
    assert most.action == "left"
    assert most.reason.endswith("nor name says that it is a parameter; the body of a node has it")
    assert training_plan(sabir.parse(text), trainable="half").trained == ("half",)
