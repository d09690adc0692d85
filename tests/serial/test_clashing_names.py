"""Names that clash in a file stay as they are; names that clash since an edit are made unique."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sabir
from sabir.checking import findings
from sabir.evaluation import Runner
from sabir.ir import Node, Value, clone_graph
from sabir.proto import ModelProto, TensorProto
from support.messages import wire_of

FORMATS = ["protobuf", "textproto", "json", "onnxtxt"]
HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
TWICE = HEAD + "g (float[N] x) => (float[N] y) { y = Relu(x)  z = Neg(y)  y = Abs(z) }"
SHADOW = (
    HEAD
    + "g (bool c, float[N] x) => (float[N] y) { t = Neg(x)  y = If (c) <then_branch = a () => (float[N] t)"
    " { u = Exp(t)  t = Relu(u) }, else_branch = b () => (float[N] x) { v = Abs(x)  x = Neg(v) }> }"
)


def names(model):
    """What is written: each node's inputs and outputs, of inner graphs too."""
    graphs, found = [ModelProto.FromString(sabir.dumps(model)).graph], []
    for graph in graphs:
        for node in graph.node:
            found.append((list(node.input), list(node.output)))
            graphs += [a.g for a in node.attribute if a.HasField("g")]
    return found


def structure(model):
    """What reads what, whatever the values are called."""
    numbers, found = {}, []

    def number(value):
        return None if value is None else numbers.setdefault(value, len(numbers))

    def follow(graph):
        found.append(("graph", [number(v) for v in graph.inputs], len(graph.initializers)))
        found.extend(("constant", number(v)) for v in graph.initializers)
        for node in graph:
            found.append((node.op, [number(v) for v in node.inputs]))
            for inner in node.graphs:
                follow(inner)
            found.append([number(v) for v in node.outputs])
        found.append([number(v) for v in graph.outputs])

    follow(model.graph)
    return found


def through(message, form):
    model = sabir.loads(message.SerializeToString())
    again = sabir.loads(sabir.dumps(model, format=form), format=form)
    return ModelProto.FromString(sabir.dumps(again))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", [TWICE, SHADOW])
def test_a_clash_in_the_file_is_saved_as_it_was(text, form):
    message = ModelProto.FromString(sabir.dumps(sabir.parse(text)))
    assert wire_of(through(message, form)) == wire_of(message)
    model = sabir.loads(message.SerializeToString())
    assert any(f.rule in {"GRAPH004", "GRAPH007", "GRAPH008"} for f in findings(model))


def test_the_output_keeps_its_name_and_its_value():
    model = sabir.parse(TWICE)
    again = sabir.loads(sabir.dumps(model))
    assert names(again) == [(["x"], ["y"]), (["y"], ["z"]), (["z"], ["y"])]
    for one in (model, again):
        next(iter(one.graph)).output.name = "first"  # the two may not run under one name
        np.testing.assert_array_equal(Runner(one).run({"x": np.float32([2, -3])})["y"], [2, 0])


def test_inputs_initializers_and_outputs_of_one_node_may_clash_too():
    message = ModelProto(ir_version=8)
    message.opset_import.add(version=17)
    graph = message.graph
    graph.name = "g"
    for name in ("x", "x"):
        graph.input.add(name=name)
    for name in ("w", "w", "x"):
        graph.initializer.add(name=name, data_type=TensorProto.FLOAT, raw_data=b"\0\0\x80\x3f")
    graph.node.add(op_type="Split", input=["x"], output=["a", "a"])
    graph.node.add(op_type="Add", input=["a", "w"], output=["y"])
    graph.output.add(name="y")
    graph.output.add(name="y")
    for form in FORMATS:
        assert wire_of(through(message, form)) == wire_of(message)


# edits


def test_values_that_clash_since_an_edit_get_names_of_their_own():
    model = sabir.parse(HEAD + "g (float[N] x) => (float[N] y) { t = Relu(x)  u = Neg(t)  y = Abs(u) }")
    nodes = list(model.graph)
    nodes[1].output.name = "t"
    assert names(model) == [(["x"], ["t"]), (["t"], ["t_1"]), (["t_1"], ["y"])]


def test_an_output_keeps_its_name_before_what_is_computed_first():
    model = sabir.parse(HEAD + "g (float[N] x) => (float[N] y) { t = Relu(x)  y = Neg(t) }")
    next(iter(model.graph)).output.name = "y"
    assert names(model) == [(["x"], ["y_1"]), (["y_1"], ["y"])]


def test_a_third_value_of_a_clashing_name_is_renamed():
    model = sabir.parse(TWICE)
    last = list(model.graph)[-1]
    model.graph.append(Node("Exp", [last.output], [Value("y")]))
    assert names(model)[-1] == (["y"], ["y_1"])
    assert structure(sabir.loads(sabir.dumps(model))) == structure(model)


