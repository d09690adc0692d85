"""Products beyond those of floats: integers that wrap around, transforms, distances in the steps of a loop."""

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from support.lowered import kernels_only

RANDOM = np.random.default_rng(3)


@pytest.mark.parametrize("kind", ["int32", "uint32", "int64", "uint64"])
def test_integers_wrap_around(kind):
    text = f"""<ir_version: 10, opset_import: ["": 13]> g ({kind}[B,M,K] a, {kind}[K,N] b) => ({kind}[B,M,N] y) {{
        y = MatMul (a, b)
    }}"""
    info = np.iinfo(kind)
    for shape in ((2, 3, 40), (1, 1, 7)):
        a = RANDOM.integers(info.min, info.max, shape, kind, endpoint=True)
        b = RANDOM.integers(info.min, info.max, (shape[2], 19), kind, endpoint=True)
        modulus = 1 << info.bits
        exact = (a.astype(object) @ b.astype(object)) % modulus
        expected = np.where(exact > info.max, exact - modulus, exact).astype(kind)
        np.testing.assert_array_equal(kernels_only(sabir.parse(text), {"a": a, "b": b})["y"], expected)


def test_spectra():
    x = RANDOM.standard_normal((3, 24, 2))
    numbers = x[..., 0] + 1j * x[..., 1]
    cases = {
        "DFT (x, , axis)": np.fft.fft(numbers, axis=1),
        "DFT <inverse = 1> (x, , axis)": np.fft.ifft(numbers, axis=1),
        "DFT (x, short, axis)": np.fft.fft(numbers, 10, axis=1),
        "DFT (x, long, axis)": np.fft.fft(numbers, 31, axis=1),
        "DFT <inverse = 1, onesided = 1> (x, long, axis)": np.fft.irfft(numbers, 31, axis=1),
        "DFT <inverse = 1, onesided = 1> (x, , axis)": np.fft.irfft(numbers, axis=1),
    }
    for call, expected in cases.items():
        text = f"""<ir_version: 10, opset_import: ["": 20]> g (double[3,24,2] x) => (double[P0,P1,P2] y)
        <int64 axis = {{1}}, int64 short = {{10}}, int64 long = {{31}}> {{ y = {call} }}"""
        y = kernels_only(sabir.parse(text), {"x": x})["y"]
        parts = [np.real(expected), np.imag(expected)] if np.iscomplexobj(expected) else [expected]
        np.testing.assert_allclose(y, np.stack(parts, axis=-1), atol=1e-12, err_msg=call)


def test_frames_of_a_signal():
    text = """<ir_version: 10, opset_import: ["": 17]> g (float[B,N] x) => (float[P0,P1,P2,P3] y) <int64 step = {5}> {
        length = Constant <value = int64 {16}> ()
        window = HannWindow (length)
        y = STFT (x, step, window)
    }"""
    for size in (16, 61):
        x = RANDOM.standard_normal((2, size)).astype(np.float32)
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16)
        frames = [x[:, i : i + 16] * window for i in range(0, size - 15, 5)]
        expected = np.fft.rfft(np.stack(frames, axis=1), axis=2)
        y = kernels_only(sabir.parse(text), {"x": x})["y"]
        np.testing.assert_allclose(y, np.stack([expected.real, expected.imag], -1), atol=1e-5)


def test_a_window_as_long_as_its_signal():
    text = """<ir_version: 10, opset_import: ["": 17]> g (float[N] x) => (float[N] y) {
        size = Size (x)  window = BlackmanWindow <periodic = 0> (size)  y = Mul (x, window)
    }"""
    for size in (5, 64):
        y = kernels_only(sabir.parse(text), {"x": np.ones(size, np.float32)})["y"]
        np.testing.assert_allclose(y, np.blackman(size), atol=1e-6)


def test_a_loop_whose_state_stays_is_a_map():
    """So converters write the distances of nearest neighbours and of Gaussian processes."""
    text = """<ir_version: 10, opset_import: ["": 21]> g (float[N,3] x, float[M,3] known) => (float[M,3] same, float[N,M] y) {
        same, y = Scan <num_scan_inputs = 1, body = step (float[M,3] all, float[3] one) => (float[M,3] kept, float[M] d) {
            axis = Constant <value_ints = [1]> ()
            kept = Identity (all)  away = Sub (all, one)  d = ReduceSumSquare <keepdims = 0> (away, axis)
        }> (known, x)
    }"""
    for count in (1, 6):
        x = RANDOM.standard_normal((count, 3)).astype(np.float32)
        known = RANDOM.standard_normal((8, 3)).astype(np.float32)
        found = kernels_only(sabir.parse(text), {"x": x, "known": known})
        np.testing.assert_array_equal(found["same"], known)
        np.testing.assert_allclose(found["y"], ((x[:, None] - known) ** 2).sum(-1), rtol=1e-5)


def test_views_of_weights_are_their_weights():
    """So equal products are one: a gradient transposes the weights that a layer multiplies by."""
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", 48])
    weights = RANDOM.standard_normal((1, 64, 48)).astype(np.float32)
    w = b.initializer("w", weights)
    b.output(b.Relu(b.Gemm(x, b.Reshape(w, [64, 48]), transB=1)), "y")
    b.output(b.Tanh(b.MatMul(x, b.Transpose(b.Squeeze(w, [0]), perm=[1, 0]))), "z")
    compiled = Compiled(b.model())
    feed = RANDOM.standard_normal((5, 48)).astype(np.float32)
    found = compiled.run({"x": feed})
    product = feed.astype(np.float64) @ weights[0].T
    np.testing.assert_allclose(found["y"], np.maximum(product, 0), atol=1e-5)
    np.testing.assert_allclose(found["z"], np.tanh(product), atol=1e-5)
    (kernel,) = compiled.explain().kernels
    assert kernel.kind == "product"
    assert len(compiled.explain().prepared) == 1


def test_matrices_are_packed_by_tiles_where_their_columns_lie_side_by_side():
    for kind, tolerance in (("float", 1e-5), ("double", 1e-13)):
        text = f"""<ir_version: 10, opset_import: ["": 13]> g ({kind}[B,M,K] a, {kind}[N,K] w) => ({kind}[B,M,N] y) {{
            t = Transpose (w)
            y = MatMul (a, t)
        }}"""
        dtype = {"float": np.float32, "double": np.float64}[kind]
        for n, k in ((1, 40), (15, 16), (16, 15), (17, 33), (48, 64), (50, 7), (100, 47)):
            a = RANDOM.standard_normal((2, 5, k)).astype(dtype)
            wide = RANDOM.standard_normal((n + 2, k)).astype(dtype)
            wide[n:] = np.nan  # what lies behind the matrix is not read
            expected = a.astype(np.float64) @ wide[:n].T.astype(np.float64)
            found = kernels_only(sabir.parse(text), {"a": a, "w": wide[:n]})["y"]
            np.testing.assert_allclose(
                found, expected, rtol=tolerance, atol=20 * tolerance, err_msg=f"{n} by {k}"
            )
