"""Feeds, functions, plans: running models by the interpreter."""

import threading

import numpy as np
import pytest

import sabir
from sabir.base import EvaluationError, FeedError, LimitError, SabirWarning, SchemaError, UnsupportedError
from sabir.evaluation import Runner
from sabir.ir import Attribute, Builder, Function, Graph, Node, SequenceType, Value, tensor_type


def relu_model(shape=("N", 3), kind="float"):
    b = Builder(21)
    x = b.input("x", kind, shape)
    b.output(b.Relu(x), "y", kind, shape)
    return b.model()


def two_inputs():
    b = Builder(21)
    x, z = b.input("x", "float", ["N", 3]), b.input("z", "float", ["N", "N"])
    b.output(b.Relu(x), "y")
    b.output(b.Relu(z), "w")
    return b.model()


X = np.array([[-1, 0, 2]], np.float32)


def test_outputs_come_by_name():
    assert sabir.evaluate(relu_model(), {"x": X})["y"].tolist() == [[0, 0, 2]]
    assert list(sabir.evaluate(two_inputs(), {"x": X, "z": X[:, :1]}, ["w"])) == ["w"]


def test_plain_python_numbers_are_converted():
    assert sabir.evaluate(relu_model(), {"x": [[-1, 2, 3]]})["y"].dtype == np.float32


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, r"input 'x' \(float\[N,3\]\) is missing"),
        ({"X": X}, "no input 'X'; is it 'x'"),
        ({"q": X}, "no input 'q'; is it|the inputs are 'x'"),
        (
            {"x": X.astype(np.float64)},
            r"'x' is declared float\[N,3\], and got double\[1, 3\]; convert it with .astype\(np.float32\)",
        ),
        ({"x": X[0]}, r"has the shape \[3\], of rank 1 and not 2"),
        ({"x": X[:, :2]}, "axis 1 is 2, and must be 3"),
        ({"x": ["a"]}, "and got a list"),
        ({"x": np.array([1], np.longdouble)}, "got"),
        ({"x": {"a": 1}}, "got a dict"),
    ],
)
def test_wrong_feeds_are_told(feeds, message):
    with pytest.raises(FeedError, match=message):
        sabir.evaluate(relu_model(), feeds)


def test_a_dimension_variable_has_one_size_in_a_run():
    with pytest.raises(FeedError, match="N is 2 in input 'x', and 3 here"):
        sabir.evaluate(two_inputs(), {"x": np.zeros((2, 3), np.float32), "z": np.zeros((3, 3), np.float32)})
    with pytest.raises(FeedError, match="N is 1 in input 'x', and 2 here"):
        sabir.evaluate(two_inputs(), {"x": np.zeros((1, 3), np.float32), "z": np.zeros((2, 1), np.float32)})


def test_an_input_with_an_initializer_has_a_default():
    model = relu_model((3,))
    model.graph.set_initializer(model.graph.inputs[0], sabir.ir.ArrayTensor(X[0]))
    assert sabir.evaluate(model, {})["y"].tolist() == [0, 0, 2]
    assert sabir.evaluate(model, {"x": -X[0]})["y"].tolist() == [1, 0, 0]


def test_unknown_outputs_are_told():
    with pytest.raises(FeedError, match="no value 'yy'; is it 'y'"):
        sabir.evaluate(relu_model(), {"x": X}, ["yy"])


def test_an_inner_value_may_be_asked_for():
    b = Builder(21)
    x = b.input("x", "float", [1, 3])
    inner = b.Relu(x)
    inner.name = "inner"
    b.output(b.Softmax(inner), "y")
    found = sabir.evaluate(b.model(), {"x": X}, ["inner", "x"])
    assert found["inner"].tolist() == [[0, 0, 2]]
    assert found["x"] is not X
    np.testing.assert_array_equal(found["x"], X)


def test_only_what_is_wanted_runs():
    b = Builder(21, check=False)
    x = b.input("x", "float", [2, 3])
    b.output(b.Relu(x), "good")
    b.output(b.Reshape(x, b.initializer("shape", [5])), "bad")
    model = b.model()
    assert set(sabir.evaluate(model, {"x": X.repeat(2, 0)}, ["good"])) == {"good"}
    with pytest.raises(EvaluationError, match="Reshape with output 'bad'"):
        sabir.evaluate(model, {"x": X.repeat(2, 0)})


