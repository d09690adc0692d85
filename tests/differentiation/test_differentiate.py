# ruff: file-ignore[unused-lambda-argument, unused-function-argument]  a behaviour takes the whole signature
"""The conventions of gradients, by operators of the tests: the builder, what passes, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

import sabir
from sabir.base import LimitError, NotFoundError, SchemaError, UnsupportedError
from sabir.differentiation import differentiate
from sabir.differentiation._shaped import ShapedDetachedBuilder
from sabir.evaluation import Runner
from sabir.ir import Value, tensor_type, verify
from sabir.opsets import STANDARD
from sabir.schema import FLOATS, Constraint, Input, Operator, Output

HEAD = '<ir_version: 10, opset_import: ["" : 21, "test" : 1]>\n'
T = Constraint("T", FLOATS)


def operator(name, gradient=None, *, reason=""):
    """The sum and the difference of two inputs, with a gradient of the test's."""
    op = Operator(name, "test", summary="The sum and the difference.")
    version = op.first(
        1,
        inputs=[Input("a", T), Input("b", T, optional=True)],
        outputs=[Output("sum", T), Output("difference", T, optional=True)],
    )
    version.infer(lambda a, b=None, /: (a, a))
    version.evaluate(lambda a, b=0, /: (a + b, a - b))
    if gradient is not None:
        version.gradient(gradient)
    if reason:
        version.absent("gradient", reason)
    return op


def of(text, gradient=None, wrt=("x",), *, seed=None, strict=False, **options):
    model = sabir.parse(HEAD + text)
    registry = STANDARD.with_operators(operator("Op", gradient, **options))
    found = differentiate(model, "y", list(wrt), seed=seed, strict=strict, registry=registry)
    verify(found)
    return found, registry


def ops(model):
    return [n.op for n in model.graph]


ONE = "g (float[2] x) => (float[2] y) { y = test.Op(x) }"


