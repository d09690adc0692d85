"""`sabir.differentiate`: names, zeros, tied weights, second calls, functions, old operator sets, bad requests."""

import numpy as np
import pytest

import sabir
from sabir.base import (
    ConversionError,
    LimitError,
    NotFoundError,
    SchemaError,
    UnsupportedError,
)
from sabir.ir import verify
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'
WITH_F = '<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\n'
X = np.array([[1.0, -2, 3], [0.5, 4, -1]])


def gradients(text, wrt, feeds, *, of="y", **options):
    """The gradients of a model in the text syntax, by the names of the values."""
    found = sabir.differentiate(sabir.parse(text), of, wrt, **options)
    verify(found)
    sabir.check(found)
    results = sabir.evaluate(found, feeds)
    return [results[f"grad_{name}"] for name in wrt]


def equal(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-12)


# names and outputs


def test_the_outputs_follow_those_of_the_model_and_have_types():
    model = sabir.parse(HEAD + "g (float[N,3] x, float[3] w) => (float[N,3] y) { y = Mul(x, w) }")
    found = sabir.differentiate(model, "y", ["w", "x"], names={"x": "dx"})
    assert [(o.name, str(o.type)) for o in found.graph.outputs] == [
        ("y", "float[N,3]"),
        ("grad_w", "float[3]"),
        ("dx", "float[N,3]"),
    ]
    assert [o.name for o in model.graph.outputs] == ["y"]


def test_one_name_may_stand_alone_and_a_taken_default_is_numbered():
    text = HEAD + "g (double[2] x, double[2] grad_x) => (double[2] y) { y = Mul(x, grad_x) }"
    found = sabir.differentiate(sabir.parse(text), "y", "x")
    assert [o.name for o in found.graph.outputs] == ["y", "grad_x_1"]


@pytest.mark.parametrize(
    ("wrt", "options", "error", "message"),
    [
        (["x"], {"seed": "w"}, SchemaError, "the model has a value named 'w'; choose another name"),
        (["x"], {"names": {"x": "y"}}, SchemaError, "the model has a value named 'y'; choose another"),
        (["x", "w"], {"names": {"x": "d", "w": "d"}}, SchemaError, "a value named 'd'; choose"),
        (["x"], {"names": {"w": "d"}}, SchemaError, "of 'w', which `wrt` does not name"),
        (["x", "x"], {}, SchemaError, "`wrt` names 'x' twice"),
        (["v"], {}, NotFoundError, "no value named 'v'"),
        (["x"], {"limits": sabir.Limits(nodes=2)}, LimitError, "nodes"),
    ],
)
def test_bad_requests(wrt, options, error, message):
    model = sabir.parse(HEAD + "g (double[2] x, double[2] w) => (double[2] y) { t = Tanh(x)  y = Mul(t, w) }")
    with pytest.raises(error, match=message):
        sabir.differentiate(model, "y", wrt, **options)


# values


def test_a_value_that_nothing_depends_on_has_zeros():
    text = HEAD + "g (double[2,3] x, double[N] z) => (double[2,3] y) { y = Mul(x, x)  u = Neg(z) }"
    equal(gradients(text, ["z", "x"], {"x": X, "z": np.ones(4)}), [np.zeros(4), 2 * X])


def test_a_path_that_integers_block_is_named():
    text = (
        HEAD
        + "g (double[2] x, double[2] z) => (double[2] y) { i = Cast<to = 7>(z)  j = Cast<to = 11>(i)  y = Mul(x, j) }"
    )
    with pytest.raises(UnsupportedError, match="no gradient of 'y' reaches 'z': it ends at <Node Cast>$"):
        sabir.differentiate(sabir.parse(text), "y", ["x", "z"], strict=True)


def test_tied_weights_have_one_sum():
    text = (
        HEAD
        + """g (double[2,3] x) => (double y) <double[3] w = {1.0, 2.0, 3.0}> {
        a = Mul(x, w)  b = Mul(a, w)  y = ReduceSum<keepdims = 0>(b) }"""
    )
    found = sabir.differentiate(sabir.parse(text), "y", ["w"])
    assert [n.op for n in found.graph].count("Sum") == 1
    w = np.array([1.0, 2, 3])
    equal(gradients(text, ["w", "a"], {"x": X}), [2 * w * X.sum(0), np.broadcast_to(w, (2, 3))])


