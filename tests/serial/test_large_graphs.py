"""What loading does to be fast: it looks for unknown fields once, and makes equal small tensors one object."""

import numpy as np
import pytest

import sabir
from sabir.proto import ModelProto, TensorProto, encode_bytes

UNKNOWN = encode_bytes(900, b"from the future")
GRAPH, NODE, ATTRIBUTE, SUBGRAPH = 7, 1, 5, 6  # the numbers of the fields that contain one another


@pytest.mark.parametrize("levels", [1, 9, 10, 11, 19, 20, 21, 30])
def test_unknown_fields_of_nodes_survive_in_graphs_of_any_depth(levels):
    data = encode_bytes(4, b"Relu") + UNKNOWN
    for _ in range(levels):
        graph = encode_bytes(NODE, data)
        attribute = encode_bytes(1, b"body") + encode_bytes(SUBGRAPH, graph) + b"\xa0\x01\x05"
        data = encode_bytes(4, b"Call") + encode_bytes(ATTRIBUTE, attribute)
    message = ModelProto.FromString(encode_bytes(GRAPH, encode_bytes(NODE, data)))

    saved = sabir.dumps(sabir.loads(message.SerializeToString()))

    assert UNKNOWN in saved
    assert ModelProto.FromString(saved) == message


def constants(*values):
    b = sabir.Builder(21)
    for value in values:
        b.output(b.Constant(value=np.asarray(value)))
    return sabir.loads(sabir.dumps(b.model()))


def test_equal_small_constants_are_one_object():
    first, second, other = constants([0, -1], [0, -1], [0, -2]).graph

    assert first.attributes["value"] is second.attributes["value"]
    assert first.attributes["value"] is not other.attributes["value"]


def test_large_constants_stay_apart():
    first, second = constants(np.zeros(64), np.zeros(64)).graph

    assert first.attributes["value"] is not second.attributes["value"]


def test_a_change_of_one_equal_constant_leaves_the_other():
    model = constants([0, -1], [0, -1])
    first, second = model.graph

    first.set(value=np.int64([3]))

    assert second.attributes["value"].value.array().tolist() == [0, -1]


def test_a_finding_about_equal_constants_names_every_place():
    message = sabir.to_proto(constants([0, -1], [0, -1]))
    for node in message.graph.node:
        node.attribute[0].t.raw_data = b"short"

    found = [str(f.location) for f in sabir.findings(message.SerializeToString(), select=["TENSOR005"])]

    assert [where.split("/")[1] for where in found] == ["node[0] 'Constant'", "node[1] 'Constant'"]


def test_a_tensor_of_an_attribute_whose_bytes_are_of_no_type_is_read():
    message = sabir.to_proto(constants([0, -1], [0, -1]))
    for node in message.graph.node:
        node.attribute[0].t.data_type = TensorProto.STRING  # whose elements have no raw form
    data = message.SerializeToString()

    assert sabir.dumps(sabir.loads(data)) == data
