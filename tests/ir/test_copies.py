# ruff: file-ignore[suspicious-pickle-import, suspicious-pickle-usage]  what is read was written here
"""Clones, copies and pickles of models have everything, and share no graph, node or value."""

import copy
import pickle

import numpy as np
import pytest

import sabir
from sabir.ir import (
    Annotation,
    ArrayTensor,
    Attribute,
    Builder,
    DeviceConfiguration,
    ExternalTensor,
    Function,
    Graph,
    Model,
    Node,
    NodeDevice,
    Residue,
    Sharding,
    TrainingInfo,
    Value,
    tensor_type,
    verify,
    walk,
)

RESIDUE = Residue(b"", ("name",))


def described(value, mark):
    value.doc, value.metadata, value.residue, value.value_info_index = mark, {"k": mark}, RESIDUE, 3
    value.type = tensor_type("float", ["N"])
    return value


def full_graph(name):
    """Return a graph with something in every slot."""
    graph = Graph(name)
    x = described(graph.add_input("x"), "input")
    w = described(graph.add_initializer("w", [1.0]), "constant")
    body = Graph("body")
    body.outputs.append(body.append(Node("Neg", [x])).output)
    missing = Value("missing")
    node = Node("Op", [x, w, None, missing], 2, {"body": body, "axis": 1}, domain="d", name="n", overload="o")
    graph.append(node)
    described(node.outputs[0], "result")
    node.doc, node.metadata, node.residue = "doc", {"k": "v"}, RESIDUE
    node.devices = (NodeDevice("c", (Sharding(x, "x", (0, 1)), Sharding(None, "q")), 2),)
    graph.outputs.extend([node.outputs[0], x])
    graph.doc, graph.metadata, graph.residue = "doc", {"k": "v"}, RESIDUE
    graph.annotations = (Annotation(w, (("SCALE_TENSOR", x),), RESIDUE),)
    graph.orphan_value_info = (described(Value("orphan"), "orphan"),)
    graph.output_infos = {1: (x, described(Value("x"), "output"))}
    graph.clashes = {w: "w"}
    return graph


@pytest.fixture
def full():
    main = full_graph("main")
    algorithm = Graph("algorithm")
    algorithm.outputs.append(algorithm.append(Node("Neg", [main.inputs[0]])).output)
    training = TrainingInfo(
        full_graph("init"), algorithm, [(main.inputs[0], Value("gone"))],
        [(main.inputs[0], algorithm.outputs[0])], RESIDUE,
    )  # fmt: skip
    default = Attribute.of("a", full_graph("default"))
    function = Function("f", "d", "o", full_graph("body"), {"a": default, "b": None}, {"": 18}, RESIDUE)
    return Model(
        main, {"": 18}, 10, [function], "p", "v", "dom", 3, "doc", {"k": "v"}, [training],
        [DeviceConfiguration("c", 2)], RESIDUE, None,
    )  # fmt: skip


def shape_of(one, seen):
    """Return all that the slots of an object say, links as the numbers of the objects they lead to."""
    if isinstance(one, (Graph, Node, Value, Function, TrainingInfo, Model)):
        if id(one) in seen:
            return type(one).__name__, seen[id(one)]
        seen[id(one)] = len(seen)
        slots = [s for c in type(one).__mro__ for s in getattr(c, "__slots__", ())]
        skipped = {"_previous", "_next", "_first", "_last", "_uses"}
        content = {s: shape_of(getattr(one, s), seen) for s in slots if s not in skipped}
        if isinstance(one, Value):
            content["uses"] = sorted((type(user).__name__, slot) for user, slot in one.uses)
        if isinstance(one, Graph):
            content["nodes"] = [shape_of(node, seen) for node in one]
        return type(one).__name__, content
    if isinstance(one, Attribute):
        return one.name, one.type, shape_of(one.value, seen), one.doc, one.ref
    if isinstance(one, dict):
        return [(shape_of(k, seen), shape_of(v, seen)) for k, v in one.items()]
    if isinstance(one, (list, tuple)):
        return [shape_of(item, seen) for item in one]
    if type(one).__name__ in {"Reads", "GraphInputs"}:
        return [shape_of(item, seen) for item in one]
    if type(one).__name__ in {"Initializers", "Attributes"}:
        return [(shape_of(k, seen), shape_of(v, seen)) for k, v in one.items()]
    return one


