"""A model with bulk data wherever the schema allows it."""

import pytest

from sabir.proto import AttributeProto, ModelProto


def _tensor(tensor, fill, count=40):
    tensor.name = f"t{fill}"
    tensor.dims.append(count)
    tensor.data_type = 2
    tensor.raw_data = bytes([fill]) * count


def _subgraph(graph, fill):
    graph.name = f"g{fill}"
    node = graph.node.add(op_type="Constant")
    _tensor(node.attribute.add(name="value", type=AttributeProto.TENSOR).t, fill)
    _tensor(graph.initializer.add(), fill + 1)


@pytest.fixture
def rich_model():
    """Return a model with 20 tensors, their first bytes counting up from 1 in the order of the wire."""
    model = ModelProto(ir_version=14, producer_name="tests")
    model.opset_import.add(domain="", version=28)
    graph = model.graph
    graph.name = "main"
    node = graph.node.add(op_type="Everything", domain="test")
    _tensor(node.attribute.add(name="t").t, 1)
    _subgraph(node.attribute.add(name="g").g, 2)
    tensors = node.attribute.add(name="ts").tensors
    _tensor(tensors.add(), 4)
    _tensor(tensors.add(), 5)
    graphs = node.attribute.add(name="gs").graphs
    _subgraph(graphs.add(), 6)
    _subgraph(graphs.add(), 8)
    sparse = node.attribute.add(name="s").sparse_tensor
    _tensor(sparse.values, 10)
    _tensor(sparse.indices, 11)
    _tensor(node.attribute.add(name="ss").sparse_tensors.add().values, 12)
    _tensor(graph.initializer.add(), 13)
    _tensor(graph.initializer.add(), 14, count=300)
    _tensor(graph.sparse_initializer.add().values, 15)
    _tensor(graph.sparse_initializer[0].indices, 16)
    training = model.training_info.add()
    _tensor(training.initialization.initializer.add(), 17)
    _tensor(training.algorithm.initializer.add(), 18)
    function = model.functions.add(name="f", domain="test")
    _tensor(function.node.add(op_type="C").attribute.add(name="value").t, 19)
    _tensor(function.attribute_proto.add(name="a").t, 20)
    return model