def test_a_reader_that_would_find_the_other_value_renames_it():
    model = sabir.parse(TWICE)
    first, _, last = model.graph
    model.graph.append(Node("Exp", [first.output], [Value("e")]))  # reads the first y, after the second
    assert names(model) == [(["x"], ["y_1"]), (["y_1"], ["z"]), (["z"], ["y"]), (["y_1"], ["e"])]
    assert last.output.name == "y"
    assert structure(sabir.loads(sabir.dumps(model))) == structure(model)


def test_a_clash_that_a_rename_ended_is_over():
    model = sabir.parse(TWICE)
    first = next(iter(model.graph))
    first.output.name = "x"
    assert names(model)[0] == (["x"], ["x_1"])


def test_types_that_were_inferred_stay_with_their_values():
    model = sabir.parse(
        HEAD + "g (float[N] x) => (int64[1] y) { t = Relu(x)  u = Neg(t)  t = Shape(u)  y = Neg(t) }"
    )
    again = sabir.loads(sabir.dumps(sabir.infer(model)))
    assert [str(n.output.type) for n in again.graph] == ["float[N]", "float[N]", "int64[1]", "int64[1]"]


def test_a_copy_keeps_them_as_well():
    model = sabir.parse(SHADOW)
    written = names(model)
    model.graph = clone_graph(model.graph)
    assert names(model) == written


def test_training_finds_its_state_by_name():
    model = sabir.parse(
        HEAD + "g (float[N] x) => (float[N] y) <float[1] w = {1}, float[1] w = {2}> { y = Add(x, w) }\n"
        '@training {algorithm: a () => (float[1] n) { n = Neg(w) }, update_binding: ["w": "n"]}'
    )
    assert [v.name for v in sabir.loads(sabir.dumps(model)).graph.initializers] == ["w", "w"]
    first = next(iter(model.graph.initializers))
    (key, value), *_ = model.training[0].update_binding
    assert key is not first
    model.training[0].update_binding = [(first, value)]
    again = sabir.loads(sabir.dumps(model))
    assert again.training[0].update_binding[0][0] is next(iter(again.graph.initializers))


# models drawn at random, with three names for everything


@st.composite
def graphs(draw, depth=0):
    graph = ModelProto().graph
    graph.name = "g"
    name = st.sampled_from("abc")
    for listed in draw(st.lists(name, max_size=2)):
        graph.input.add(name=listed)
    for listed in draw(st.lists(name, max_size=2)):
        graph.initializer.add(name=listed, data_type=TensorProto.FLOAT, raw_data=b"\0\0\x80\x3f")
    for _ in range(draw(st.integers(0, 4))):
        node = graph.node.add(op_type="Op")
        node.input.extend(draw(st.lists(name, max_size=2)))
        if depth < 2 and draw(st.booleans()):
            attribute = node.attribute.add(name="body", type="GRAPH")
            attribute.g.CopyFrom(draw(graphs(depth + 1)))
        node.output.extend(draw(st.lists(name, min_size=1, max_size=2)))
    for listed in draw(st.lists(name, max_size=2)):
        graph.output.add(name=listed)
    return graph


@st.composite
def messages(draw):
    message = ModelProto(ir_version=8)
    message.opset_import.add(version=17)
    message.graph.CopyFrom(draw(graphs()))
    return message


MANY = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(messages(), st.sampled_from(FORMATS))
def test_any_clashes_are_the_same_after_a_round_trip(message, form):
    assert wire_of(through(message, form)) == wire_of(message)


@MANY
@given(messages(), st.data())
def test_an_edited_model_binds_every_reader_to_its_value(message, data):
    model = sabir.loads(message.SerializeToString())
    graphs = list(model.graph.scopes())
    defined = [v for g in graphs for v in g.defined()]
    for _ in range(data.draw(st.integers(1, 3))):
        graph = data.draw(st.sampled_from(graphs))
        nodes = list(graph)
        if not nodes:
            continue
        node = data.draw(st.sampled_from(nodes))
        visible = [v for v in graph.defined() if v.node is None or nodes.index(v.node) < nodes.index(node)]
        match data.draw(st.sampled_from(["read", "name", "insert"])):
            case "read" if visible and node.inputs:
                node.inputs[0] = data.draw(st.sampled_from(visible))
            case "name":
                data.draw(st.sampled_from(defined)).name = data.draw(st.sampled_from("abc"))
            case "insert":
                graph.insert(
                    Node("New", visible[-1:], [Value(data.draw(st.sampled_from("abc")))]), after=node
                )
            case _:
                pass
    again = sabir.loads(sabir.dumps(model))
    assert structure(again) == structure(model)
