"""Functions of pieces: second derivatives, and gradients that end at what is constant between jumps."""

import numpy as np
import pytest

import sabir
from sabir.base import UnsupportedError
from support.cases import each_of

HEAD = '<ir_version: 10, opset_import: ["" : 26]>\n'
X = np.array([-3.4, -1.25, -0.6, 0.75, 2.25, 4.2])  # no kink or jump is within 0.04 of one of them
ZEROS = [0.0] * 6

# the diagonals of torch.autograd.functional.hessian at X, in double precision: of the sum of y, of that of x * y
SECOND = [
    ("Relu(x)", ZEROS, [0, 0, 0, 2, 2, 2]),
    ("LeakyRelu<alpha = 0.25>(x)", ZEROS, [0.5, 0.5, 0.5, 2, 2, 2]),
    ("PRelu(x, quarter)", ZEROS, [0.5, 0.5, 0.5, 2, 2, 2]),
    ("Abs(x)", ZEROS, [-2, -2, -2, 2, 2, 2]),
    ("Clip(x, low, high)", ZEROS, [0, 0, 2, 2, 2, 0]),
    ("Max(x, one)", ZEROS, [0, 0, 0, 0, 2, 2]),
    ("Min(x, one)", ZEROS, [2, 2, 2, 2, 0, 0]),
    ("Where(above, square, triple)", [0, 0, 0, 0, 2, 2], [6, 6, 6, 6, 13.5, 25.2]),
    ("Mul(square, mask)", [0, 0, 0, 0, 2, 2], [0, 0, 0, 0, 13.5, 25.2]),
    ("ThresholdedRelu<alpha = 1.0>(x)", ZEROS, [0, 0, 0, 0, 2, 2]),
    ("Shrink<lambd = 1.0, bias = 1.0>(x)", ZEROS, [2, 2, 0, 0, 2, 2]),
    (
        "HardSwish(x)",
        [0, 0.333333333333333, 0.333333333333333, 0.333333333333333, 0.333333333333333, 0],
        [0, -0.25, 0.4, 1.75, 3.25, 2],
    ),
    ("Sign(x)", ZEROS, ZEROS),
    ("Floor(x)", ZEROS, ZEROS),
    ("Round(x)", ZEROS, ZEROS),
    (
        "Elu(x)",
        [0.033373269960326, 0.28650479686019, 0.548811636094026, 0, 0, 0],
        [-0.046722577944457, 0.214878597645143, 0.768336290531637, 2, 2, 2],
    ),
    (
        "Gelu(x)",
        [
            -0.011780015250602,
            0.079908974857697,
            0.546488348742551,
            0.432885058722531,
            -0.097202683746731,
            -0.000921869579712,
        ],
        [
            0.032346820037784,
            -0.345209384710966,
            -0.179256297215543,
            2.323115237520369,
            1.899673449520268,
            1.996596578036332,
        ],
    ),
    (
        'Gelu<approximate = "tanh">(x)',
        [
            -0.011509384301648,
            0.081180979804884,
            0.545812752804924,
            0.432307490271474,
            -0.098378154629937,
            -0.000639384943039,
        ],
        [
            0.032292456228323,
            -0.346461489255403,
            -0.178470718347921,
            2.322107129978434,
            1.898478221118165,
            1.997582534215641,
        ],
    ),
]


def summed(call, result="y"):
    return sabir.parse(
        f"""{HEAD} g (double[6] x) => (double z) {{
            quarter = Constant<value = double {{0.25}}>()  one = Constant<value = double {{1}}>()
            low = Constant<value = double {{-1}}>()  high = Constant<value = double {{3}}>()
            three = Constant<value = double {{3}}>()
            square = Mul(x, x)  triple = Mul(x, three)  above = Greater(x, one)  mask = Cast<to = 11>(above)
            y = {call}  times = Mul(x, y)  z = ReduceSum<keepdims = 0>({result}) }}"""
    )


