"""Gradients of networks of convolutions by kernels: of large images, any batch, and beside double precision."""

from typing import Any

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled

CHANNELS = 32


def network(element, image, kernel=3, **attributes):
    """Two convolutions with normalization, beside a shortcut, and a loss."""
    b = sabir.Builder(21)
    x = b.input("x", element, ["N", CHANNELS, image, image])
    shapes = {"v": (CHANNELS, CHANNELS, kernel, kernel), "w": (CHANNELS, CHANNELS, kernel, kernel)}
    w = {name: b.input(name, element, list(shape)) for name, shape in shapes.items()}
    p = {name: b.input(name, element, [CHANNELS]) for name in ("scale", "shift", "mean", "variance")}
    pads = [kernel // 2] * 4
    first = b.Conv(x, w["v"], pads=pads)
    y, _, _ = b.BatchNormalization(first, *p.values(), training_mode=1, outputs=3)
    y = b.Conv(b.Relu(y), w["w"], pads=pads, **attributes)
    square = b.ReduceMean(b.Mul(y, b.Sigmoid(y)), keepdims=0)
    b.output(square, "loss")
    return sabir.differentiate(b.model(), "loss", ["x", "v", "w", "scale", "shift"])


def feeds(batch, image, kernel=3):
    rng = np.random.default_rng(batch)
    filters = (CHANNELS, CHANNELS, kernel, kernel)
    found = {"x": rng.standard_normal((batch, CHANNELS, image, image)) + 0.5}
    found |= {n: rng.standard_normal(filters) / np.sqrt(CHANNELS * kernel**2) for n in ("v", "w")}
    found |= {"scale": rng.uniform(0.5, 2, CHANNELS), "shift": rng.standard_normal(CHANNELS)}
    found |= {"mean": np.zeros(CHANNELS), "variance": np.ones(CHANNELS)}
    return {n: x.astype(np.float32) for n, x in found.items()}


@pytest.mark.parametrize(
    ("image", "kernel", "attributes"),
    [(13, 3, {}), (13, 3, {"strides": [2, 2]}), (5, 3, {}), (9, 1, {}), (12, 5, {"dilations": [2, 1]})],
    ids=str,
)
def test_gradients_in_single_precision_are_those_in_double(image, kernel, attributes):
    model, wide = (network(element, image, kernel, **attributes) for element in ("float", "double"))
    compiled = Compiled(model)
    for batch in (3, 1, 20):
        given = feeds(batch, image, kernel)
        found = compiled.run(given)
        expected = sabir.evaluate(wide, {n: x.astype(np.float64) for n, x in given.items()})
        for name, value in expected.items():
            np.testing.assert_allclose(
                found[name], value, rtol=0, atol=2e-5 * np.abs(value).max(), err_msg=f"{name} of {batch}"
            )
    assert not compiled.explain().evaluated


def test_convolutions_of_stride_1_and_their_gradients_are_computed_by_winograd():
    compiled = Compiled(network("float", 16))
    compiled.run(feeds(2, 16))
    kinds = [kernel.kind for kernel in compiled.explain().kernels]
    assert kinds.count("winograd") == 4, "two convolutions, and the gradients of their inputs"


def test_a_gradient_of_an_input_pads_what_the_convolution_does_not():
    """With stride 1 it is a convolution; elsewhere it is a transposed one."""
    cases: list[tuple[int, dict[str, Any], set[str]]] = [
        (1, {}, {"Conv"}),
        (1, {"pads": [2, 2, 2, 2]}, {"Conv"}),
        (1, {"pads": [3, 0, 0, 0]}, {"Conv", "ConvTranspose"}),
        (1, {"strides": [2, 1]}, {"Conv", "ConvTranspose"}),
        (2, {"group": 2}, {"Conv", "ConvTranspose"}),
    ]
    for groups, attributes, expected in cases:
        b = sabir.Builder(21)
        x = b.input("x", "float", [2, 4, 7, 7])
        w = b.input("w", "float", [4, 4 // groups, 3, 3])
        b.output(b.ReduceSum(b.Conv(x, w, **attributes), keepdims=0), "loss")
        model = sabir.differentiate(b.model(), "loss", ["x"])
        assert {n.op for n in model.graph if n.op.startswith("Conv")} == expected, attributes
        given = {"x": np.ones((2, 4, 7, 7), np.float32), "w": np.ones((4, 4 // groups, 3, 3), np.float32)}
        assert sabir.evaluate(model, given)["grad_x"].shape == (2, 4, 7, 7)


def test_rows_whose_number_has_no_name_need_no_axes_at_run_time():
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 4, 6])
    w, bias = b.input("w", "float", [6, 5]), b.input("bias", "float", [5])
    rows = b.Add(b.MatMul(b.Reshape(x, [-1, 6]), w), bias)
    b.output(b.ReduceSum(b.Mul(b.Div(rows, bias), b.Sub(rows, bias)), keepdims=0), "loss")
    model = sabir.differentiate(b.model(), "loss", ["x", "w", "bias"])
    assert "NonZero" not in {node.op for node in model.graph}
    compiled = Compiled(model)
    rng = np.random.default_rng(0)
    given = {
        "x": rng.standard_normal((3, 4, 6), np.float32), "w": rng.standard_normal((6, 5), np.float32),
        "bias": rng.uniform(1, 2, 5).astype(np.float32),
    }  # fmt: skip
    found, expected = compiled.run(given), sabir.evaluate(model, given)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-4)
    assert not compiled.explain().evaluated
