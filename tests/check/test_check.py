"""The checker finds everything at once, and says where."""

import pytest

import sabir
from sabir.base import CheckError, WireError
from sabir.ir import Attribute, Builder, Function, Graph, Node, TensorType, Value, tensor_type


def found(model):
    return [(f.rule, str(f.location)) for f in sabir.findings(model)]


def good():
    b = Builder(21)
    b.output(b.Relu(b.input("x", "float", ["N"])), "y")
    return b.model()


def test_a_good_model_passes(tmp_path):
    assert sabir.check(good()) is None
    sabir.save(good(), tmp_path / "m.onnx")
    sabir.check(tmp_path / "m.onnx")
    sabir.check(sabir.dumps(good()))


def test_all_findings_come_at_once():
    b = Builder(21)
    x = b.input("x", "float", ["N"])
    b.output(b.Softmaxx(x), "a", "float", ["N"])
    b.output(b.Relu(x, x), "b", "float", ["N"])
    b.output(b.Softmax(x, ax=1), "c", "float", ["N"])
    b.output(b.Relu(Value("ghost")), "d", "float", ["N"])
    b.output(b.Reshape(b.input("i", "float", [2, 3]), b.initializer("s", [5])), "e", "float", [5])
    with pytest.raises(CheckError) as error:
        sabir.check(b.model())
    assert [(f.rule, str(f.location)) for f in error.value.findings] == [
        ("NODE001", "graph/node[0] 'Softmaxx'"),
        ("NODE002", "graph/node[1] 'Relu'"),
        ("NODE003", "graph/node[2] 'Softmax'"),
        ("GRAPH005", "graph/node[3] 'Relu'/input[0] 'ghost'"),
        ("TYPE001", "graph/node[4] 'Reshape'"),
    ]
    text = str(error.value)
    assert "5 problems" in text
    assert "is it 'Softmax'?" in text
    assert "6 elements cannot take the shape [5]" in text


def test_a_name_defined_twice():
    model = good()
    model.graph.append(Node("Relu", [model.graph.inputs[0]], [Value("y")]))
    assert found(model) == [("GRAPH004", "graph/node[1] 'Relu'/output[0] 'y'")]


def test_a_name_read_before_its_definition():
    model = good()
    model.graph.prepend(Node("Relu", [model.graph.outputs[0]], [Value("z")]))
    assert ("GRAPH006", "graph/node[0] 'Relu'/input[0] 'y'") in found(model)


def test_an_output_that_is_nowhere():
    model = good()
    model.graph.outputs.append(Value("ghost"))
    assert ("GRAPH005", "graph/output[1] 'ghost'") in found(model)


def test_subgraphs_are_checked():
    b = Builder(21)
    cond = b.input("c", "bool", [])
    then = Graph("then")
    then.outputs.append(then.append(Node("Nothing", [Value("ghost")])).output)
    b.output(b.If(cond, then_branch=then, else_branch=Graph("else")), "y")
    rules = found(b.model())
    assert ("NODE001", "graph/node[0] 'If'/attribute 'then_branch'/node[0] 'Nothing'") in rules
    assert (
        "GRAPH005",
        "graph/node[0] 'If'/attribute 'then_branch'/node[0] 'Nothing'/input[0] 'ghost'",
    ) in rules


def test_functions_are_checked():
    b = Builder(21, opsets={"d": 1})
    a = Value("a")
    f = Function("F", "d", graph=Graph("F", [a]), attributes={"p": None}, opsets={"": 21})
    bad = f.graph.append(Node("Softmax", [a], attributes={"axis": Attribute("axis", "int", None, ref="q")}))
    f.graph.outputs.append(bad.output)
    b.output(b.op("F", b.input("x", "float", [1]), b.input("z", "float", [1]), domain="d"), "y", "float", [1])
    assert found(b.model(functions=[f])) == [
        ("NODE002", "graph/node[0] 'F'"),
        ("NODE006", "function[0] 'F'/node[0] 'Softmax'/attribute 'axis'"),
    ]


def test_references_outside_functions():
    model = good()
    node = next(iter(model.graph))
    node.op = "Softmax"
    node.attributes["axis"] = Attribute("axis", "int", None, ref="q")
    assert ("NODE006", "graph/node[0] 'Softmax'/attribute 'axis'") in found(model)


def test_the_header():
    model = good()
    model.ir_version, model.opsets = 0, {}
    assert [r for r, _ in found(model)] == ["MODEL001", "MODEL002", "NODE001"]
    assert ("MODEL003", "graph") in found(sabir.Model(opsets={"": 21}))


def test_declared_types_that_do_not_hold():
    model = good()
    model.graph.outputs[0].type = tensor_type("int64", ["N"])
    assert found(model) == [("TYPE001", "graph/node[0] 'Relu'/output 'y'")]
    model.graph.outputs[0].type = TensorType(tensor_type("float").element, (1, 2))
    assert found(model) == [("TYPE001", "graph/node[0] 'Relu'/output 'y'")]


def test_what_comes_twice_is_told():
    data = sabir.dumps(good())
    twice = data + b"\x42\x04\x0a\x00\x10\x15"  # another opset_import
    assert ("MODEL004", "opset_import 'ai.onnx'") in found(twice)


def test_no_model_to_check():
    with pytest.raises(WireError):
        sabir.check(b"nonsense")


def test_a_long_list_is_cut_in_the_message_only():
    b = Builder(21)
    for i in range(50):
        b.output(b.Nothing(b.input("x", "float", [1])), f"y{i}", "float", [1])
    with pytest.raises(CheckError, match="and 30 more") as error:
        sabir.check(b.model())
    assert len(error.value.findings) == 50
