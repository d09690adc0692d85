"""Hostile models end in a typed error, and cost no more than their size."""

import numpy as np
import pytest

import sabir
from sabir.base import ExternalDataError, LimitError, SchemaError, WireError
from sabir.ir import Function, Graph, Model, Node, SequenceType, Value, tensor_type
from support.bounds import bounded

HEADER = '<ir_version: 10, opset_import: ["" : 21, "d" : 1]>'


@pytest.fixture
def plain():
    return sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu (x) }}")


def test_nodes_in_a_cycle(plain):
    cyclic = sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Add (x, z) z = Neg (y) }}")
    for pair in ((plain, cyclic), (cyclic, plain), (cyclic, cyclic)):
        with pytest.raises(SchemaError, match="read each other in a cycle"):
            sabir.compare(*pair)


def test_functions_in_a_cycle(plain):
    bodies = [
        f'<domain: "d", opset_import: ["d" : 1]> {name} (a) => (b) {{ b = d.{callee} (a) }}'
        for name, callee in (("f", "h"), ("h", "f"))
    ]
    cyclic = sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = d.f (x) }} {' '.join(bodies)}")
    with pytest.raises(SchemaError, match=r"the functions 'd\.[fh]', 'd\.[fh]' call each other in a cycle"):
        sabir.compare(plain, cyclic)


def test_a_function_that_calls_itself(plain):
    cyclic = plain.clone()
    body = Graph("body")
    body.outputs.append(body.append(Node("f", domain="d")).output)
    cyclic.functions.append(Function("f", "d", graph=body))
    with pytest.raises(SchemaError, match=r"the functions 'd\.f' call each other in a cycle"):
        sabir.compare(plain, cyclic)


def test_a_long_chain_of_functions(plain):
    long = plain.clone()
    for index in range(3000):
        body = Graph("body")
        body.outputs.append(body.append(Node(f"f{index + 1}", domain="d")).output)
        long.functions.append(Function(f"f{index}", "d", graph=body))
    with bounded():
        assert {c.kind for c in sabir.compare(plain, long).changes} == {"function-added"}


def test_functions_that_call_each_other_twice_cost_their_size():
    model = Model(opsets={"d": 1})
    for index in range(200):
        body = Graph("body")
        for _ in range(2):
            body.outputs.append(body.append(Node(f"f{index + 1}", domain="d")).output)
        model.functions.append(Function(f"f{index}", "d", graph=body))
    model.graph.append(Node("f0", domain="d"))
    with bounded():
        assert sabir.compare(model, model.clone()).changes == ()


def nested(depth):
    graph = Graph("leaf")
    for _ in range(depth):
        outer = Graph("outer")
        outer.append(Node("If", attributes={"then_branch": graph}))
        graph = outer
    return Model(graph, opsets={"": 21})


def test_graphs_nested_too_deep():
    with pytest.raises(LimitError, match="nested too deep"):
        sabir.compare(nested(1), nested(40))
    with bounded(), pytest.raises(LimitError, match="nested too deep"):
        sabir.compare(nested(1), nested(2000))
    assert sabir.compare(nested(40), nested(40), limits=sabir.Limits(depth=50)).changes == ()


def test_types_nested_too_deep(plain):
    type_ = tensor_type("float")
    for _ in range(40):
        type_ = SequenceType(type_)
    plain.graph.inputs[0].type = type_
    for call in (sabir.compare, sabir.accepts):
        with pytest.raises(LimitError, match="nested too deep"):
            call(plain, plain.clone())


def test_data_that_is_missing(tmp_path):
    model = sabir.parse(f"{HEADER} g (float[600] x) => (float[600] y) {{ y = Relu (x) }}")
    model.graph.set_initializer(Value("w"), np.zeros(600, np.float32))
    sabir.save(model, tmp_path / "model.onnx", external="w.data", threshold=0)
    loaded = sabir.load(tmp_path / "model.onnx")
    (tmp_path / "w.data").unlink()
    with pytest.raises(ExternalDataError, match="w.data"):
        sabir.compare(model, loaded)
    assert sabir.accepts(model, loaded)  # which reads no weights


def test_data_that_cannot_be_decoded(plain):
    proto = sabir.to_proto(plain)
    proto.graph.initializer.add(name="w", data_type=1, dims=[2], float_data=[1.0])
    with pytest.raises(WireError):
        sabir.compare(plain, sabir.from_proto(proto))


def test_values_that_nothing_defines():
    model = sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Add (x, z) }}")
    other = sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Add (x, w) }}")
    assert sabir.compare(model, model.clone()).changes == ()
    assert [c.kind for c in sabir.compare(model, other).changes] == ["operands-changed"]


def test_names_that_are_not_unique():
    model = sabir.parse(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu (x) }}")
    model.graph.add_input("x", tensor_type("float"))
    model.graph.outputs.append(model.graph.outputs[0])
    model.graph.outputs.append(None)
    assert sabir.compare(model, model.clone()).changes == ()


def test_an_empty_model(plain):
    assert sabir.compare(Model(), Model()).changes == ()
    assert {c.bump for c in sabir.compare(plain, Model()).changes} == {"major", "patch", None}
