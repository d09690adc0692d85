"""Every object that a walk yields is found again by its location, and so is what findings are about."""

import numpy as np
import pytest
from onnx.backend.test.loader import load_model_tests  # ruff: ignore[banned-api]  the official models

import sabir
from sabir.base import Location, NotFoundError
from sabir.checking import RULES
from sabir.checking._examples import build
from sabir.checking._rule import SetTexts, Wire
from sabir.ir import ArrayTensor, Attribute, Builder, Function, Graph, Model, Node, Tensor, resolve, walk


@pytest.mark.filterwarnings("ignore")  # the cases are computed while they are loaded
def test_every_object_of_the_official_models_is_found():
    count = 0
    for case in load_model_tests(kind="node"):
        model = sabir.loads(case.model.SerializeToString())
        for location, one in walk(model):
            assert resolve(model, location) is one
            count += 1
    assert count > 10_000


def test_a_walk_may_yield_some_classes():
    b = Builder(18)
    b.output(b.Add(b.initializer("w", [1.0]), b.Constant(value=np.ones(1))), "y")
    model = b.model()
    assert [(str(where), type(one)) for where, one in walk(model, Tensor)] == [
        ("graph/initializer 'w'/tensor", ArrayTensor),
        ("graph/node[0] 'Constant'/attribute 'value'/tensor", ArrayTensor),
    ]
    assert [one.op for _, one in walk(model, Node)] == ["Constant", "Add"]
    assert [str(where) for where, _ in walk(model, Model, Graph)] == ["model", "graph"]


def at(*steps):
    location = Location()
    for kind, index, name in steps:
        location = location.at(kind, index=index, name=name)
    return location


def model_with_function():
    body = Graph("f")
    x = body.add_input("x")
    body.outputs.append(body.append(Node("Relu", [x], name="r")).output)
    b = Builder(18)
    b.output(b.op("f", b.input("x", "float", ["N"]), domain="d"), "y", "float", ["N"])
    model = b.model()
    model.opsets["d"] = 1
    model.functions.append(Function("f", "d", graph=body, attributes={"a": None}, opsets={"": 18}))
    model.metadata = {"k": "v"}
    return model


GRAPH = ("graph", None, "")


def test_other_locations():
    model = model_with_function()
    relu = model.functions[0].graph[0]
    assert resolve(model, Location()) is model
    assert resolve(model, at(GRAPH, ("node", 0, "f"), ("function", None, "f"), ("node", 0, "r"))) is relu
    assert resolve(model, at(("function", 0, "f"), ("node", None, "r"))) is relu
    assert resolve(model, at(GRAPH, ("output", 0, "y"))) is model.graph.outputs[0]
    assert resolve(model, at(GRAPH, ("node", 0, ""), ("input", 0, "x"))) is model.graph.inputs[0]
    assert resolve(model, at(("opset_import", None, "ai.onnx"))) == 18
    assert resolve(model, at(("metadata", None, "k"))) == "v"


@pytest.mark.parametrize(
    ("location", "message"),
    [
        (at(GRAPH, ("node", 3, "")), r"graph/node\[3\]: in graph, there is no node\[3\]"),
        (
            at(GRAPH, ("node", 0, "old")),
            r"there is no node\[0\] 'old', but node\[0\] 'f': the model was edited",
        ),
        (at(("nonsense", None, "")), "has no 'nonsense'"),
        (at(GRAPH, ("initializer", None, "w")), "there is no initializer 'w'"),
        (at(("function", 0, "f"), ("attribute", None, "a")), "there is no attribute 'a'"),
        (at(("opset_import", None, "other")), "there is no opset_import 'other'"),
    ],
)
def test_locations_of_nothing(location, message):
    with pytest.raises(NotFoundError, match=message):
        resolve(model_with_function(), location)


def test_equal_names_need_an_index():
    graph = Graph("g")
    for _ in range(2):
        graph.add_initializer("w", [1.0])
    model = Model(graph)
    with pytest.raises(NotFoundError, match="initializer 'w' fits 2 objects"):
        resolve(model, at(GRAPH, ("initializer", None, "w")))
    found = [str(where) for where, one in walk(model, sabir.ir.Value)]
    assert found == ["graph/initializer[0] 'w'", "graph/initializer[1] 'w'"]
    assert all(resolve(model, where) is one for where, one in walk(model))


def test_a_list_of_graphs_is_numbered():
    graph = Graph("g")
    node = graph.append(
        Node("Op", [], 1, {"bodies": Attribute("bodies", "graphs", (Graph("a"), Graph("b")))})
    )
    model = Model(graph)
    found = {str(where): one for where, one in walk(model, Graph)}
    assert found["graph/node[0] 'Op'/attribute 'bodies'/graph[1]"] is node.graphs[1]
    assert all(resolve(model, where) is one for where, one in walk(model))


# of these rules some locations name what is not there, or not unique
ABSENT = {
    "FUNC004",  # an output of a function that is listed twice
    "FUNC009",  # an output of a function without a name
    "FUNC011",  # a parameter of a function without a default
}


def test_what_findings_are_about_is_found():
    resolved, absent = 0, set()
    for rule in RULES:
        for example in rule.bad:
            if isinstance(example, SetTexts):
                continue  # operator sets, whose locations tests/checking/test_rules.py resolves
            source = bytes(example) if isinstance(example, Wire) else build(example)
            try:
                model = source if isinstance(source, Model) else sabir.loads(source)
            except sabir.SabirError:
                continue  # what is not a model has no objects
            for finding in sabir.findings(model, select=[*(r.id for r in RULES if not r.group), rule.id]):
                try:
                    assert resolve(model, finding.location) is not None
                    resolved += 1
                except NotFoundError:
                    absent.add(finding.rule)
    assert absent == ABSENT
    assert resolved > 240