def test_a_seed_weights_the_elements():
    text = HEAD + "g (double[2,3] x) => (double[2,3] y) { y = Mul(x, x) }"
    found = sabir.differentiate(sabir.parse(text), "y", ["x"], seed="dy")
    assert sabir.evaluate(found, {"x": X, "dy": X})["grad_x"].tolist() == (2 * X * X).tolist()


def test_a_second_call_differentiates_the_first_result():
    text = (
        HEAD
        + "g (double[2,3] x) => (double y) { c = Mul(x, x)  d = Mul(c, x)  y = ReduceSum<keepdims = 0>(d) }"
    )
    first = sabir.differentiate(sabir.parse(text), "y", ["x"])
    second = sabir.differentiate(first, "grad_x", ["x"], names={"x": "second"})
    third = sabir.differentiate(second, "second", ["x"], names={"x": "third"})
    sabir.check(third)
    results = sabir.evaluate(third, {"x": X})
    equal([results[n] for n in ("grad_x", "second", "third")], [3 * X * X, 6 * X, np.full((2, 3), 6.0)])


def test_values_of_types_that_are_not_declared():
    text = HEAD + "g (double[2,3] x) => (y) { a = Mul(x, x)  y = Neg(a) }"
    found = sabir.differentiate(sabir.parse(text), "y", ["a"])
    assert str(found.graph.outputs[-1].type) == "double[2,3]"


# functions and old operator sets

TWICE = '<domain: "f", opset_import: ["" : 21]> Twice <k> (a) => (c) { b = Sub(a, a)  d = Add(a, b)  c = Mul(d, a) }'
OUTER = '<domain: "f", opset_import: ["" : 21, "f" : 1]> Outer (a) => (c) { b = f.Twice(a)  c = Tanh(b) }'


def test_functions_on_the_way_are_inlined_and_others_stay():
    text = WITH_F + (
        "g (double[2,3] x, double[2,3] z) => (double[2,3] y, double[2,3] u) { y = f.Outer(x)  u = f.Sides(z) }"
        + OUTER
        + TWICE
        + '<domain: "f", opset_import: ["" : 21]> Sides (a) => (c) { c = Exp(a) }'
    )
    found = sabir.differentiate(sabir.parse(text), "y", ["x"])
    assert [f.name for f in found.functions] == ["Sides"]
    expected = 2 * X * (1 - np.tanh(X * X) ** 2)
    equal(gradients(text, ["x"], {"x": X, "z": X}), [expected])


def test_a_function_within_a_branch():
    text = (
        WITH_F
        + """g (bool k, double[2,3] x) => (double[2,3] y) { y = If(k) <
        then_branch = a () => (double[2,3] p) { p = f.Twice(x) },
        else_branch = b () => (double[2,3] q) { q = Neg(x) }> }"""
        + TWICE
    )
    equal(gradients(text, ["x"], {"x": X, "k": True}), [2 * X])
    equal(gradients(text, ["x"], {"x": X, "k": False}), [-np.ones((2, 3))])


def test_an_operator_with_a_body_and_without_a_gradient_is_written_out():
    square = Operator("Square", "test", summary="The square.")
    kind = Constraint("T", FLOATS)
    v1 = square.first(1, inputs=[Input("x", kind)], outputs=[Output("y", kind)])
    v1.infer(lambda x, /: x)
    v1.body(lambda b, x, /: b.Mul(x, x))
    head = '<ir_version: 10, opset_import: ["" : 21, "test" : 1]>\n'
    model = sabir.parse(
        head + "g (double[2,3] x, double[2,3] z) => (double[2,3] y) { a = test.Square(x)  y = Tanh(a) }"
    )
    registry = STANDARD.with_operators(square)
    found = sabir.differentiate(model, "y", ["x"], registry=registry)
    assert [n.op for n in found.graph][:2] == ["Mul", "Tanh"]
    equal([sabir.evaluate(found, {"x": X, "z": X})["grad_x"]], [2 * X * (1 - np.tanh(X * X) ** 2)])
    v1.absent("gradient", "the test says so")
    with pytest.raises(UnsupportedError, match="test.Square:1 has no gradient: the test says so"):
        sabir.differentiate(model, "y", ["x"], registry=registry)