def differences(model, step=1e-5):
    """The differences of the gradients on both sides of X along each axis."""
    gradient = sabir.Session(sabir.differentiate(model, "z", "x"))

    def at(x):
        return gradient.run({"x": x}, ["grad_x"])["grad_x"]

    return [(at(X + move) - at(X - move)) / (2 * step) for move in step * np.eye(6)]


@each_of("call, plain, times", SECOND)
def test_second_derivatives(call, plain, times):
    """They equal those of PyTorch and central differences."""
    for result, expected in {"y": plain, "times": times}.items():
        model = summed(call, result)
        found = sabir.hessian(model, {"x": X}, "z", "x")["x", "x"]
        np.testing.assert_allclose(found, np.diag(expected), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found, differences(model), rtol=1e-8, atol=1e-8)


def test_third_derivatives():
    """The derivatives of x² · Relu(x), which is x³ above 0."""
    model = sabir.parse(
        f"{HEAD} g (double[6] x) => (double[6] y) {{ r = Relu(x)  s = Mul(x, x)  y = Mul(s, r) }}"
    )
    for of, to in (("y", "a"), ("a", "b"), ("b", "c"), ("c", "d")):
        model = sabir.differentiate(model, of, "x", names={"x": to})
    results = sabir.evaluate(model, {"x": X})
    above = np.where(X > 0, X, 0)
    for name, expected in {"a": 3 * above**2, "b": 6 * above, "c": 6.0 * (X > 0), "d": 0 * X}.items():
        np.testing.assert_allclose(results[name], expected, rtol=1e-12)


def test_the_hessian_of_a_piecewise_linear_function_is_refused_strictly():
    with pytest.raises(
        UnsupportedError, match="no gradient of 'grad_x' reaches 'x': it ends at <Node Greater>$"
    ):
        sabir.hessian(summed("Relu(x)"), {"x": X}, "z", "x", strict=True)
    found = sabir.hessian(summed("Relu(x)", "times"), {"x": X}, "z", "x", strict=True)
    assert found["x", "x"].diagonal().tolist() == [0, 0, 0, 2, 2, 2]


CONSTANT = {
    "Greater(x, x)": "Greater",
    "Equal(x, x)": "Equal",
    "LessOrEqual(x, x)": "LessOrEqual",
    "IsNaN(x)": "IsNaN",
    "Cast<to = 7>(x)": "Cast",
    "Cast<to = 9>(x)": "Cast",
    "CastLike(x, whole)": "CastLike",
    "ArgMax<keepdims = 0>(x)": "ArgMax",
    "ArgMin<keepdims = 0>(x)": "ArgMin",
    "NonZero(x)": "NonZero",
    "Multinomial<sample_size = 2, seed = 1.0>(row)": "Multinomial",
    "If(yes) <then_branch = t () => (o) { o = ArgMax(x) }, else_branch = e () => (o) { o = ArgMin(x) }>": "If",
}


def ending(call):
    """A model whose result depends on x through one call alone."""
    return sabir.parse(
        f"""{HEAD} g (double[3] x) => (double z) {{
            whole = Constant<value = int64 {{1}}>()  yes = Constant<value = bool {{1}}>()
            axis = Constant<value = int64[1] {{0}}>()  row = Unsqueeze(x, axis)
            i = {call}  y = Cast<to = 11>(i)  z = ReduceSum<keepdims = 0>(y) }}"""
    )


@each_of("call, op", list(CONSTANT.items()))
def test_what_is_constant_between_jumps_has_the_gradient_zero(call, op):
    model, feeds = ending(call), {"x": np.array([0.25, 3.5, 2.0])}
    for found in (
        sabir.vjp(model, feeds, "z", "x")["x"],
        sabir.jacobian(model, feeds, "z", "x")["x"],
        sabir.evaluate(sabir.differentiate(model, "z", "x"), feeds)["grad_x"],
    ):
        assert found.tolist() == [0, 0, 0]
    assert not sabir.hessian(model, feeds, "z", "x")["x", "x"].any()
    refusal = f"no gradient of 'z' reaches 'x': it ends at <Node {op}>"
    for function in (sabir.vjp, sabir.jacobian, sabir.hessian):
        with pytest.raises(UnsupportedError, match=refusal):
            function(model, feeds, "z", "x", strict=True)
    with pytest.raises(UnsupportedError, match=refusal):
        sabir.differentiate(model, "z", "x", strict=True)


