"""Gradients of QuantizeLinear and DequantizeLinear, one after the other, by PyTorch's values."""

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from support.cases import each_of
from support.gradients import compare_with_onnxruntime

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
X = np.float32([-100, -32.3, -32, -1.3, 0.3, 0.74, 31.4, 31.9, 32.5, 50])
SCALE = np.array(0.25, np.float32)

# of torch.fake_quantize_per_tensor_affine: the values at X, and where the gradient of their sum is 1, not 0
PER_TENSOR = [
    ("uint8", 10, [-2.5, -2.5, -2.5, -1.25, 0.25, 0.75, 31.5, 32, 32.5, 50], [0, 0, 0, 1, 1, 1, 1, 1, 1, 1]),
    ("int8", -3, [-31.25, -31.25, -31.25, -1.25, 0.25, 0.75, 31.5, 32, 32.5, 32.5], [0, 0, 0, 1, 1, 1, 1, 1, 1, 0]),
    ("uint4", 8, [-2, -2, -2, -1.25, 0.25, 0.75, 1.75, 1.75, 1.75, 1.75], [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]),
]  # fmt: skip
# the gradients of the scale by torch._fake_quantize_learnable_per_tensor_affine
OF_SCALE = {"uint8": -29.16, "uint4": 4.04}


def fake(kind, zero, after=""):
    return sabir.parse(
        f"""{HEAD} g (float[10] x, float s) => (float z) {{
            p = Constant<value = {kind} {{{zero}}}>()
            q = QuantizeLinear(x, s, p)  y = DequantizeLinear(q, s, p)
            {after or "z = ReduceSum<keepdims = 0>(y)"} }}"""
    )


@each_of("kind, zero, values, inside", PER_TENSOR)
def test_the_gradient_is_that_of_the_identity_in_the_range(kind, zero, values, inside):
    found = sabir.differentiate(fake(kind, zero), "z", "x")
    results = sabir.evaluate(found, {"x": X, "s": SCALE})
    assert results["grad_x"].dtype == np.float32
    assert results["grad_x"].tolist() == inside  # exact: the scale is a power of 2
    compare_with_onnxruntime(found, {"x": X, "s": SCALE}, results)
    y = sabir.evaluate(fake(kind, zero), {"x": X, "s": SCALE}, ["y"])["y"]
    assert y.tolist() == values
    other = sabir.evaluate(found, {"x": X * np.float32(1.2), "s": np.float32(SCALE * 1.2)})["grad_x"]
    np.testing.assert_allclose(other, inside, rtol=1e-6)


@each_of("kind, zero", [(k, z) for k, z, *_ in PER_TENSOR if k in OF_SCALE])
def test_the_gradient_of_the_scale(kind, zero):
    """A step is worth its rounding error in the range, and the end of the range elsewhere."""
    found = sabir.vjp(fake(kind, zero), {"x": X, "s": SCALE}, "z", "s")["s"]
    np.testing.assert_allclose(found, OF_SCALE[kind], rtol=1e-5)


def test_scales_along_an_axis():
    """By torch.fake_quantize_per_channel_affine, of the sum of the squares."""
    model = sabir.parse(
        f"""{HEAD} g (float[2,3] x) => (float z) <float[2] s = {{0.25, 0.5}}, int8[2] p = {{0, 4}}> {{
            q = QuantizeLinear<axis = 0>(x, s, p)  y = DequantizeLinear<axis = 0>(q, s, p)
            z = ReduceSumSquare<keepdims = 0>(y) }}"""
    )
    x = np.float32([[-40, 0.3, 9], [-2, 0.3, 70]])
    assert sabir.vjp(model, {"x": x}, "z", "x")["x"].tolist() == [[0, 0.5, 18], [-4, 1, 0]]


def test_second_derivatives():
    """Of the sum of the squares: those of x² in the range."""
    kind, zero, _, inside = PER_TENSOR[0]
    model = fake(kind, zero, "z = ReduceSumSquare<keepdims = 0>(y)")
    found = sabir.hessian(model, {"x": X, "s": SCALE}, "z", "x")["x", "x"]
    np.testing.assert_array_equal(found, np.diag(2 * np.float32(inside)))


def test_other_readers_of_the_integers_contribute_nothing():
    """The result of Cast is constant between jumps; that of DequantizeLinear passes gradients."""
    kind, zero, _, inside = PER_TENSOR[0]
    model = fake(kind, zero, "i = Cast<to = 1>(q)  b = Mul(i, y)  z = ReduceSum<keepdims = 0>(b)")
    found = sabir.vjp(model, {"x": X, "s": SCALE}, "z", "x")["x"]
    integers = np.clip(np.rint(X / SCALE) + zero, 0, 255)
    np.testing.assert_array_equal(found, inside * integers)


