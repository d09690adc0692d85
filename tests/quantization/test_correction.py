"""Bias correction: the mean error of each output channel goes into the bias."""

import numpy as np
import onnxruntime
import pytest

import sabir
from sabir.ir import verify
from sabir.quantization import quantize_and_report
from sabir.quantization._shift import Shift

RNG = np.random.default_rng(0)


def random(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def reference(model, feeds, *names):
    return sabir.Session(model, engine="reference").run(feeds, list(names) or None)


def test_the_bias_takes_the_error_of_rounded_weights():
    """Weights 127 and 0.4 with a scale of 1 become 127 and 0, so x = (51, 255) loses 102."""
    b = sabir.Builder(21)
    x = b.input("x", "float", [1, 2])
    w = b.initializer("w", np.float32([[127], [0.4]]))
    b.output(b.Gemm(x, w, b.initializer("bias", np.float32([5])), name="product"), "y")
    feeds = {"x": np.float32([[51, 255]])}  # with a scale of 1

    plain = sabir.quantize(b.model(), calibration=[feeds], correct_bias=False)
    found = quantize_and_report(b.model(), calibration=[feeds])

    assert reference(plain, feeds)["y"].item() == 51 * 127 + 5
    assert reference(found.model, feeds)["y"].item() == 51 * 127 + 102 + 5
    bias = found.model.graph.node("product").inputs[2].node.inputs[0]
    assert bias.constant.array().tolist() == [102 + 5]
    (node,) = found.nodes
    assert node.shift == pytest.approx(102 / (51 * 127 + 102 + 5))
    assert not node.uncorrected


def deep():
    """Conv without a bias, Conv, MatMul with an Add, and Gemm with beta, one after the other."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 4, 6, 6])
    h = b.Relu(b.Conv(x, b.initializer("a", random(8, 4, 3, 3)), name="bare"))
    h = b.Relu(
        b.Conv(
            h,
            b.initializer("c", random(8, 1, 3, 3)),
            b.initializer("cb", random(8)),
            group=8,
            name="depthwise",
        )
    )
    h = b.Reshape(h, [0, 32])
    h = b.Relu(
        b.Add(b.initializer("mb", random(16)), b.MatMul(h, b.initializer("m", random(32, 16)), name="sum"))
    )
    b.output(
        b.Gemm(h, b.initializer("g", random(16, 5)), b.initializer("gb", random(5)), beta=0.5, name="last"),
        "y",
    )
    return b.model()


PRODUCTS = {"bare": (0, 2, 3), "depthwise": (0, 2, 3), "sum": (0,), "last": (0,)}


def results_of_layers(model, feeds):
    """Return the means by channel of what each product computes with its bias."""
    values = {}
    for name in PRODUCTS:
        node = model.graph.node(name)
        values[name] = (node.outputs[0].uses[0].user if name == "sum" else node).outputs[0]
        values[name].name = values[name].name or name
    found = reference(model, feeds, *(value.name for value in values.values()))
    return {name: found[value.name].mean(axis=PRODUCTS[name]) for name, value in values.items()}


def test_each_layer_sees_the_corrected_layers_before_it():
    model, feeds = deep(), {"x": random(16, 4, 6, 6)}
    found = quantize_and_report(model, calibration=[feeds])
    verify(found.model)
    sabir.check(found.model)

    wanted, got = results_of_layers(model, feeds), results_of_layers(found.model, feeds)
    plain = results_of_layers(sabir.quantize(model, calibration=[feeds], correct_bias=False), feeds)

    for name, means in wanted.items():
        after, before = (np.abs(means - other[name]).max() for other in (got, plain))
        assert after < before / 5  # the rest comes of int32 biases
    assert all(node.shift > 0 for node in found.nodes if node.name in PRODUCTS)
    peer = np.asarray(onnxruntime.InferenceSession(sabir.dumps(found.model)).run(None, feeds)[0])
    np.testing.assert_allclose(peer, reference(found.model, feeds)["y"], atol=0.02 * np.abs(peer).max())


def test_the_mean_counts_runs_by_their_elements_and_is_trusted_as_far_as_they_agree():
    """One element with the error 4 and three with 8: the mean is 7, its variance (9/16 + 9/16) * 2."""
    shift = Shift(channels=1)
    for mean, size in ((4.0, 1), (7.0, 3)):
        shift.begin(np.zeros(1), size=size, square=0.0)
        shift.end(np.array([mean]))
    assert shift.trust == pytest.approx(1 - 2.25 / 49)
    assert shift.correction == pytest.approx(7 * shift.trust)

    for errors, trust in (([3.0, 3.0, 3.0], 1), ([3.0, -3.0, 0.1], 0)):
        shift = Shift(channels=1)
        for number in range(1, 4):
            shift.begin(np.zeros(1), size=1, square=0.0)
            shift.end(np.array([np.mean(errors[:number])]))
        assert shift.trust == pytest.approx(trust)


def test_several_feeds_correct_as_one_where_they_agree():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 16])
    b.output(b.Gemm(x, b.initializer("w", random(16, 4)), name="product"), "y")
    model, row = b.model(), random(1, 16)
    rows = np.repeat(row, 4, axis=0)
    whole = reference(sabir.quantize(model, calibration=[{"x": rows}]), {"x": rows})["y"]
    np.testing.assert_allclose(whole, reference(model, {"x": rows})["y"], atol=5e-4)
    for sizes in ((1, 3), (0, 4), (2, 0, 2)):
        feeds = [{"x": np.repeat(row, size, axis=0)} for size in sizes]
        parts = sabir.quantize(model, calibration=feeds)
        np.testing.assert_allclose(reference(parts, {"x": rows})["y"], whole, atol=5e-4)


def test_a_shared_bias_becomes_two():
    b = sabir.Builder(21)
    x, bias = b.input("x", "float", ["N", 16]), b.initializer("bias", random(4))
    for name in ("one", "two"):
        b.output(b.Gemm(x, b.initializer(name, random(16, 4)), bias, name=name), f"{name}.y")
    feeds = {"x": random(64, 16)}
    model = b.model()
    found = sabir.quantize(model, calibration=[feeds])
    wanted, got = reference(model, feeds), reference(found, feeds)
    for name in wanted:
        np.testing.assert_allclose(got[name].mean(axis=0), wanted[name].mean(axis=0), atol=5e-4)
    assert "bias" not in {value.name for value in found.graph.initializers}


def test_biases_that_cannot_change_are_reported():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
    g (float[2,2] x, float[2] given) => (float[2,2] a, float[2,2] b, float[2,2] c, float[2,2] d)
      <float[2,2] u = {1, 2, 3, 4}, float[2,2] v = {1, 2, 3, 4}, float[2] zero = {1, 2}> {
      [computed] a = Gemm (x, u, given)
      [none] m = MatMul (x, v)
      b = Relu (m)
      [dynamic] n = MatMul (x, v)
      c = Add (n, given)
      [scaled] d = Gemm <beta = 0.0> (x, u, zero)
    }""")
    feeds = {"x": np.float32([[1, 2], [3, 4]]), "given": np.float32([1, 1])}
    found = quantize_and_report(model, calibration=[feeds])
    assert {node.name: (node.to, node.uncorrected, node.shift) for node in found.nodes} == {
        "computed": ("int8", "its bias is no constant", None),
        "none": ("int8", "no Add that is its only reader gives it a bias", None),
        "dynamic": ("int8", "its bias is no constant", None),
        "scaled": ("int8", "it multiplies its bias by 0", None),
    }