def test_intermediates_are_dropped_after_their_last_use():
    b = Builder(21)
    x = b.input("x", "float", [1, 3])
    b.output(b.Relu(b.Relu(b.Relu(x))), "y")
    plan = Runner(b.model())._plan(("y",))
    dead = [call.dead for call in plan.calls]
    assert [len(d) for d in dead] == [0, 1, 1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda b, x: b.Relou(x), r"Relou.* is not an operator that Sabir knows; is it 'Relu'"),
        (lambda b, x: b.op("Relu", x, domain="com.example"), "no operator set of 'com.example'"),
        (lambda b, x: b.Relu(x, x), "takes 1 input, but the node has 2"),
        (lambda b, _: b.Relu(), "requires the input 'X'"),
        (lambda b, x: b.Softmax(x, axes=1), "no attribute 'axes'; is it 'axis'"),
        (lambda b, x: b.Softmax(x, axis=1.0), "attribute 'axis' is float, and must be int"),
        (lambda b, _: b.Relu(Value("ghost")), "'ghost' is read, but nothing defines it"),
    ],
)
def test_wrong_nodes_are_told_before_anything_runs(build, message):
    b = Builder(21, check=False)
    b.output(build(b, b.input("x", "float", [1, 3])), "y")
    with pytest.raises(SchemaError, match=message):
        sabir.Session(b.model())


def unsorted():
    b = Builder(21)
    x = b.input("x", "float", [2])
    first, second = b.Relu(x).node, b.Neg(x).node
    first.inputs[0] = second.output
    b.output(first.output, "y")
    return b.model(), first, second


def test_unsorted_nodes_run_in_order_with_a_warning():
    model, first, second = unsorted()
    with pytest.warns(SabirWarning, match="the graph 'main' are not in topological order.*check --fix"):
        assert sabir.evaluate(model, {"x": [1.0, -2.0]})["y"].tolist() == [0, 2]
    assert list(model.graph) == [first, second]


def test_nodes_that_read_one_another_are_refused():
    model, first, second = unsorted()
    second.inputs[0] = first.output
    with pytest.raises(SchemaError, match="cycle"):
        sabir.evaluate(model, {"x": [1.0, 2.0]})


def test_the_default_operator_set_is_imported_implicitly():
    text = '<ir_version: 8, opset_import: ["ai.onnx.ml" : 3]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    with pytest.warns(
        SabirWarning, match="the model uses Relu without importing ai.onnx; opset 18 is assumed"
    ):
        assert sabir.evaluate(sabir.parse(text), {"x": [1.0, -2.0]})["y"].tolist() == [1, 0]


def test_an_unknown_newer_opset_is_refused_unless_asked_for():
    text = '<ir_version: 8, opset_import: ["" : 999]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    with pytest.raises(UnsupportedError, match="opset 999.*newest known one is 28.*newer_opsets"):
        sabir.evaluate(sabir.parse(text), {"x": [1.0, -2.0]})
    got = sabir.Session(sabir.parse(text), newer_opsets=True).run({"x": [1.0, -2.0]})
    assert got["y"].tolist() == [1, 0]