# what is refused


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (ONE, UnsupportedError, "must pass <Node test.Op>, which computes 'y': test.Op:1 has no gradient$"),
        ("g (int64[2] x) => (int64[2] y) { y = Neg(x) }", SchemaError, "'y' is int64.2.; only floating-point tensors"),
        ("g (float[2] x) => (y) { y = other.Op(x) }", SchemaError, "'y' is of unknown type; only floating-point"),
        (
            "g (float[2] x) => (float[2] y) { i = Cast<to = 7>(x)  j = Neg(i)  y = Cast<to = 1>(j) }",
            UnsupportedError,
            "no gradient of 'y' reaches 'x': it ends at <Node Cast>$",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(text, error, message):
    with pytest.raises(error, match=message):
        of(text, strict=True)


def test_the_declared_reason_is_reported():
    with pytest.raises(UnsupportedError, match="Op:1 has no gradient: it is a step$"):
        of(ONE, reason="it is a step")


def test_limits_apply():
    model = sabir.parse(HEAD + ONE.replace("test.Op", "Neg"))
    with pytest.raises(LimitError, match="seconds"):
        differentiate(model, "y", ["x"], limits=sabir.Limits(seconds=1e-9))


def test_an_unknown_name_is_refused():
    with pytest.raises(NotFoundError, match="has no value named 'z'"):
        of("g (float[2] x) => (float[2] y) { y = Neg(x) }", wrt=["z"])


def test_an_operator_that_passes_nothing_on_is_named():
    with pytest.raises(UnsupportedError, match="no gradient of 'y' reaches 'x': it ends at <Node test.Op>$"):
        of(ONE, lambda g, a, b=None, /: None)


def test_an_operator_in_a_branch_that_passes_nothing_on():
    branches = [f"{name} = {name} () => (o) {{ o = test.Op(x) }}" for name in ("then_branch", "else_branch")]
    text = f"g (float[2] x, bool c) => (float[2] y) {{ y = If(c) <{', '.join(branches)}> }}"
    with pytest.raises(UnsupportedError, match="no gradient of 'y' reaches 'x': it ends at <Node If>$"):
        of(text, lambda g, a, b=None, /: None)


def test_a_gradient_for_each_input_is_required():
    with pytest.raises(SchemaError, match="the gradient of test.Op:1 returns 1 values for 2 inputs"):
        of("g (float[2] x) => (float[2] y) { y = test.Op(x, x) }", lambda g, a, b=None, /: g.dy)


def test_the_first_output_may_have_no_gradient():
    text = "g (float[2] x) => (float[2] y) { a, y = test.Op(x) }"
    with pytest.raises(SchemaError, match="the first output of <Node test.Op> has no gradient"):
        of(text, lambda g, a, b=None, /: g.dy)
    found, _ = of(text, lambda g, a, b=None, /: (g.dys[1] if g.dys[0] is None else None, None))
    assert [o.name for o in found.graph.outputs] == ["y", "grad_x"]


def test_a_rank_that_is_needed_and_unknown():
    def gradient(g, a, b=None, /):
        a.type = tensor_type("float")
        return g.Transpose(g.dy, perm=[*range(g.rank(a))])

    with pytest.raises(UnsupportedError, match="a gradient needs the rank of 'x', which is unknown"):
        of(ONE, gradient)


def test_a_constant_needs_an_element_type():
    def gradient(g, a, b=None, /):
        a.type = None
        return g.zeros(a)

    with pytest.raises(UnsupportedError, match="a gradient needs the element type of 'x', which is unknown"):
        of(ONE, gradient)


# what passes


def test_a_path_beside_one_that_integers_stop():
    text = "g (float[2] x) => (float[2] y) { i = Cast<to = 7>(x)  j = Cast<to = 1>(i)  y = Mul(x, j) }"
    found, _ = of(text)
    assert sabir.evaluate(found, {"x": np.float32([1.5, -2.5])})["grad_x"].tolist() == [1, -2]


def test_contributions_meet_in_one_sum():
    found, _ = of(
        "g (float[2] x) => (float[2] y) { a = Neg(x)  b = Exp(x)  c = Tanh(x)  d = Sum(a, b, c)  y = Mul(d, x) }"
    )
    assert ops(found).count("Sum") == 2  # the forward one, and one for the four readers of x
    assert len(next(n for n in reversed(list(found.graph)) if n.op == "Sum").inputs) == 4


def test_what_nothing_reads_is_erased():
    found, _ = of("g (float[2] x, float[2] z) => (float[2] y) { y = Mul(x, z) }")
    assert ops(found) == ["Mul", "Expand", "Mul", "Identity"]
    assert len(found.graph.initializers) == 2  # those of the seed


def test_an_output_that_the_node_leaves_out_is_named():
    found, registry = of(ONE, lambda g, a, b=None, /: (g.Mul(g.dy, g.y(1)), None))
    assert len(found.graph[0].outputs) == 2
    result = Runner(found, registry).run({"x": np.float32([3, 4])})
    assert result["grad_x"].tolist() == [3, 4]


def test_which_gradients_are_wanted():
    seen = []
    of(
        "g (float[2] x, float[2] z) => (float[2] y) { y = test.Op(x, z) }",
        lambda g, a, b, /: seen.append([g.wants(i) for i in range(3)]) or (g.dy, None),
    )
    assert seen == [[True, False, False]]


def test_values_inside_the_graph_and_the_target_itself():
    model = sabir.parse(HEAD + "g (float[2] x) => (float[2] y) { t = Exp(x)  y = Mul(t, t) }")
    found = differentiate(model, "y", ["x", "t", "y"], seed="seed")
    x, seed = np.float32([0, 1]), np.float32([1, 2])
    results = sabir.evaluate(found, {"x": x, "seed": seed})
    np.testing.assert_allclose(results["grad_x"], 2 * np.exp(2 * x) * seed, rtol=1e-6)
    np.testing.assert_allclose(results["grad_t"], 2 * np.exp(x) * seed, rtol=1e-6)
    np.testing.assert_array_equal(results["grad_y"], seed)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_the_element_type_is_kept(dtype):
    b = sabir.Builder(18)
    x, w = b.input("x", dtype, ["N", 3]), b.input("w", dtype, [3])
    b.output(b.Softmax(b.Relu(b.Div(b.Add(x, w), b.initializer("two", np.array(2, dtype)))), axis=-1), "y")
    found = differentiate(b.model(), "y", ["x", "w"], seed="seed")
    sabir.check(found)
    feeds = {"x": np.array([[1, 2, 3], [4, 6, 5]], dtype), "w": np.array([1, 0, -1], dtype)}
    results = sabir.evaluate(found, {**feeds, "seed": np.array([[1, 0, 0], [0, 1, 0]], dtype)})
    assert [results[f"grad_{n}"].dtype for n in "xw"] == [np.dtype(dtype)] * 2
    assert [str(o.type) for o in list(found.graph.outputs)[1:]] == [str(x.type), str(w.type)]


# the builder


def fitted(gradient_type, value_type):
    """The operators that `fit` emits for a gradient of one type and a value of another."""
    b = ShapedDetachedBuilder(opset=21)
    b.fit(Value("d", gradient_type), Value("x", value_type))
    return [n.op for n in b.graph]


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ([2, 3], [2, 3], []),
        (["N", 3], ["N", 3], []),
        (["N", 3], ["M", 3], None),
        ([2, None], [2, 3], []),  # 3 is no size that is repeated
        ([2, 3], [3], ["ReduceSum"]),
        ([2, 3], [2, 1], ["ReduceSum"]),
        (["N", 3], [1, 3], ["ReduceSum"]),
        ([4, 2, 3], [2, 1], ["ReduceSum", "Reshape"]),
        ([2, 3], None, None),
    ],
)
def test_fit_adds_what_the_shapes_require(wide, narrow, expected):
    names = fitted(tensor_type("float", wide), tensor_type("float", narrow))
    if expected is None:  # at run time
        assert names[-2:] == ["ReduceSum", "Reshape"]
        assert "NonZero" in names
    else:
        assert names == expected