def test_products_in_functions_and_subgraphs_stay():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2,2] x, bool c) => (float[2,2] y, float[2,2] z)
      <float[2,2] w = {1, 2, 3, 4}, float[2,2] v = {0.3, 2, 3, 4}, float[2] bias = {1, 2}> {
      [main] t = Gemm (x, v, bias)
      y = If (c) <then_branch = then () => (float[2,2] p) { p = Gemm (t, w, bias) },
                  else_branch = other () => (float[2,2] q) { q = Identity (t) }>
      z = f.apply (t)
    }
    <domain: "f", opset_import: ["" : 21]> apply (x) => (y) {
      k = Constant <value = float[2,2] {1, 2, 3, 4}> ()  y = MatMul (x, k) }""")
    feeds = {"x": np.float32([[1, 2], [3, 4]]), "c": np.bool_(1)}
    found = quantize_and_report(model, calibration=[feeds], equalize=True)
    verify(found.model)
    assert [node.shift is not None for node in found.nodes] == [True, False, False]
    wanted, got = reference(model, feeds), reference(found.model, feeds)
    for name in ("y", "z"):
        np.testing.assert_allclose(got[name].mean(axis=0), wanted[name].mean(axis=0), rtol=1e-3)


def test_data_that_is_read_once_corrects_nothing():
    model, feeds = deep(), {"x": random(2, 4, 6, 6)}
    found = quantize_and_report(model, calibration=iter([feeds]))
    assert "the calibration data can be read once" in {node.uncorrected for node in found.nodes}
    plain = sabir.quantize(model, calibration=[feeds], correct_bias=False)
    assert sabir.dumps(found.model) == sabir.dumps(plain)


def test_bad_calibration_data():
    model, feeds = deep(), {"x": random(2, 4, 6, 6)}
    with pytest.raises(sabir.FeedError, match="has no feeds"):
        sabir.quantize(model, calibration=[])
    with pytest.raises(sabir.EvaluationError, match="the value 'x' of run 2: .* no number"):
        sabir.quantize(model, calibration=[feeds, {"x": np.full((1, 4, 6, 6), np.nan, np.float32)}])
    with pytest.raises(sabir.UnsupportedError, match="reads the calibration data again: pass a list"):
        sabir.quantize(model, calibration=iter([feeds]), correct_bias=True)
    for options in ({}, {"to": "int4"}, {"to": "float16", "calibration": [feeds]}):
        for asked in ({"correct_bias": True}, {"equalize": True}):
            with pytest.raises(sabir.UnsupportedError, match="are for static int8"):
                sabir.quantize(model, **options, **asked)


def test_an_error_that_is_infinite_names_the_product_and_the_run():
    """The sum overflows in float, but not the result of Clip, which calibration sees."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 2])
    h = b.Gemm(x, b.initializer("w", np.full((2, 2), 1e18, np.float32)), name="product")
    h.name = "sums"
    b.output(b.MatMul(b.Clip(h, 0.0, 1.0), b.initializer("v", random(2, 2))), "y")
    feeds = [{"x": np.zeros((1, 2), np.float32)}, {"x": np.full((1, 2), 3e20, np.float32)}]
    with pytest.raises(sabir.EvaluationError, match="bias of 'sums' .* run 2 is infinite"):
        sabir.quantize(b.model(), calibration=feeds)
    assert sabir.quantize(b.model(), calibration=feeds, correct_bias=False)


def test_progress_counts_both_passes():
    model, feeds = deep(), {"x": random(2, 4, 6, 6)}
    done = []
    sabir.quantize(model, calibration=[feeds] * 2, progress=lambda *at: done.append(at))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]