@each_of(
    "call, op",
    [
        ("BitCast<to = 7>(x)", "BitCast"),
        ("QuantizeLinear(single, scale)", "QuantizeLinear"),
        ("If(yes) <then_branch = t () => (o) { o = BitCast<to = 7>(x) }, else_branch = e () => (o) { o = ArgMin(x) }>", "If"),
    ],
)  # fmt: skip
def test_integers_that_encode_numbers_are_refused(call, op):
    model = sabir.parse(
        f"""{HEAD} g (double[3] x) => (double z) {{
            yes = Constant<value = bool {{1}}>()  single = Cast<to = 1>(x)
            scale = Constant<value = float {{0.5}}>()
            i = {call}  y = Cast<to = 11>(i)  z = ReduceSum<keepdims = 0>(y) }}"""
    )
    with pytest.raises(UnsupportedError, match=f"it ends at <Node {op}>$"):
        sabir.differentiate(model, "z", "x")


def test_random_numbers_have_the_gradient_zero():
    model = sabir.parse(f"{HEAD} g (double[3] p) => (double[3] y) {{ y = Bernoulli<seed = 1.0>(p) }}")
    assert sabir.vjp(model, {"p": [0.25, 0.5, 0.75]}, "y", "p")["p"].tolist() == [0, 0, 0]
    with pytest.raises(UnsupportedError, match="it ends at <Node Bernoulli>$"):
        sabir.differentiate(model, "y", "p", strict=True)


def test_a_loop_whose_state_is_cast_to_integers():
    """It passes the gradient of its first state on, which is zero, so `strict` has nothing to refuse."""
    model = sabir.parse(
        f"""{HEAD} g (double x) => (double y) {{
            n = Constant<value = int64 {{3}}>()  yes = Constant<value = bool {{1}}>()
            y = Loop(n, yes, x) <body = b (int64 i, bool c, double s) => (bool d, double t) {{
                d = Identity(c)  k = Cast<to = 7>(s)  t = Cast<to = 11>(k) }}> }}"""
    )
    assert sabir.vjp(model, {"x": 2.5}, "y", "x")["x"] == 0


def test_indices_contribute_nothing():
    """The values of TopK have gradients; its indices, cast to numbers or read by Gather, change none."""
    model = sabir.parse(
        f"""{HEAD} g (double[4] x) => (double z) {{
            k = Constant<value = int64[1] {{2}}>()
            values, places = TopK(x, k)  w = Cast<to = 11>(places)  p = Mul(values, w)
            again = Gather(x, places)  s = Add(p, again)  z = ReduceSum<keepdims = 0>(s) }}"""
    )
    found = sabir.vjp(model, {"x": [1.0, 4.0, 2.0, 3.0]}, "z", "x")["x"]
    assert found.tolist() == [0, 2, 0, 4]  # places 1 and 3, and 1 for each that is gathered
    alone = sabir.parse(
        f"""{HEAD} g (double[4] x) => (double z) {{
            k = Constant<value = int64[1] {{2}}>()
            values, places = TopK(x, k)  w = Cast<to = 11>(places)  z = ReduceSum<keepdims = 0>(w) }}"""
    )
    assert sabir.vjp(alone, {"x": [1.0, 4.0, 2.0, 3.0]}, "z", "x")["x"].tolist() == [0, 0, 0, 0]
    with pytest.raises(UnsupportedError, match="it ends at <Node TopK>$"):
        sabir.differentiate(alone, "z", "x", strict=True)
