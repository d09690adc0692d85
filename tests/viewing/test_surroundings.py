"""A node with those near it."""

import numpy as np
import pytest

import sabir
from sabir.viewing._surroundings import surroundings


def chain(count):
    nodes = " ".join(f"v{n + 1} = Neg (v{n})" for n in range(count))
    return sabir.parse(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[N] v0) => (float[N] v{count}) {{ {nodes} }}'
    )


def names(graph):
    return [node.outputs[0].name for node in graph]


@pytest.mark.parametrize(("steps", "expected"), [(0, [5]), (1, [4, 5, 6]), (2, [3, 4, 5, 6, 7])])
def test_steps(steps, expected):
    graph = surroundings(chain(9), "v5", steps)
    assert names(graph) == [f"v{n}" for n in expected]
    assert [v.name for v in graph.inputs] == [f"v{expected[0] - 1}"]
    assert [v.name for v in graph.outputs] == [f"v{expected[-1]}"]


def test_the_model_stays():
    model = chain(3)
    before = sabir.text(model)
    surroundings(model, "v2", 1)
    assert sabir.text(model) == before


def test_the_name_of_a_node_comes_first():
    model = chain(3)
    model.graph[2].name = "v1"
    assert names(surroundings(model, "v1", 0)) == ["v3"]


def test_at_most_some_nodes():
    assert len(surroundings(chain(500), "v250", 300)) == 120


def test_weights_are_initializers():
    b = sabir.Builder(21)
    x = b.input("x", "float", [2])
    b.output(b.Add(x, b.initializer("w", np.ones(2, np.float32)), name="add"), "y")
    graph = surroundings(b.model(), "add", 1)
    assert [v.name for v in graph.initializers] == ["w"]
    assert [v.name for v in graph.inputs] == ["x"]


def test_subgraphs_and_what_they_read():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, bool c) => (float[2] y) {
        h = Neg (x)
        y = If (c) < then_branch = t () => (float[2] a) { a = Abs (h) }, else_branch = e () => (float[2] b) { b = Exp (x) } >
    }""")
    graph = surroundings(model, "y", 0)
    assert sorted(v.name for v in graph.inputs) == ["c", "h", "x"]
    assert names(surroundings(model, "a", 3)) == ["a"]  # the nodes of its own graph
    assert names(surroundings(model, "y", 1)) == ["h", "y"]


def test_no_such_node():
    with pytest.raises(
        sabir.base.NotFoundError, match="the model has no node 'v55', nor one .*; is it 'v5'?"
    ):
        surroundings(chain(9), "v55", 1)
    with pytest.raises(sabir.base.NotFoundError, match="the model has no node ''"):
        surroundings(chain(2), "", 1)
