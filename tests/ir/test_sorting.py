"""Topological order: found without an edit, and put in place."""

import random
import time

import numpy as np
import pytest

import sabir
from sabir.evaluation import Runner
from sabir.inference import Inference
from sabir.ir import Graph, Node, verify

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
UNSORTED = HEAD + (
    "g (float[N] x) => (float[N] y) { y = Add(t, u)  ['a'] z = Abs(x)  u = Neg(t)  t = Relu(x)  w = Exp(x) }"
).replace("'", '"')


def ops(nodes):
    return [n.op for n in nodes]


def chain(length):
    graph = Graph("g")
    value = graph.add_input("x")
    for index in range(length):
        value = graph.append(Node("Relu" if index % 2 else "Neg", [value])).output
    graph.outputs.append(value)
    return graph


def test_nodes_come_after_what_they_read_and_else_in_their_own_order():
    model = sabir.parse(UNSORTED)
    before = list(model.graph)
    assert ops(model.graph.sorted_nodes()) == ["Abs", "Relu", "Neg", "Add", "Exp"]
    assert list(model.graph) == before
    assert model.graph.sort() is True
    assert ops(model.graph) == ["Abs", "Relu", "Neg", "Add", "Exp"]
    assert ops(reversed(model.graph)) == ["Exp", "Add", "Neg", "Relu", "Abs"]
    verify(model)
    assert model.graph.sort() is False
    model.graph.append(Node("Sqrt", [model.graph.inputs[0]]))
    assert len(model.graph) == 6
    np.testing.assert_array_equal(Runner(model).run({"x": np.float32([2, -1])})["y"], [0, 0])


def test_what_a_subgraph_captures_is_read_by_its_node():
    model = sabir.parse(
        HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (float[N] v)"
        " { v = Neg(w)  w = Abs(t) }, else_branch = b () => (float[N] u) { u = If (c) <then_branch = d ()"
        " => (float[N] p) { p = Exp(s) }, else_branch = e () => (float[N] q) { q = Exp(t) }> }>"
        "  t = Relu(x)  s = Neg(x) }"
    )
    assert ops(model.graph.sorted_nodes()) == ["Relu", "Neg", "If"]
    assert model.graph.sort()
    verify(model)
    assert [ops(g) for g in model.graph.scopes()] == [
        ["Relu", "Neg", "If"],
        ["If"],
        ["Exp"],
        ["Exp"],
        ["Abs", "Neg"],
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('y = Add(x, t)  ["back"] t = Relu(y)', "Relu 'back', Add computing 'y' read each other in a cycle"),
        ("y = Add(x, y)", "Add computing 'y' reads its own output"),
        (
            "z = Neg(u)  y = Add(x, t)  t = Relu(u)  u = Exp(t)",
            "Relu computing 't', Exp computing 'u' read each other|Exp computing 'u', Relu computing 't' read each other",
        ),
    ],
)
def test_a_cycle_has_no_order(body, told):
    model = sabir.parse(HEAD + f"g (float[N] x) => (float[N] y) {{ {body} }}")
    before = list(model.graph)
    for call in (model.graph.sort, model.graph.sorted_nodes):
        with pytest.raises(sabir.SchemaError, match=told):
            call()
    assert list(model.graph) == before


def test_a_long_cycle_is_cut():
    graph = chain(1000)
    first = next(iter(graph))
    first.inputs[0] = graph.outputs[0]
    with pytest.raises(sabir.SchemaError, match="995 more"):
        graph.sort()


def test_nothing_moves_where_an_inner_graph_has_a_cycle():
    model = sabir.parse(
        HEAD + "g (bool c, float[N] x) => (float[N] y) { y = If (c) <then_branch = a () => (float[N] v)"
        " { v = Neg(w)  w = Abs(v) }, else_branch = b () => (float[N] u) { u = Abs(t) }>  t = Relu(x) }"
    )
    before = list(model.graph)
    with pytest.raises(sabir.SchemaError, match="cycle"):
        model.graph.sort()
    assert list(model.graph) == before


def test_any_order_is_sorted_in_no_time():
    graph = chain(20_000)
    nodes = list(graph)
    random.Random(0).shuffle(nodes)  # ruff: ignore[suspicious-non-cryptographic-random-usage]  a test draws
    for node in nodes:
        graph.detach(node)
    for node in nodes:
        graph.append(node)
    start = time.process_time()
    assert graph.sort()
    verify(graph)
    assert time.process_time() - start < 5  # what takes a moment here would take a quadratic one minutes


def test_unsorted_models_are_inferred_in_full():
    model = sabir.parse(
        HEAD + "g (int64 n, bool c, float[2,3] x) => (float[M] y) { y = Concat<axis = 0>(t, t)"
        "  t = Reshape(u, s)  s = Constant<value_ints = [-1]>()  u = Loop(n, c, x) <body = b (int64 i, bool k,"
        " float[2,3] a) => (bool k2, float[2,3] v) { v = Neg(w)  w = Relu(a)  k2 = Identity(k) }> }"
    )
    inference = Inference(model)
    inference.run()
    assert inference.diagnostics == []
    assert str(inference.types[model.graph.outputs[0]]) == "float[12]"
    loop = list(model.graph)[-1]
    assert [str(inference.types[n.output]) for n in loop.graphs[0]] == ["float[2,3]", "float[2,3]", "bool"]


def test_findings_name_the_places_in_the_file():
    model = sabir.parse(HEAD + "g (float[2] x) => (float[2] y) { y = Add(t, x)  t = Concat<axis = 0>(x, x) }")
    inference = Inference(model)
    inference.run()
    assert [str(f.location) for f in inference.diagnostics] == ["graph/node[0] 'Add'"]


def test_inference_of_a_cycle_goes_on_and_reports_it():
    model = sabir.parse(HEAD + "g (float[2] x) => (float[2] y) { y = Add(t, x)  t = Relu(y)  z = Neg(x) }")
    inference = Inference(model)
    inference.run()
    assert "cycle" in inference.diagnostics[0].message
    assert str(inference.types[list(model.graph)[-1].output]) == "float[2]"
    with pytest.raises(sabir.InferenceError, match="cycle"):
        sabir.infer(model, strict=True)