def test_integers_that_are_read_otherwise_are_refused():
    """Zeros would hide that the quantized numbers cannot be trained."""
    model = fake("uint8", 10, "i = Cast<to = 1>(q)  z = ReduceSum<keepdims = 0>(i)")
    with pytest.raises(UnsupportedError, match="it ends at <Node Cast>$"):
        sabir.differentiate(model, "z", "x")


def test_integers_that_a_branch_reads_are_refused():
    """A gradient of integers does not leave a subgraph."""
    branch = "y = If(c) <then_branch = t () => (o) { o = DequantizeLinear(q, s, p) }, else_branch = e () => (o) { o = Neg(s) }>"
    model = sabir.parse(
        f"""{HEAD} g (float x, bool c) => (float y) <float s = {{0.25}}, uint8 p = {{10}}> {{
            q = QuantizeLinear(x, s, p)  {branch} }}"""
    )
    with pytest.raises(UnsupportedError, match="it ends at <Node (QuantizeLinear|If)>$"):
        sabir.differentiate(model, "y", "x")


def test_blocks_of_four_bits():
    """Blocks of 2 along the last axis, the last one of a single element."""
    model = sabir.parse(
        f"""{HEAD} g (float[2,3] x, float[2,2] s) => (float z) <int4[2,2] p = {{0, 2, -1, 3}}> {{
            q = QuantizeLinear<axis = 1, block_size = 2>(x, s, p)
            y = DequantizeLinear<axis = 1, block_size = 2>(q, s, p)
            z = ReduceSumSquare<keepdims = 0>(y) }}"""
    )
    feeds = {"x": np.float32([[1.2, 9, 10.4], [-3.6, 0.3, 2]]), "s": np.float32([[1, 2], [0.5, 0.25]])}
    y = sabir.evaluate(model, feeds, ["y"])["y"]
    assert y.tolist() == [[1, 7, 10], [-3.5, 0.5, 1]]  # 9 and 2 are beyond 7 and (7 - 3) * 0.25
    found = sabir.vjp(model, feeds, "z", "x")["x"]
    assert found.tolist() == [[2, 0, 20], [-7, 1, 0]]


def test_the_scales_of_blocks_are_refused():
    model = sabir.parse(
        f"""{HEAD} g (float[2,4] x, float[2,2] s) => (float[2,4] y) {{
            q = QuantizeLinear<axis = 1, block_size = 2>(x, s)
            y = DequantizeLinear<axis = 1, block_size = 2>(q, s) }}"""
    )
    with pytest.raises(
        UnsupportedError, match="DequantizeLinear passes no gradients to the scales of blocks"
    ):
        sabir.differentiate(model, "y", ["x", "s"])


def test_a_layer_in_a_branch():
    """The two nodes are in a branch, and what they quantize is outside of it."""
    nodes = "o = DequantizeLinear(q, s, p)"
    model = sabir.parse(
        f"""{HEAD} g (float[10] x, bool c) => (float z) <float s = {{0.25}}, uint8 p = {{10}}> {{
            y = If(c) <then_branch = t () => (o) {{ q = QuantizeLinear(x, s, p)  {nodes} }},
                       else_branch = e () => (o) {{ o = Neg(x) }}>
            z = ReduceSum<keepdims = 0>(y) }}"""
    )
    assert sabir.vjp(model, {"x": X, "c": True}, "z", "x")["x"].tolist() == PER_TENSOR[0][3]
    assert sabir.vjp(model, {"x": X, "c": False}, "z", "x")["x"].tolist() == [-1] * 10


def test_a_network_with_fake_quantization_learns():
    """Steps along the gradients of quantized weights and activations reduce the error of a regression."""
    model = sabir.parse(
        f"""{HEAD} g (float[32,4] x, float[32,1] t, float[4,1] w) => (float loss)
        <float sx = {{0.05}}, float sw = {{0.02}}, int8 p = {{0}}> {{
            xq = QuantizeLinear(x, sx, p)  xr = DequantizeLinear(xq, sx, p)
            wq = QuantizeLinear(w, sw, p)  wr = DequantizeLinear(wq, sw, p)
            y = MatMul(xr, wr)  e = Sub(y, t)  loss = ReduceSumSquare<keepdims = 0>(e) }}"""
    )
    random = np.random.default_rng(1)
    x = random.standard_normal((32, 4)).astype(np.float32)
    wanted = np.float32([[1], [-0.5], [0.25], [2]])
    session, w = sabir.Session(sabir.differentiate(model, "loss", "w")), np.zeros((4, 1), np.float32)
    losses = []
    for _ in range(60):
        results = session.run({"x": x, "t": x @ wanted, "w": w})
        losses.append(results["loss"])
        w -= np.float32(0.005) * results["grad_w"]
    assert losses[-1] < losses[0] / 1000
    np.testing.assert_allclose(w, wanted, atol=0.05)