def test_an_old_model_is_converted():
    text = """<ir_version: 7, opset_import: ["" : 12]>
        g (double[2,3] x) => (double[2] y) { a = Mul(x, x)  y = ReduceSum<axes = [1], keepdims = 0>(a) }"""
    model = sabir.parse(text)
    found = sabir.differentiate(model, "y", ["x"])
    assert (model.opset(), found.opset()) == (12, 18)
    equal([sabir.evaluate(found, {"x": X})["grad_x"]], [2 * X])
    assert sabir.convert(found, 13).opset() == 13


def test_an_old_model_that_cannot_be_converted_is_refused():
    text = (
        '<ir_version: 3, opset_import: ["" : 1]> g (float[2] x, float[2] s) => (float[2] y) { y = Scaler(x) }'
    )
    with pytest.raises((ConversionError, SchemaError)):
        sabir.differentiate(sabir.parse(text), "y", ["x"])


# untrusted models


def test_a_cycle_is_refused():
    model = sabir.parse(HEAD + "g (float[2] x) => (float[2] y) { a = Add(x, x)  y = Neg(a) }")
    add, neg = model.graph
    add.inputs[1] = neg.output
    with pytest.raises(SchemaError, match="cycle"):
        sabir.differentiate(model, "y", ["x"])


def test_a_function_that_calls_itself_is_refused():
    text = (
        WITH_F
        + 'g (float[2] x) => (float[2] y) { y = f.F(x) } <domain: "f", opset_import: ["f" : 1]> F (a) => (b) { b = f.F(a) }'
    )
    with pytest.raises(SchemaError, match="calls itself"):
        sabir.differentiate(sabir.parse(text), "y", ["x"])


def test_functions_that_call_one_another_too_often_are_refused():
    functions = "".join(
        f'<domain: "f", opset_import: ["" : 21, "f" : 1]> F{i} (a) => (c) {{ b = f.F{i + 1}(a)  c = f.F{i + 1}(b) }}'
        for i in range(30)
    )
    last = '<domain: "f", opset_import: ["" : 21]> F30 (a) => (b) { b = Neg(a) }'
    text = WITH_F + "g (float[2] x) => (float[2] y) { y = f.F0(x) }" + functions + last
    with pytest.raises(LimitError, match="nodes"):
        sabir.differentiate(sabir.parse(text), "y", ["x"])


def test_branches_that_are_nested_too_deep_are_refused():
    inner = "y = Neg(x)"
    for depth in range(40):
        name = f"v{depth}"
        inner = f"y = If(k) < then_branch = t{depth} () => (float[2] y) {{ {inner.replace('y =', f'{name} =')} y = Neg({name}) }}, else_branch = e{depth} () => (float[2] z) {{ z = Neg(x) }}>"
    text = HEAD + f"g (bool k, float[2] x) => (float[2] y) {{ {inner} }}"
    model = sabir.parse(text, limits=sabir.Limits(depth=100))
    with pytest.raises(LimitError, match="nested too deep"):
        sabir.differentiate(model, "y", ["x"])


def test_a_long_chain():
    b = sabir.Builder(21)
    x, w = b.input("x", "double", [2]), b.initializer("w", np.full(2, 0.5))
    value = x
    for _ in range(600):
        value = b.Tanh(b.Mul(value, w))
    b.output(value, "y")
    found = sabir.differentiate(b.model(), "y", ["x"])
    assert len(found.graph) < 8 * 600
    assert np.isfinite(sabir.evaluate(found, {"x": np.ones(2)})["grad_x"]).all()
