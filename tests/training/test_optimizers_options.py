"""What every optimizer may have: limits of the gradients and moving averages of the weights."""

import numpy as np
import onnx  # ruff: ignore[banned-api]  a judge of the models
import pytest

import sabir
from sabir import UnsupportedError
from sabir.checking import findings
from sabir.training import SGD, AdamW, averaged, prepare, step_model, trained_weights

W, V = np.array([[0.5, -1.0, 2.0], [1.5, 0.0, -0.75]]), np.array([0.25, -0.5, 1.0])
X = np.array([[1.0, 2.0], [3.0, 4.0], [-1.0, 0.5]])
T = np.array([[0.0, 1, 2], [1, -1, 0.5], [2, 0, -1]])
FEEDS = {"x": X, "label": T}
STYLE = {"ATTR006", "MODEL009", "GRAPH014"}  # documentation that the model did not have before either
# four steps of SGD(0.1) of torch 2.13, by AveragedModel and get_ema_multi_avg_fn(0.9)
AVERAGES = {
    "w": [-0.13685283893461, -0.74208691872428, 1.73608538813634, 0.68093103652263, 0.3595105661294, -1.05966839870542],
    "v": [0.04191310871056, -0.3895169053879, 0.9481370745218],
}  # fmt: skip


def affine():
    b = sabir.Builder(21)
    product = b.MatMul(b.input("x", "double", ["N", 2]), b.initializer("w", W))
    b.output(b.Add(product, b.initializer("v", V)), "y")
    return b.model()


def trained(steps, *, engine="reference", **options):
    session = sabir.TrainingSession(prepare(affine(), "mse", **options), engine=engine)
    for _ in range(steps):
        session.step(FEEDS)
    return session


def slopes():
    """The gradients of the mean squared error at the first weights."""
    error = 2 * (X @ W + V - T) / T.size
    return X.T @ error, error.sum(0)


def test_elements_of_gradients_are_limited_and_then_their_norm():
    dw, dv = (np.clip(g, -1.5, 1.5) for g in slopes())
    assert (abs(slopes()[0]) > 1.5).any()
    assert (abs(slopes()[1]) < 1.5).any()
    for engine in ("reference", "compiled"):
        state = trained(1, optimizer=SGD(1.0), clip_value=1.5, engine=engine).state
        np.testing.assert_allclose(state["w"], W - dw, rtol=1e-13)
        np.testing.assert_allclose(state["v"], V - dv, rtol=1e-13)
    norm = np.sqrt((dw**2).sum() + (dv**2).sum())
    state = trained(1, optimizer=SGD(1.0), clip_value=1.5, clip=0.5).state
    np.testing.assert_allclose(state["w"], W - dw * 0.5 / (norm + 1e-6), rtol=1e-12)


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_averages_are_those_of_pytorch(engine):
    session = trained(4, optimizer=SGD(0.1), average=0.9, engine=engine)
    model = averaged(session.checkpoint())
    for name, expected in AVERAGES.items():
        value = model.graph.initializers[model.graph.value(name)].numpy()
        np.testing.assert_allclose(value.ravel(), expected, rtol=1e-12)
        np.testing.assert_array_equal(session.state[f"average_{name}"], value)
    assert not model.training
    w, v = (np.reshape(AVERAGES[n], a.shape) for n, a in (("w", W), ("v", V)))
    (y,) = sabir.evaluate(model, {"x": X}).values()
    np.testing.assert_allclose(y, X @ w + v, rtol=1e-12)
    # the weights themselves are trained as without averages
    plain = trained(4, optimizer=SGD(0.1), engine=engine)
    assert np.array_equal(plain.state["w"], session.state["w"])
    assert trained_weights(session.model) == ["w", "v"]


def test_averages_follow_steps_of_accumulated_and_split_gradients(tmp_path):
    expected = trained(2, optimizer=AdamW(0.1), average=0.75).state["average_w"]
    accumulated = trained(3, optimizer=AdamW(0.1), average=0.75, accumulate=2)
    assert np.array_equal(accumulated.state["average_w"], accumulated.state["w"]), "one step is applied"
    accumulated.step(FEEDS)
    split = trained(2, optimizer=AdamW(0.1), average=0.75, split=True)
    for session in (accumulated, split):
        np.testing.assert_allclose(session.state["average_w"], expected, rtol=1e-12)
        session.save(tmp_path / "half.onnx")
        model = averaged(sabir.load(tmp_path / "half.onnx"))
        np.testing.assert_allclose(
            model.graph.initializers[model.graph.value("w")].numpy(), expected, rtol=1e-12
        )


def test_prepared_models_pass_the_checkers():
    for options in ({}, {"accumulate": 2}, {"split": True}, {"initialize": "glorot"}):
        model = prepare(affine(), "mse", average=0.99, clip_value=1.0, clip=2.0, **options)
        model = sabir.loads(sabir.dumps(model))
        for part in (model, *(step_model(model, i) for i in range(len(model.training)))):
            assert {f.rule for f in findings(part, strict=True)} <= STYLE
            onnx.checker.check_model(onnx.load_from_string(sabir.dumps(part)), full_check=True)


def test_what_is_refused():
    for options in ({"average": 1.0}, {"average": -0.5}, {"clip_value": 0.0}, {"clip_value": -1.0}):
        with pytest.raises(UnsupportedError, match=next(iter(options))):
            prepare(affine(), "mse", **options)
    with pytest.raises(UnsupportedError, match="no averages"):
        averaged(prepare(affine(), "mse"))
    taken = sabir.rename(affine(), {"y": "average_w"})
    with pytest.raises(UnsupportedError, match="'average_w'"):
        prepare(taken, "mse", average=0.9)
