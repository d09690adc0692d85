# ruff: file-ignore[banned-api]  the official cases are onnx's, and so is the other implementation
"""Official models merged with an Identity, beside `onnx.compose`."""

import onnx
from onnx import compose, helper

import sabir
from support.cases import each_of
from support.official import cases, first_operator


def returns_tensors(case):
    outputs = case.model.graph.output
    return bool(outputs) and outputs[0].type.HasField("tensor_type")


def identity_of(port, opsets, ir_version):
    ports = []
    for name in ("taken", "made"):
        ports.append(onnx.ValueInfoProto())
        ports[-1].CopyFrom(port)
        ports[-1].name = name
    graph = helper.make_graph(
        [helper.make_node("Identity", ["taken"], ["made"])], "copy", ports[:1], ports[1:]
    )
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def names(values):
    return [value.name for value in values]


@each_of("case", cases(returns_tensors, share=2), group=first_operator)
def test_the_same_nodes_and_ports(case):
    model = case.model
    port = model.graph.output[0]
    second = identity_of(port, model.opset_import, model.ir_version)
    first = sabir.loads(model.SerializeToString())
    got = sabir.merge(first, sabir.loads(second.SerializeToString()), {port.name: "taken"})
    try:
        expected = compose.merge_models(model, second, io_map=[(port.name, "taken")]).graph
    except (onnx.checker.ValidationError, ValueError):
        return  # it refuses what its checker refuses, such as operators in preview
    assert [node.op for node in got.graph] == [node.op_type for node in expected.node]
    assert names(got.graph.inputs) == names(expected.input)
    assert names(got.graph.outputs) == names(expected.output)
