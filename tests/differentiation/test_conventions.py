"""Gradients at kinks, ties and zeros, where no derivative exists: those of PyTorch, written by hand."""

import itertools

import numpy as np
import pytest

import sabir
from support.cases import each_of
from support.gradients import gradient_model

CASES = [
    ("Abs(x)", [-2, 0, 3], [-1, 0, 1]),
    ("Relu(x)", [-1, 0, 1], [0, 0, 1]),
    ("LeakyRelu<alpha = 0.5>(x)", [-1, 0, 1], [0.5, 0.5, 1]),
    ("Elu<alpha = 0.5>(x)", [0, 1], [0.5, 1]),
    ("ThresholdedRelu<alpha = 1.0>(x)", [1, 2], [0, 1]),
    ("Shrink<lambd = 1.0, bias = 0.5>(x)", [-2, -1, 0, 1, 2], [1, 0, 0, 0, 1]),
    ("HardSigmoid<alpha = 0.25, beta = 0.5>(x)", [-2, 0, 2], [0, 0.25, 0]),
    ("HardSwish(x)", [-3, 0, 3], [0, 0.5, 1]),
    ("Ceil(x)", [0.5, 1], [0, 0]),
    ("Floor(x)", [0.5, 1], [0, 0]),
    ("Round(x)", [0.5, 1], [0, 0]),
    ("Sign(x)", [-1, 0, 1], [0, 0, 0]),
    ("Clip(x, one, two)", [0, 1, 1.5, 2, 3], [0, 1, 1, 1, 0]),
    ("Max(x, one)", [0, 1, 2], [0, 0.5, 1]),
    ("Min(x, one)", [0, 1, 2], [1, 0.5, 0]),
    ("Max(x, x)", [0, 1], [1, 1]),
    ("Pow(x, two)", [0, 3], [0, 6]),
    ("Pow(x, zero)", [0, 3], [0, 0]),
    ("Pow(two, x)", [0, 1], [np.log(2), 2 * np.log(2)]),
    ("Pow(zero, x)", [0, 1], [0, 0]),
    ("ReduceMax(x)", [1, 3, 3], [0, 0.5, 0.5]),
    ("ReduceMin(x)", [1, 1, 3], [0.5, 0.5, 0]),
    ("ReduceL1(x)", [-1, 0, 2], [-1, 0, 1]),
    ("ReduceL2(x)", [0, 0], [0, 0]),
    ("ReduceProd(x)", [2, 0, 3], [0, 6, 0]),
    ("ReduceProd(x)", [2, 0, 0], [0, 0, 0]),
    ("CumProd(x, axis)", [2, 0, 3], [1, 2 * 4, 0]),
    ("CumProd(x, axis)", [2, 5, 0, 3, 0, 7], [6, 2, 10 * 4, 0, 0, 0]),
    ("LpNormalization(x)", [0, 0], [0, 0]),
    ("Hardmax(x)", [1, 2], [0, 0]),
]


@each_of("call, x, expected", CASES)
def test_values(call, x, expected):
    model = sabir.parse(
        f"""<ir_version: 10, opset_import: ["" : 26]>
        g (double[{len(x)}] x) => (double[?] y) {{
            zero = Constant<value = double {{0}}>()
            one = Constant<value = double {{1}}>()
            two = Constant<value = double {{2}}>()
            axis = Constant<value = int64 {{0}}>()
            y = {call} }}"""
    )
    found = gradient_model(model, "y", ["x"], checked=False)
    feeds = {"x": np.array(x, np.float64)}
    seed = np.ones(sabir.evaluate(model, feeds)["y"].shape)
    result = sabir.evaluate(found, {**feeds, "seed": seed})["d_y_d_x"]
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)


PRODUCTS = {  # the factors of each element of the result, of four
    "ReduceProd<keepdims = 0>(x)": [(0, 1, 2, 3)],
    "CumProd(x, axis)": [(0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)],
    "CumProd<reverse = 1>(x, axis)": [(0, 1, 2, 3), (1, 2, 3), (2, 3), (3,)],
    "CumProd<exclusive = 1>(x, axis)": [(), (0,), (0, 1), (0, 1, 2)],
    "CumProd<exclusive = 1, reverse = 1>(x, axis)": [(1, 2, 3), (2, 3), (3,), ()],
}
FACTORS = [
    [0, 0, 0, 2],
    [1.5, 0, 2, 3],
    [0, 2, 0, 3],
    [2, 3, 4, 0],
    [0, 0, 1.5, 2],
    [0, 0, 0, 0],
    [1, 2, 3, 4],
]
FACTOR_PAIRS = [(call, factors, x) for call, factors in PRODUCTS.items() for x in FACTORS]


def derivatives(factors, x, order):
    """All derivatives of an order of a sum of products, the n-th times n: a product is linear in each factor."""
    found = np.zeros((4,) * order)
    for weight, chosen in enumerate(factors, 1):
        for by in itertools.permutations(chosen, order):
            found[by] += weight * np.prod([x[k] for k in chosen if k not in by])
    return found


def sum_of_products(call, factors):
    shape = "" if len(factors) == 1 else "[4]"
    weights = np.arange(1.0, 1 + len(factors))
    text = f"""<ir_version: 10, opset_import: ["" : 26]> g (double[4] x, double{shape} w) => (double z) {{
        axis = Constant<value = int64 {{0}}>()  y = {call}  v = Mul(y, w)  z = ReduceSum<keepdims = 0>(v) }}"""
    return sabir.parse(text), weights.reshape(weights.shape if shape else ())


@each_of("call, factors, x", FACTOR_PAIRS)
def test_second_derivatives_of_products_at_zeros(call, factors, x):
    model, weights = sum_of_products(call, factors)
    feeds = {"x": np.array(x, np.float64), "w": weights}
    found = sabir.hessian(model, feeds, of="z", wrt="x")["x", "x"]
    expected = derivatives(factors, x, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("call", PRODUCTS)
def test_third_derivatives_of_products_at_zeros(call):
    """In the directions of two vectors, which are the seeds of the second and of the third gradient."""
    factors, seeds = PRODUCTS[call], {"a": np.array([1.0, -2, 3, 5]), "b": np.array([2.0, 7, -1, 3])}
    model, weights = sum_of_products(call, factors)
    model = sabir.differentiate(model, "z", ["x"], names={"x": "first"})
    model = sabir.differentiate(model, "first", ["x"], seed="a", names={"x": "second"})
    model = sabir.differentiate(model, "second", ["x"], seed="b", names={"x": "third"})
    session = sabir.Session(model)
    for x in FACTORS:
        found = session.run({"x": np.array(x, np.float64), "w": weights, **seeds}, ["third"])["third"]
        expected = np.einsum("ijk,i,j->k", derivatives(factors, x, 3), seeds["a"], seeds["b"])
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
