# ruff: file-ignore[unused-function-argument]  each function that breaks something takes the same parts
"""Assignments keep the links of the graph, or raise."""

import numpy as np
import pytest

import sabir
from sabir.ir import Attribute, Graph, Model, Node, Value, verify


def pair():
    graph = Graph("g")
    x, y = graph.add_input("x"), graph.add_input("y")
    add = graph.append(Node("Add", [x, y]))
    relu = graph.append(Node("Relu", [add.output]))
    graph.outputs.append(relu.output)
    return graph, x, y, add, relu


def test_assigned_inputs_and_outputs_are_linked():
    graph, x, y, add, relu = pair()
    add.inputs = [y, y]
    assert x.uses == ()
    assert len(y.uses) == 2
    graph.outputs = [add.output, relu.output]
    assert len(add.output.uses) == 2
    graph.inputs = [y]
    assert x.source is None
    verify(graph)
    with pytest.raises(TypeError, match="a Value is expected"):
        add.inputs = [y, "x"]
    assert list(add.inputs) == [y, y]
    verify(graph)


def test_assigned_results_are_linked():
    graph, _, _, add, relu = pair()
    old, new = relu.output, Value("new")
    graph.outputs.clear()
    relu.outputs = [new, None]
    assert (old.source, new.source) == (None, relu)
    with pytest.raises(ValueError, match="belongs to <Node Add>"):
        relu.outputs = [add.output]
    with pytest.raises(ValueError, match="listed twice"):
        relu.outputs = [old, old]
    assert relu.outputs == (new, None)
    assert old.source is None
    verify(graph)


def test_a_value_has_one_definition():
    graph, x, _, add, relu = pair()
    with pytest.raises(ValueError, match=r"belongs to <Node Add> already; use a new Value"):
        Node("Neg", [x], [add.output])
    assert len(x.uses) == 1
    with pytest.raises(ValueError, match="listed twice among the outputs"):
        Node("Neg", [x], [fresh := Value(), fresh])
    with pytest.raises(ValueError, match="belongs to <Graph 'g'"):
        Graph("h").inputs.append(x)
    with pytest.raises(ValueError, match="belongs to <Node Add>"):
        graph.set_initializer(add.output, np.zeros(2))
    with pytest.raises(ValueError, match="is not an output of"):
        relu.replace_output(add.output, Value())
    with pytest.raises(ValueError, match="belongs to <Graph 'g'"):
        relu.replace_output(relu.output, x)
    verify(graph)


def test_attributes_convert_what_is_assigned():
    node = Node("Op", [], 1, {"axis": 1, "mode": "linear"})
    node.attributes["alpha"] = 0.5
    node.attributes["beta"] = Attribute.of("alpha", 2)
    assert [(a.name, a.type) for a in node.attributes.values()] == [
        ("axis", "int"), ("mode", "string"), ("alpha", "float"), ("beta", "int"),
    ]  # fmt: skip
    node.attributes = {"then_branch": Graph("t")}
    assert list(node.attributes) == ["then_branch"]
    assert node.graphs[0].parent is node
    body = node.graphs[0]
    other = Node("If", [], 1, {"then_branch": body})
    del node.attributes["then_branch"]
    assert body.parent is other


def test_initializers_are_edited_like_a_dictionary():
    graph, x, _, add, _ = pair()
    graph.initializers[x] = [1.0, 2.0]
    assert x.constant.array().tolist() == [1.0, 2.0]
    w = graph.add_initializer("w", [1])
    graph.initializers.clear()
    assert (x.source, w.source) == (graph, None)
    with pytest.raises(KeyError):
        del graph.initializers[w]
    with pytest.raises(ValueError, match="belongs to <Node Add>"):
        graph.initializers[add.output] = [1.0]


def break_use(graph, x, relu):
    x._uses[relu, 5] = None


def break_order(graph, x, relu):
    relu._previous = None


def break_count(graph, x, relu):
    graph._count = 7


def break_attribute(graph, x, relu):
    relu.attributes._items["a"] = Attribute.of("b", 1)


def break_data(graph, x, relu):
    graph.initializers._items[x] = np.zeros(2)


def read_elsewhere(graph, x, relu):
    relu.inputs[0] = Graph("other").add_input("z")


def read_removed(graph, x, relu):
    del graph.inputs[0]


def share(graph, x, relu):
    body = Graph("body")
    for name in ("then_branch", "else_branch"):
        relu.attributes[name] = body


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (break_use, "lists a use in slot 5 of <Node Relu>, which does not read it"),
        (break_order, "nodes forwards"),
        (break_count, "and counts 7"),
        (break_attribute, "has the attribute 'b' under the name 'a'"),
        (break_data, "for a tensor"),
        (read_elsewhere, "of <Graph 'other': 0 nodes>, which is not in scope"),
        (read_removed, "before anything defines it"),
        (share, "is in the model twice"),
    ],
)
def test_verify_finds(harm, message):
    graph, x, _, _, relu = pair()
    harm(graph, x, relu)
    with pytest.raises(ValueError, match=message):
        verify(Model(graph))


def test_verify_accepts_training_that_reads_the_main_graph():
    graph, x, *_ = pair()
    algorithm = Graph("a")
    algorithm.outputs.append(algorithm.append(Node("Neg", [x])).output)
    verify(Model(graph, training=[sabir.ir.TrainingInfo(algorithm=algorithm)]))


def test_a_save_refuses_a_value_of_another_graph():
    graph, x, _, _, relu = pair()
    relu.inputs[0] = Graph("other").add_input("z")
    with pytest.raises(
        sabir.SchemaError, match=r"reads <Value z: \?> of <Graph 'other': 0 nodes>: that is not"
    ):
        sabir.dumps(Model(graph))
    detached = Node("Neg", [x])
    relu.inputs[0] = detached.output
    with pytest.raises(sabir.SchemaError, match="of <Node Neg>, which is in no graph"):
        sabir.dumps(Model(graph))
