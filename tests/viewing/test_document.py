"""The data of a page."""

import json

import numpy as np
import pytest

import sabir
from sabir.viewing import Layer, _document, _writer, page_of

HEAD = '<ir_version: 10, opset_import: ["" : 21]> g (float[N,4] x) => (float[N,2] y)'


@pytest.fixture(scope="module")
def dense():
    model = sabir.parse(
        f"{HEAD} <float[4,2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> "
        '{ ["/head/product"] a = MatMul (x, w)  ["/head/act"] y = LeakyRelu <alpha = 0.5> (a) }'
    )
    return page_of(model, name="dense").data


def test_nodes(dense):
    product, act = dense["nodes"]
    assert (product["name"], act["name"]) == ("/head/product", "/head/act")
    assert [dense["operators"][n["op"]]["name"] for n in dense["nodes"]] == ["MatMul", "LeakyRelu"]
    assert act["attrs"] == [["alpha", "0.5"]]
    assert act["in"] == product["out"]


def test_types_are_inferred(dense):
    types = {name: dense["types"][kind] for name, kind in dense["values"]}
    assert types == {"x": "float[N,4]", "w": "float[4,2]", "a": "float[N,2]", "y": "float[N,2]"}


def test_costs(dense):
    product, act = dense["nodes"]
    assert (product["params"], product["madds"], product["maddsText"]) == (8, 8, "8*N")
    assert "madds" not in act


def test_costs_with_sizes():
    model = sabir.parse(f"{HEAD} <float[4,2] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{ y = MatMul (x, w) }}")
    page = page_of(model, {"N": 10})
    assert page.data["nodes"][0]["madds"] == 80
    assert page.numbers == {model.graph[0]: 0}


def test_operators_are_documented(dense):
    leaky = dense["operators"][1]
    assert (leaky["domain"], leaky["version"]) == ("ai.onnx", 16)
    assert leaky["signature"] == "Y = LeakyRelu(X, *, alpha=0.009999999776482582)"
    assert [name for name, _ in leaky["attributes"]] == ["alpha"]
    assert leaky["summary"]


def test_weights(dense):
    ((number, weight),) = dense["weights"].items()
    assert dense["values"][int(number)][0] == "w"
    assert weight["values"] == "1, 2, 3, 4, 5, 6, 7, 8"


def test_findings_are_at_their_nodes():
    model = sabir.parse(f"{HEAD} {{ a = Relu (x)  y = Reluu (a) }}")
    (finding,) = page_of(model).data["findings"]
    assert (finding["rule"], finding["node"], finding["severity"]) == ("NODE001", 1, "error")


def test_functions_and_subgraphs():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
    g (float[4,4] x, bool c) => (float[4,4] y) {
        y = If (c) <
            then_branch = t () => (float[4,4] a) { a = local.Square (x) },
            else_branch = e () => (float[4,4] b) { b = Neg (x) }
        >
    }
    <domain: "local", opset_import: ["" : 21]>
    Square (p) => (q) { q = MatMul (p, p) }""")
    data = page_of(model).data
    graphs = {graph["label"]: graph for graph in data["graphs"]}
    assert {label: graph["kind"] for label, graph in graphs.items()} == {
        "local.Square": "function",
        "g": "main",
        "then_branch": "subgraph",
        "else_branch": "subgraph",
    }
    (choice,) = [node for node in data["nodes"] if "graphs" in node]
    assert [data["graphs"][number]["label"] for number in choice["graphs"]] == ["then_branch", "else_branch"]
    assert [data["values"][number][0] for number in choice["captures"]] == ["x"]
    (call,) = [node for node in data["nodes"] if "function" in node]
    assert data["graphs"][call["function"]]["label"] == "local.Square"
    assert call["madds"] == 64


def test_functions_that_call_each_other_have_no_costs():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "l" : 1]>
    g (float[2] x) => (float[2] y) { y = l.A (x) }
    <domain: "l", opset_import: ["" : 21, "l" : 1]> A (p) => (q) { q = l.B (p) }
    <domain: "l", opset_import: ["" : 21, "l" : 1]> B (p) => (q) { q = l.A (p) }""")
    data = page_of(model).data
    assert not [node for node in data["nodes"] if "madds" in node]
    assert data["findings"]


def test_nodes_in_a_cycle_are_shown():
    model = sabir.parse(f"{HEAD} {{ a = Relu (x)  y = Add (a, a) }}")
    first, second = model.graph
    first.inputs[0] = second.output
    data = page_of(model).data
    assert len(data["nodes"]) == 2
    assert [finding["rule"] for finding in data["findings"]] == ["GRAPH006"]


def test_long_texts_are_cut():
    model = sabir.parse(f"{HEAD} {{ y = Relu (x) }}")
    node = model.graph[0]
    node.name = node.doc = "n" * 10_000
    node.metadata = {"k" * 10_000: "v" * 10_000}
    node.outputs[0].name = "o" * 10_000
    node.set(tags=["t" * 10_000] * 10_000)
    model.doc = "d" * 100_000
    assert len(json.dumps(page_of(model).data)) < 20_000


def test_metadata_has_a_limit():
    model = sabir.parse(f"{HEAD} {{ a = Relu (x)  y = Relu (a) }}")
    for node in model.graph:
        node.metadata = {"key": "text"}
    first, second = model.graph
    assert all("meta" in node for node in page_of(model).data["nodes"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_writer, "_METADATA", 5)
        nodes = page_of(model).data["nodes"]
    assert ["meta" in node for node in nodes] == [True, False]
    assert first.metadata == second.metadata


def test_too_many_nodes(monkeypatch):
    monkeypatch.setattr(_document, "MOST_NODES", 1)
    model = sabir.parse(f"{HEAD} {{ a = Relu (x)  y = Relu (a) }}")
    message = "a page shows at most 1 node, and the model has 2; `sabir.extract` returns a part of a model"
    with pytest.raises(sabir.UnsupportedError, match=message):
        page_of(model)


def test_a_weight_that_cannot_be_read(tmp_path):
    b = sabir.Builder(21)
    b.output(b.Add(b.input("x", "float", [300]), b.initializer("w", np.zeros(300, np.float32))), "y")
    path = tmp_path / "model.onnx"
    sabir.save(b.model(), path, external="weights.data")
    (tmp_path / "weights.data").unlink()
    (weight,) = page_of(sabir.load(path)).data["weights"].values()
    assert "weights.data" in weight["problem"]


def test_another_model_beside_it():
    one, other = (sabir.parse(f"{HEAD} {{ y = {op} (x) }}") for op in ("Relu", "Neg"))
    page = page_of(one, beside=other)
    kinds = [graph["kind"] for graph in page.data["graphs"]]
    assert sorted(kinds) == ["beside", "main"]
    assert page.data["graphs"][page.data["main"]]["kind"] == "main"
    assert {page.numbers[one.graph[0]], page.numbers[other.graph[0]]} == {0, 1}


def test_layers_have_no_numbers_that_json_lacks():
    page = page_of(sabir.parse(f"{HEAD} {{ y = Relu (x) }}"))
    page.add_layer(Layer("error", "Error", values={0: float("nan")}))
    assert page.data["layers"][0]["values"] == {}
    json.dumps(page.data, allow_nan=False)


def test_the_page_does_not_grow_with_the_weights():
    b = sabir.Builder(21)
    x = b.input("x", "float", [1, 1000])
    b.output(b.MatMul(x, b.initializer("w", np.ones((1000, 1000), np.float32))), "y")
    assert len(json.dumps(page_of(b.model()).data)) < 10_000
