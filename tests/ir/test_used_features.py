"""The features of the format that a model uses, each with its place."""

import contextlib

import numpy as np

import sabir
from sabir.checking import RULES
from sabir.ir import Node, TrainingInfo, Value, least_ir, resolve, used_features


def listed(model):
    return [(feature.name, feature.since, str(place.location)) for feature, place in used_features(model)]


def test_features_of_graphs_values_and_types():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21]>
        g (optional(float[N]) x, int4[2] i, sparse_tensor(float[2]) s, seq(float8e5m2[N]) q) => (int4[2] y)
        <float[1] w = {1}> { y = Identity (i) }""")
    assert listed(model) == [
        ("initializers that are no inputs", 4, "graph"),
        ("optional types", 8, "graph/input[0] 'x'"),
        ("int4", 10, "graph/input[1] 'i'"),
        ("sparse tensor types", 8, "graph/input[2] 's'"),
        ("sequences and maps", 6, "graph/input[3] 'q'"),
        ("float8e5m2", 9, "graph/input[3] 'q'"),
        ("int4", 10, "graph/node[0] 'Identity'/output[0] 'y'"),
    ]
    assert least_ir(model) == 10


def test_features_inside_functions_subgraphs_and_training():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 14, "d" : 1]>
        g (bool c, float[1] x) => (float[1] y) {
            y = If (c) <then_branch = t () => (float[1] a) <float[1] w = {1}> { a = d.f (w) },
                        else_branch = e () => (float[1] b) { b = Identity (x) }>
        }
        <domain: "d", opset_import: ["" : 14]> f (a) => (b) { k = Constant <value = int4[1] {1}> () b = Relu (a) }""")
    model.training.append(TrainingInfo())
    assert listed(model) == [
        ("training_info", 7, "model"),
        ("initializers that are no inputs", 4, "graph/node[0] 'If'/attribute 'then_branch'/graph"),
        ("functions", 8, "function[0] 'f'"),
        ("int4", 10, "function[0] 'f'/node[0] 'Constant'/attribute 'value'/tensor"),
    ]


def test_features_of_nodes_and_of_the_ml_variant():
    model = sabir.parse("""<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5]>
        g (map(int64,float) m) => (float[N] y) { y = ai.onnx.ml.DictVectorizer <int64_vocabulary = [1]> (m) }""")
    assert listed(model) == []  # the ML variant had maps from the first
    model.graph[0].metadata = {"k": "v"}
    model.graph.inputs[0].metadata = {"k": "v"}
    assert listed(model) == [
        ("metadata_props of a value", 10, "graph/input[0] 'm'"),
        ("metadata_props of a node", 10, "graph/node[0] 'DictVectorizer'"),
    ]


def test_a_long_graph_with_many_initializers_is_no_trouble():
    b = sabir.Builder(7)
    x = b.input("x", "float", [1])
    for place in range(20_000):
        x = b.graph.append(Node("Relu", [x], [Value(f"v{place}")])).output
        w = b.input(f"w{place}", "float", [1])
        b.graph.set_initializer(w, sabir.ir.ArrayTensor(np.ones(1, np.float32)))
    b.output(x, "y", "float", [1])
    assert least_ir(b.model(ir_version=3)) == 3


def readable(examples):
    """The models of those examples that are written in the text syntax."""
    for example in examples:
        if isinstance(example, str):
            with contextlib.suppress(sabir.SabirError):  # some violate a rule that the parser enforces
                yield sabir.parse(example)


def test_every_location_can_be_resolved():
    models = list(readable(e for rule in RULES for e in (*rule.bad, *rule.good)))
    assert len(models) > 100
    for model in models:
        for feature, place in used_features(model):
            assert resolve(model, place.location) is place.object
            assert feature.since <= least_ir(model)