@pytest.mark.parametrize("version", [99, 1000, -1])
def test_an_unknown_ir_version_is_an_error_everywhere(version):
    """An increment of the IR version is a breaking change, so a reader that does not know it cannot trust the file."""
    model = sabir.parse(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
    )
    model.ir_version = version
    for call in (
        sabir.Session,
        lambda m: sabir.Session(m, engine="reference"),
        lambda m: sabir.TrainingSession(m).run({"x": [1.0, -2.0]}),
        lambda m: sabir.evaluate(m, {"x": [1.0, -2.0]}),
        lambda m: sabir.convert(m, 18),
        lambda m: sabir.convert(m, ir_version=10),
    ):
        with pytest.raises(
            UnsupportedError, match=f"IR version {version} is not known; the newest known one is 14"
        ):
            call(model)
    with pytest.raises(sabir.CheckError, match=f"ir_version {version} is not in the standard"):
        sabir.check(model)
    for kind in (sabir.Session, sabir.TrainingSession):
        assert kind(model, newer_opsets=True).run({"x": [1.0, -2.0]})["y"].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "opset"), [("Scatter (x, i, x)", 11), ('Upsample <mode = "nearest"> (x, s)', 10)]
)
def test_a_removed_operator_is_refused(call, opset):
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[2] x) => (float[2] y) {{
        i = Constant <value = int64[2] {{1, 0}}> ()  s = Constant <value = float[1] {{1}}> ()  y = {call} }}"""
    with pytest.raises(
        SchemaError, match=f"was removed from ai.onnx with opset {opset}, and the model imports {opset}"
    ):
        sabir.evaluate(sabir.parse(text), {"x": [1.0, 2.0]})


def function_model(*calls, nested=False):
    """`F(a) = Softmax(a, axis=@ax)`, default -1; `G(a) = F(a, ax=@gx)`."""
    b = Builder(21, opsets={"d": 1})
    x = b.input("x", "float", [2, 2])
    a = Value("a")
    f = Function("F", "d", graph=Graph("F", [a]), attributes={"ax": Attribute.of("ax", -1)}, opsets={"": 13})
    soft = f.graph.append(Node("Softmax", [a], attributes={"axis": Attribute("axis", "int", None, ref="ax")}))
    f.graph.outputs.append(soft.output)
    c = Value("c")
    g = Function("G", "d", graph=Graph("G", [c]), attributes={"gx": None}, opsets={"": 21, "d": 1})
    call = g.graph.append(
        Node("F", [c], domain="d", attributes={"ax": Attribute("ax", "int", None, ref="gx")})
    )
    g.graph.outputs.append(call.output)
    for attributes in calls:
        b.output(b.op("G" if nested else "F", x, domain="d", **attributes))
    return b.model(functions=[f, g])


def test_functions_with_attributes():
    x = np.log(np.array([[1, 3], [1, 1]], np.float32))
    rows, columns = sabir.evaluate(function_model({}, {"ax": 0}), {"x": x}).values()
    np.testing.assert_allclose(rows, [[0.25, 0.75], [0.5, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(columns, [[0.5, 0.75], [0.5, 0.25]], rtol=1e-6)
    by_default, given = sabir.evaluate(function_model({}, {"gx": 0}, nested=True), {"x": x}).values()
    np.testing.assert_array_equal(by_default, rows)
    np.testing.assert_array_equal(given, columns)


def test_functions_are_saved_and_typed():
    model = sabir.loads(sabir.dumps(function_model({"gx": 0}, nested=True)))
    sabir.check(model)
    model = sabir.infer(model)
    assert str(model.graph.outputs[0].type) == "float[2,2]"


def test_an_unknown_attribute_of_a_function():
    with pytest.raises(SchemaError, match="no attribute 'by'"):
        sabir.evaluate(function_model({"by": 1}), {"x": np.zeros((2, 2), np.float32)})


def test_a_function_that_calls_itself_is_refused():
    model = function_model({})
    f = model.functions[0]
    f.opsets["d"] = 1
    node = next(iter(f.graph))
    again = f.graph.append(Node("F", [node.output], domain="d"))
    f.graph.outputs[0] = again.output
    with pytest.raises(SchemaError, match="calls itself"):
        sabir.evaluate(model, {"x": np.zeros((2, 2), np.float32)})


def doubling(levels):
    """Functions of which each calls the next one twice."""
    functions = []
    for level in range(levels):
        a = Value("a")
        f = Function(f"F{level}", "d", graph=Graph("f", [a]), opsets={"": 21, "d": 1})
        last = level == levels - 1
        for _ in range(2):
            a = f.graph.append(
                Node("Relu" if last else f"F{level + 1}", [a], domain="" if last else "d")
            ).output
        f.graph.outputs.append(a)
        functions.append(f)
    b = Builder(21, opsets={"d": 1})
    b.output(b.op("F0", b.input("x", "float", [2]), domain="d"), "y")
    return b.model(functions=functions)


def test_functions_that_double_do_not_run_for_ever():
    x = {"x": np.array([-1, 1], np.float32)}
    assert sabir.evaluate(doubling(8), x)["y"].tolist() == [0, 1]
    with pytest.raises(LimitError, match=r"Limits\(nodes=\d+\)"):
        sabir.evaluate(doubling(40), x)
    assert str(sabir.infer(doubling(40)).graph.outputs[0].type) == "float[2]"
    sabir.check(doubling(40))


def test_overloads_are_told_apart():
    b = Builder(21, opsets={"d": 1})
    x = b.input("x", "float", [1])
    functions = []
    for overload, op in (("", "Relu"), ("soft", "Softmax")):
        a = Value("a")
        f = Function("F", "d", overload, Graph("F", [a]), opsets={"": 21})
        f.graph.outputs.append(f.graph.append(Node(op, [a])).output)
        functions.append(f)
        b.output(b.op("F", x, domain="d", overload=overload), overload or "plain")
    found = sabir.evaluate(b.model(functions=functions), {"x": np.array([-3], np.float32)})
    assert {k: v.tolist() for k, v in found.items()} == {"plain": [0], "soft": [1]}


def test_sequences_are_lists():
    b = Builder(21)
    x = b.input("s", SequenceType(tensor_type("float", [2])))
    b.output(x, "s")
    model = b.model()
    given = [np.zeros(2, np.float32), np.ones(2, np.float32)]
    got = sabir.evaluate(model, {"s": given})["s"]
    assert [x.tolist() for x in got] == [[0, 0], [1, 1]]
    with pytest.raises(FeedError, match="pass a list"):
        sabir.evaluate(model, {"s": given[0]})
    with pytest.raises(FeedError, match="item 1"):
        sabir.evaluate(model, {"s": [given[0], np.zeros(3, np.float32)]})


def test_one_session_serves_several_threads():
    session = sabir.Session(relu_model(("N", "M")))
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            x = rng.standard_normal((seed + 1, 4), np.float32)
            if not np.array_equal(session.run({"x": x})["y"], np.maximum(x, 0)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