def test_numbers_and_lists_are_operands():
    def gradient(g, a, b=None, /):
        chosen = g.Where(g.Greater(a, 0), g.dy, 0.5)
        return g.Squeeze(g.Unsqueeze(chosen, [0]), [0])

    found, registry = of(ONE, gradient, seed="seed")
    feeds = {"x": np.float32([3, -4]), "seed": np.float32([7, 8])}
    assert Runner(found, registry).run(feeds)["grad_x"].tolist() == [7, 0.5]
    types = {str(v.type) for v in found.graph.initializers}
    assert types == {"float", "int64[1]"}


def test_zeros_and_sizes():
    def gradient(g, a, b=None, /):
        assert g.shape(a) == a.type.shape
        return g.Reshape(g.Add(g.zeros(a), g.dy), g.sizes(a))

    for dims in ("2", "N"):
        found, registry = of(f"g (float[{dims}] x) => (float[{dims}] y) {{ y = test.Op(x) }}", gradient)
        assert ("Shape" in ops(found)) == (dims == "N")
        assert Runner(found, registry).run({"x": np.float32([3, 4])})["grad_x"].tolist() == [1, 1]


def test_an_integer_has_no_gradient():
    text = "g (float[2] x, int64[1] i) => (float[2] y) { y = Reshape(x, i) }"
    with pytest.raises(SchemaError, match="'i' is int64.1.; only floating-point"):
        of(text, wrt=["i"])


def test_what_several_gradients_need_is_computed_once():
    """Equal nodes and constants of the backward part are one."""
    text = """<ir_version: 10, opset_import: ["" : 21]> g (double[N] x, double[N] w) => (double[N] y) {
        a = Sigmoid (x)  b = Sigmoid (x)  c = Mul (a, b)  d = Mul (c, w)  e = Mul (c, w)  y = Add (d, e) }"""
    model = sabir.differentiate(sabir.parse(text), "y", ["x", "w"])
    backward = [n for n in list(model.graph)[6:] if n.op != "Identity"]
    keys = [(n.op, tuple(n.inputs), *map(str, n.attributes.values())) for n in backward]
    assert len(set(keys)) == len(keys) > 0
    x, w = np.array([0.5, -2]), np.array([3.0, 4])
    s = 1 / (1 + np.exp(-x))
    found = sabir.evaluate(model, {"x": x, "w": w})
    np.testing.assert_allclose(found["grad_x"], 4 * w * s**2 * (1 - s), rtol=1e-12)
    np.testing.assert_allclose(found["grad_w"], 2 * s**2, rtol=1e-12)


def test_values_and_names_are_arguments():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (double[2] x, double[2] w) => (double[2] y) { p = Mul (x, w)  y = Mul (p, x) }'
    )
    graph = model.graph
    x, w = graph.inputs
    (y,) = graph.outputs
    expected = sabir.dumps(sabir.differentiate(model, "y", ["x", "p"], names={"x": "dx"}))
    for of, wrt, names in ((y, [x, graph.value("p")], {x: "dx"}), (y, ("x", graph.value("p")), {"x": "dx"})):
        assert sabir.dumps(sabir.differentiate(model, of, wrt, names=names)) == expected
    assert sabir.dumps(sabir.differentiate(model, y, w)) == sabir.dumps(sabir.differentiate(model, "y", "w"))
    feeds = {"x": [1.0, 2.0], "w": [3.0, 4.0]}
    for compute in (sabir.vjp, sabir.jacobian, sabir.hessian):
        by_value, by_name = compute(model, feeds, y, [x, w]), compute(model, feeds, "y", ["x", "w"])
        assert by_value.keys() == by_name.keys()
        assert all(np.array_equal(by_value[key], by_name[key]) for key in by_name)


def test_arguments_that_are_no_values_of_the_model_are_refused():
    text = '<ir_version: 10, opset_import: ["" : 21]> g (double[2] x) => (double[2] y) { y = Mul (x, x) }'
    model, other = sabir.parse(text), sabir.parse(text)
    nameless = sabir.parse(text)
    nameless.graph.inputs[0].name = ""
    for of, wrt, message in (
        (["y", "x"], "x", "`of` is one value, and names 2: 'y', 'x'"),
        ([], "x", "`of` is one value, and names 0: none"),
        (other.graph.outputs[0], "x", "`of` has <Value y.*no value of the main graph of this model"),
        ("y", other.graph.inputs, "`wrt` has <Value x.*no value of the main graph of this model"),
        ("y", 3, "`wrt` takes names and values of the model, and not 3"),
        ("y", [None], "`wrt` takes names and values of the model, and not None"),
    ):
        for compute in (sabir.differentiate, lambda m, *a: sabir.vjp(m, {"x": [1.0, 2.0]}, *a)):
            with pytest.raises(sabir.SchemaError, match=message):
                compute(model, of, wrt)
    with pytest.raises(sabir.SchemaError, match="a value without a name"):
        sabir.differentiate(nameless, "y", nameless.graph.inputs[0])
    with pytest.raises(TypeError, match="a sabir.Model is expected, not a str"):
        sabir.differentiate("model.onnx", "y", "x")
