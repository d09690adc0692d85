"""`vjp`, `jacobian` and `hessian`: values by hand, shapes, several values, limits."""

import numpy as np
import pytest

import sabir
from sabir.base import FeedError, LimitError, NotFoundError

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
LINEAR = sabir.parse(
    HEAD + "g (double[2,3] x) => (double[2] y) <double[3] w = {1.0, -2.0, 0.5}> { y = MatMul(x, w) }"
)
W = np.array([1.0, -2, 0.5])
X = np.array([[1.0, 2, 3], [4, 5, 6]])


def test_a_product_of_a_vector_and_the_jacobian():
    found = sabir.vjp(LINEAR, {"x": X}, "y", ["w", "x"], cotangent=[1.0, 10.0])
    assert found["w"].tolist() == [41, 52, 63]
    assert found["x"].tolist() == (np.array([[1.0], [10]]) * W).tolist()
    assert sabir.vjp(LINEAR, [X], "y", "w")["w"].tolist() == X.sum(0).tolist()


def test_a_jacobian():
    found = sabir.jacobian(LINEAR, {"x": X}, "y", ["x", "w"])
    assert found["w"].tolist() == X.tolist()
    expected = np.zeros((2, 2, 3))
    expected[0, 0] = expected[1, 1] = W
    assert found["x"].tolist() == expected.tolist()


def test_a_jacobian_of_nothing():
    model = sabir.parse(HEAD + "g (double[N] x) => (double[N] y) { y = Mul(x, x) }")
    assert sabir.jacobian(model, {"x": np.zeros(0)}, "y", "x")["x"].shape == (0, 0)


def test_a_hessian_of_a_quadratic_form():
    text = """g (double[3] x, double[3,3] a) => (double y) { m = MatMul(a, x)  p = Mul(m, x)  y = ReduceSum<keepdims = 0>(p) }"""
    a = np.arange(9.0).reshape(3, 3)
    x = np.array([1.0, -1, 2])
    found = sabir.hessian(sabir.parse(HEAD + text), {"x": x, "a": a}, "y", ["x", "a"])
    np.testing.assert_allclose(found["x", "x"], a + a.T, rtol=1e-12)
    assert found["a", "a"].shape == (3, 3, 3, 3)
    assert not found["a", "a"].any()
    expected = np.einsum("ij,k->ijk", np.eye(3), x) + np.einsum("ik,j->ijk", np.eye(3), x)  # d²/dx_i da_jk
    np.testing.assert_allclose(found["x", "a"], expected, rtol=1e-12)


def test_an_element_type_of_few_bits():
    model = sabir.parse(HEAD + "g (float16[2] x) => (float16[2] y) { y = Mul(x, x) }")
    found = sabir.jacobian(model, {"x": np.float16([1, 2])}, "y", "x")["x"]
    assert (found.dtype, found.tolist()) == (np.float16, [[2, 0], [0, 4]])


def test_what_is_refused():
    with pytest.raises(FeedError, match="the cotangent has the shape .3., 'y' .2."):
        sabir.vjp(LINEAR, {"x": X}, "y", "x", cotangent=[1.0, 2, 3])
    with pytest.raises(NotFoundError, match="'z'"):
        sabir.jacobian(LINEAR, {"x": X}, "y", "z")
    model = sabir.parse(HEAD + "g (double[N] x) => (double[N] y) { y = Mul(x, x) }")
    with pytest.raises(LimitError, match="the Jacobian of 'x' would have 1,000,000 elements"):
        sabir.jacobian(model, {"x": np.zeros(1000)}, "y", "x", limits=sabir.Limits(elements=2000))