def parts(model):
    found = [one for _, one in walk(model, Graph, Node, Value)]
    return found + [v for one in found if isinstance(one, Node) for v in one.inputs if v is not None]


WAYS = {
    "clone": lambda m: m.clone(),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "pickle 2": lambda m: pickle.loads(pickle.dumps(m, 2)),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_copy_has_everything_and_shares_nothing(full, way):
    before = shape_of(full, {})
    made = WAYS[way](full)
    assert shape_of(made, {}) == before
    assert shape_of(full, {}) == before
    assert not {*map(id, parts(made))} & {*map(id, parts(full))}


def test_parts_can_be_copied(full):
    graph = full.graph
    node = copy.copy(next(iter(graph)))
    assert node.graph is None
    assert list(node.inputs) == list(next(iter(graph)).inputs)
    assert node.graphs[0].parent is node
    assert copy.copy(graph.inputs[0]).name == "x"
    assert len(copy.copy(graph)) == len(graph)
    assert copy.copy(full.functions[0]).graph is not full.functions[0].graph
    assert copy.copy(full.training[0]).algorithm is not full.training[0].algorithm
    again = pickle.loads(pickle.dumps((graph.inputs[0], full)))
    assert again[0] is again[1].graph.inputs[0]
    assert [v.name for v in copy.deepcopy(graph.inputs)] == ["x"]


def chain(length):
    b = Builder(18)
    value = b.input("x", "float", ["N"])
    for _ in range(length):
        value = b.Relu(value)
    b.output(value, "y", "float", ["N"])
    return b.model()


def nested(depth):
    graph = Graph(f"level{depth}")
    inputs = [graph.add_input(f"c{depth}", tensor_type("bool", []))]
    if depth:
        branches = {"then_branch": nested(depth - 1), "else_branch": nested(0)}
        graph.outputs.append(graph.append(Node("If", inputs, 1, branches)).output)
    return graph


@pytest.mark.parametrize("way", WAYS)
def test_no_length_is_too_much(way):
    model = chain(5_000)
    made = WAYS[way](model)
    assert sabir.dumps(made) == sabir.dumps(model)
    verify(made)


@pytest.mark.parametrize("way", WAYS)
def test_nested_graphs_are_copied(way):
    model = Model(nested(20), {"": 18})
    made = WAYS[way](model)
    assert sabir.dumps(made) == sabir.dumps(model)
    verify(made)


def test_external_and_mapped_data_travels_in_a_pickle(tmp_path):
    b = Builder(18)
    b.output(b.Add(b.initializer("w", np.arange(1_200_000.0)), b.initializer("s", [1.0])), "y")
    sabir.save(b.model(), tmp_path / "mapped.onnx")
    sabir.save(b.model(), tmp_path / "external.onnx", external="weights.bin")
    for name in ("mapped", "external"):
        model = sabir.load(tmp_path / f"{name}.onnx")
        tensor = model.graph.initializers["w"]
        assert isinstance(tensor, ExternalTensor) == (name == "external")
        pickled = pickle.dumps(model, 5)
        buffers = []
        outside = pickle.dumps(model, 5, buffer_callback=buffers.append)
        assert len(outside) < 100_000
        for made in (pickle.loads(pickled), pickle.loads(outside, buffers=buffers)):
            assert made.graph.initializers["w"] == tensor
            assert not isinstance(made.graph.initializers["w"], ExternalTensor)
            assert sabir.loads(sabir.dumps(made)).graph.initializers["w"] == tensor
        assert copy.deepcopy(model).graph.initializers["w"] is tensor


def test_a_type_of_an_unknown_element_is_pickled():
    kind = sabir.ir.TensorType(sabir.ir.unknown_element(99), (2,))
    again = pickle.loads(pickle.dumps(kind))
    assert (again, again.element.name) == (kind, "element99")
    assert pickle.loads(pickle.dumps(ArrayTensor(np.ones(2)))).element is ArrayTensor(np.ones(2)).element
