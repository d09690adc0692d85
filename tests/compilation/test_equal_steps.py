"""What a kernel computes once: equal steps, also those whose numbers a model keeps as constants."""

import math

import numpy as np

import sabir
from sabir.compilation import Compiled
from support.lowered import kernels_only

X = np.array([-3, -1, -0.25, 0.5, 2, 7], np.float32)


def steps_of(model):
    (kernel,) = Compiled(model).explain().kernels
    return kernel.spec


def test_a_constant_is_the_number_that_it_equals():
    """Gelu multiplies by the root of a half, and the model keeps it as a tensor, as gradients do."""
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[6] x) => (float[6] y) {
        z = Gelu (x)  root = Constant <value_float = 0.70710678> ()
        m = Mul (x, root)  e = Erf (m)  y = Add (z, e) }""")
    erf = np.array([math.erf(v / math.sqrt(2)) for v in X.tolist()])
    found = kernels_only(model, {"x": X})["y"]
    np.testing.assert_allclose(found, 0.5 * X * (1 + erf) + erf, rtol=1e-5, atol=1e-6)
    assert steps_of(model).count(" = erf ") == 1


def test_zeros_of_both_signs_are_two_numbers():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[N] x) => (float[N] y, float[N] z) {
        n = Constant <value_float = -0.0> ()  p = Constant <value_float = 0.0> ()
        y = Sub (n, x)  z = Sub (p, x) }""")
    found = kernels_only(model, {"x": np.float32([0, 1])})
    assert np.signbit(found["y"]).tolist() == [True, True]
    assert np.signbit(found["z"]).tolist() == [False, True]


def test_equal_calls_are_one_step():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[6] x) => (float[6] y) {
        a = Exp (x)  b = Exp (x)  y = Mul (a, b) }""")
    np.testing.assert_allclose(
        kernels_only(model, {"x": X})["y"], np.exp(2 * X.astype(np.float64)), rtol=1e-6
    )
    assert steps_of(model).count(" = exp ") == 1


def test_an_index_that_is_known_is_a_view():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for index, axis, expected in (
        ("1", 1, x[:, 1]),
        ("-1", 2, x[..., 3]),
        ("-2", 0, x[0]),
        ("{1}", 0, x[1:]),
    ):
        shape = "[1]" if index[0] == "{" else ""
        text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[2,3,4] x) => (float[{",".join(map(str, expected.shape))}] y)
            <int64{shape} i = {index if shape else "{" + index + "}"}> {{ p = Gather <axis = {axis}> (x, i)  y = Neg (p) }}"""
        model = sabir.parse(text)
        np.testing.assert_array_equal(kernels_only(model, {"x": x})["y"], -expected)
        assert "take" not in steps_of(model)
