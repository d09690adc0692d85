"""What notebooks show: bounded, escaped, without reading tensors."""

import re
import time

import numpy as np
import pytest

import sabir
from sabir.base import Displayed, Finding, Location, displayed
from sabir.drawing import bundle
from sabir.ir import ExternalTensor, Function, Graph, Model, Node, Value
from sabir.serial import from_proto
from support.markup import cells, html_of

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
TEXT = f"{HEADER}g (float[N,2] x) => (float[N,2] y) <float[2] w = {{1, 2}}> {{ [a] h = Add (x, w)  y = Relu (h) }}"
HOSTILE = '<img src=x onerror="alert(1)">'


@pytest.fixture
def model():
    return sabir.parse(TEXT)


def test_a_model(model):
    shown = model._repr_mimebundle_(include=None, exclude=None)
    assert list(shown) == ["text/html", "image/svg+xml"]
    assert shown["image/svg+xml"] in shown["text/html"]
    assert shown["text/html"] == model._repr_html_()
    assert cells(shown["text/html"]) == [
        ["format", "IR 10, opsets ai.onnx 21"], ["contents", "2 nodes"], ["parameters", "2 in 1 initializer"],
        ["input", "type"], ["x", "float[N,2]"], ["output", "type"], ["y", "float[N,2]"],
    ]  # fmt: skip


def test_a_graph_and_a_function(model):
    assert "Graph g: 2 nodes" in model.graph._repr_html_()
    function = sabir.syntax.parse_function("""<domain: "d", opset_import: ["" : 21]>
        f <top, low: int = 1> (x) => (y) { y = Relu (x) }""")
    assert ["top", "required"] in cells(function._repr_html_())
    assert ["low", "1"] in cells(function._repr_html_())


def test_a_node(model):
    assert cells(model.graph[0]._repr_html_()) == [
        ["input", "type", "from"], ["x", "float[N,2]", "input"], ["w", "float[2]", "initializer"],
        ["output", "type", "read by"], ["h", "?", "Relu"],
    ]  # fmt: skip
    assert cells(model.graph[1]._repr_html_())[1:4] == [
        ["h", "?", "Add a"],
        ["output", "type", "read by"],
        ["y", "float[N,2]", "output"],
    ]
    assert "image/svg+xml" not in model.graph[0]._repr_mimebundle_()
    odd = Node("Clip", [None, Value("z")], [None], {"axes": list(range(100)), "g": Graph()})
    assert cells(odd._repr_html_()) == [
        ["input", "type", "from"], ["", "left out", ""], ["z", "?", "nothing"],
        ["output", "type", "read by"], ["", "left out", ""], ["attribute", "type", "value"],
        ["axes", "ints", "[0, 1, 2, 3, 4, 5, 6, 7, ... 100 in all]"], ["g", "graph", "0 nodes"],
    ]  # fmt: skip


def test_many_operands_are_counted():
    node = Node("Sum", [Value(f"v{n}") for n in range(30)], 1)
    shown = html_of(node)
    assert len(cells(shown)) == 1 + 20 + 2
    assert "and 10 more" in shown


def test_a_value_with_many_readers(model):
    for _ in range(5):
        model.graph.append(Node("Abs", [model.graph[0].outputs[0]], 1))
    assert cells(model.graph[0]._repr_html_())[-1][-1] == "Relu, Abs, Abs, 3 more"


def test_findings(model):
    model.graph[0].op = HOSTILE
    found = sabir.findings(model)
    assert cells(found._repr_html_())[0] == ["severity", "rule", "location", "message", "what to do"]
    assert cells(found._repr_html_())[1][:2] == ["error", "NODE001"], "what was shown stays there"
    first = next(found)
    assert "<img" not in html_of(first)
    assert cells(first._repr_html_())[1][3] == first.message
    assert "no findings" in found._repr_html_()
    with pytest.raises(sabir.CheckError) as caught:
        sabir.check(model)
    assert cells(caught.value._repr_html_())[1][1] == "NODE001"


def test_findings_are_bounded():
    found = [Finding("X", "m" * 10_000, Location())] * 1000
    shown = sabir.checking.Findings(found)._repr_html_()
    assert len(shown) < 60_000
    assert "and 950 more" in shown


def test_large_models_are_a_table_of_operators_at_once():
    graph = Graph("large")
    value = graph.add_input("x")
    for number in range(20_000):
        value = graph.append(Node(f"Op{number % 30}", [value], 1)).outputs[0]
    graph.outputs = [value]
    started = time.process_time()
    shown = Model(graph)._repr_mimebundle_()
    assert time.process_time() - started < 1
    assert list(shown) == ["text/html"]
    assert ["Op0", "667"] in cells(shown["text/html"])
    assert "no picture: a picture has at most 60 boxes, and the graph has 20,002 nodes" in shown["text/html"]
    assert len(shown["text/html"]) < 10_000


def test_no_tensor_is_read(tmp_path):
    """The file with the data is missing, so reading any would fail."""
    b = sabir.Builder(21)
    x = b.input("x", "float", [4])
    h = b.Add(x, b.initializer("w", np.ones(4, np.float32)))
    b.output(b.Mul(h, b.op("Constant", value=np.ones(4, np.float32))), "y")
    sabir.save(b.model(), tmp_path / "m.onnx", external="w.bin", threshold=0)
    (tmp_path / "w.bin").unlink()
    model = sabir.load(tmp_path / "m.onnx")
    assert isinstance(next(iter(model.graph.initializers.values())), ExternalTensor)
    assert "image/svg+xml" in model._repr_mimebundle_()
    assert all(node._repr_html_() for node in model.graph)


def test_hostile_strings_are_escaped():
    graph = Graph(HOSTILE)
    graph.add_initializer(HOSTILE, np.zeros(2))
    x = graph.add_input(HOSTILE)
    node = graph.append(Node(HOSTILE, [x], 1, {HOSTILE: HOSTILE}, domain=HOSTILE, name=HOSTILE))
    graph.outputs = [node.outputs[0]]
    model = Model(graph, {HOSTILE: 1}, producer_name=HOSTILE, producer_version="\u202e\0", doc=HOSTILE * 1000)
    for item in (model, graph, node, Function(HOSTILE, HOSTILE, graph=graph)):
        shown = html_of(item)
        assert "<img" not in shown
        assert re.search(r"<(?!/?(?:div|style|b|table|tr|t[hd]|svg|title|rect|g|path|text)\b)", shown) is None
        assert cells(shown)
        assert len(shown) < 20_000


def test_sizes_that_no_memory_has():
    proto = sabir.to_proto(sabir.parse(TEXT))
    proto.graph.initializer[0].dims[:] = [1 << 62] * 200
    assert "more than 2^12400" in from_proto(proto)._repr_html_()


def test_a_graph_that_cannot_be_drawn_is_a_table():
    graph = Graph("circle")
    a, b = (graph.append(Node("Relu", [None], 1)) for _ in range(2))
    a.inputs[0], b.inputs[0] = b.outputs[0], a.outputs[0]
    assert "no picture: " in html_of(graph)
    assert ["Relu", "2"] in cells(graph._repr_html_())


def test_without_a_function_objects_have_their_repr_alone(monkeypatch, model):
    monkeypatch.setattr(Displayed, "bundle", None)
    assert displayed(model) == {}
    assert model._repr_html_() is None
    assert bundle(object()) == {}
