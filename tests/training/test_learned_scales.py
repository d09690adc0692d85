"""`prepare(learn_scales=True)`: the gradients of scales are those of PyTorch's learnable fake quantization."""

import numpy as np
import pytest

import sabir
from sabir import UnsupportedError
from sabir.training import SGD, Adam, prepare, training_plan

NETWORK = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {0.4, -0.8, 0.25, 0.6, -0.1, 1.3}, float s = {0.01}, int8 z = {3},
    float[2] sw = {0.007, 0.01}, int8[2] zw = {0, 0}> {
    q = QuantizeLinear (x, s, z)  d = DequantizeLinear (q, s, z)
    qw = QuantizeLinear <axis = 1> (w, sw, zw)  dw = DequantizeLinear <axis = 1> (qw, sw, zw)
    y = MatMul (d, dw)
}"""
X = np.float32([[0.9, -0.31, 2.2], [0.12, -1.7, 0.55]])
FEEDS = {"x": X, "label": np.float32([[0.5, 0.2], [-0.3, 0.1]])}
# torch._fake_quantize_learnable_per_tensor_affine and _per_channel_affine of PyTorch 2.13, grad_factor 1/sqrt(3*127)
LOSS = 0.10435482859611511
GRADIENTS = {
    "s": 2.5984907150268555, "sw": [-0.0009794330690056086, 1.3838711977005005],
    "w": [-0.15541139245033264, 0.19395005702972412, 0.07645539194345474, 0.1130283996462822, -0.22107328474521637, 0.0],
}  # fmt: skip


def session(text=NETWORK, **options):
    return sabir.TrainingSession(prepare(sabir.parse(text), "mse", **options), engine="reference")


@pytest.mark.parametrize("options", [{}, {"split": True}, {"recompute": "MatMul"}])
def test_gradients_are_those_of_pytorch(options):
    text = NETWORK.replace("y = MatMul", '["MatMul"] y = MatMul')
    trained = session(text, optimizer=SGD(1e-3), learn_scales=True, **options)
    before = {n: v.copy() for n, v in trained.state.items()}
    np.testing.assert_allclose(trained.step(FEEDS)["loss"], LOSS, rtol=1e-6)
    for name, gradient in GRADIENTS.items():
        found = (before[name] - trained.state[name]) / 1e-3
        np.testing.assert_allclose(found, np.reshape(gradient, found.shape), rtol=1e-3, atol=2e-5)


def test_the_network_for_inference_is_quantized_by_the_learned_scales():
    trained = session(optimizer=Adam(1e-3), learn_scales=True)
    losses = [float(trained.step(FEEDS)["loss"]) for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]
    assert trained.state["s"] != np.float32(0.01)
    network = trained.export()
    assert [n.op for n in network.graph] == ["QuantizeLinear", "DequantizeLinear"] * 2 + ["MatMul"]
    np.testing.assert_array_equal(network.graph.initializers["sw"].array(), trained.state["sw"])
    loss = np.mean((trained.run({"x": X})["y"] - FEEDS["label"]) ** 2)
    np.testing.assert_allclose(trained.step(FEEDS, 1, outputs="loss")["loss"], loss, rtol=1e-6)
    # a scale stays above 0
    trained = session(optimizer=SGD(1e3), learn_scales=True)
    trained.step(FEEDS)
    assert trained.state["s"] == np.float32(1e-8)


def test_what_is_learned_is_in_the_plan():
    model = sabir.parse(NETWORK)
    assert training_plan(model).trained == ("w",)
    plan = training_plan(model, learn_scales=True)
    assert {d.name: d.reason for d in plan.decisions if d.action == "trained"} == {
        "w": "weight of MatMul", "s": "scale of a quantization, which is learned",
        "sw": "scale of a quantization, which is learned",
    }  # fmt: skip
    assert training_plan(model, learn_scales=True, frozen="s").trained == ("w", "sw")
    with pytest.raises(UnsupportedError, match="there is no scale to learn: no initializer is the scale"):
        prepare(
            sabir.parse(
                NETWORK.replace("DequantizeLinear (q, s, z)", "Cast <to = 1> (q)").replace(
                    "qw, sw, zw", "qw, s"
                )
            ),
            learn_scales=True,
        )
