# ruff: file-ignore[banned-api] - onnx reads the same files as an oracle
import mmap
import os
import resource
import time
from pathlib import Path

import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sabir.base import WireError
from sabir.proto import ModelProto, TensorProto, looks_like_model, read_message, read_model
from sabir.proto._routes import routes_to_bulk
from sabir.proto._wire import encode_bytes, encode_number, encode_varint

_FILES = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))
_TENSOR_OF_GRAPH = (7, 5)


def _tensors(message):
    """Yield every tensor, in the order of the wire."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                yield from _tensors(inner)


def _materialise(model, bulk):
    for tensor in _tensors(model):
        if tensor.HasField("raw_data"):
            tensor.raw_data = bytes(bulk.get(tensor.raw_data))
    return model


def _wrap(data, *numbers):
    for number in reversed(numbers):
        data = encode_bytes(number, data)
    return data


@pytest.mark.parametrize("threshold", [1, 24, 64, 4096])
def test_every_file_of_the_wheel_reads_as_onnx_reads_it(threshold):
    cut = 0
    for file in _FILES:
        data = file.read_bytes()
        model, bulk = read_model(data, threshold=threshold)
        cut += len(bulk)
        assert (
            _materialise(model, bulk).SerializeToString() == onnx.load_from_string(data).SerializeToString()
        )
    assert cut > 20 or threshold > 64


@pytest.mark.parametrize("threshold", [0, 1, 24, 40])
def test_bulk_is_cut_out_wherever_it_may_stand(rich_model, threshold):
    data = rich_model.SerializeToString()
    model, bulk = read_model(data, threshold=threshold)
    views = [bulk.get(t.raw_data) for t in _tensors(model)]
    assert [v[0] for v in views] == list(range(1, 21))
    assert all(isinstance(v, memoryview) for v in views)
    assert len(bulk) == 20
    assert _materialise(model, bulk) == rich_model


def test_only_data_of_the_threshold_is_cut_out(rich_model):
    model, bulk = read_model(rich_model.SerializeToString(), threshold=41)
    assert len(bulk) == 1
    assert len(model.graph.initializer[1].raw_data) == 24
    assert model.graph.initializer[0].raw_data == bytes([13]) * 40
    raw = model.graph.initializer[0].raw_data
    assert bulk.get(raw) is raw


def test_views_are_of_the_callers_buffer():
    buffer = bytearray(_wrap(encode_bytes(9, bytes(100_000)), *_TENSOR_OF_GRAPH))
    model, bulk = read_model(memoryview(buffer))
    view = bulk.get(model.graph.initializer[0].raw_data)
    buffer[-1] = 77
    assert view[-1] == 77
    assert view.readonly


def test_a_placeholder_of_another_read_is_plain_data(rich_model):
    data = rich_model.SerializeToString()
    model, bulk = read_model(data, threshold=1)
    other, other_bulk = read_model(data, threshold=1)
    stranger = other.graph.initializer[0].raw_data
    assert stranger != model.graph.initializer[0].raw_data
    assert bulk.get(stranger) is stranger
    forged = model.graph.initializer[0].raw_data[:16] + b"\xff" * 8
    assert bulk.get(forged) is forged
    hidden = ModelProto()
    hidden.graph.initializer.add(raw_data=stranger)
    again, again_bulk = read_model(hidden.SerializeToString(), threshold=1)
    assert bytes(again_bulk.get(again.graph.initializer[0].raw_data)) == stranger
    assert other_bulk.get(stranger) != stranger


def test_the_last_of_two_raw_data_wins():
    tensor = encode_bytes(9, b"a" * 50) + encode_bytes(9, b"b" * 60)
    model, bulk = read_model(_wrap(tensor, *_TENSOR_OF_GRAPH), threshold=2)
    assert len(bulk) == 2
    assert bytes(bulk.get(model.graph.initializer[0].raw_data)) == b"b" * 60


def test_a_graph_in_two_parts_is_merged():
    parts = [_wrap(encode_bytes(9, c * 50), *_TENSOR_OF_GRAPH) for c in (b"a", b"b")]
    model, bulk = read_model(b"".join(parts), threshold=2)
    assert len(bulk) == 2
    assert [bytes(bulk.get(t.raw_data)) for t in model.graph.initializer] == [b"a" * 50, b"b" * 50]


def test_a_merged_attribute_keeps_the_last_data():
    attribute = encode_bytes(5, encode_bytes(9, b"a" * 50)) + encode_bytes(5, encode_bytes(9, b"b" * 50))
    model, bulk = read_model(_wrap(attribute, 7, 1, 5), threshold=2)
    assert len(bulk) == 2
    assert bytes(bulk.get(model.graph.node[0].attribute[0].t.raw_data)) == b"b" * 50


def test_an_overlong_length_is_read():
    tensor = encode_bytes(9, b"x" * 50)
    padded = b"\x2a" + bytes([len(tensor) | 128, 128, 128, 0]) + tensor
    model, bulk = read_model(encode_bytes(7, padded), threshold=2)
    assert len(bulk) == 1
    assert bytes(bulk.get(model.graph.initializer[0].raw_data)) == b"x" * 50


_UNKNOWN = (
    encode_number(1000, 2**64 - 1)
    + encode_varint(1001 << 3 | 1)
    + bytes(8)
    + encode_varint(1002 << 3 | 5)
    + bytes(4)
    + encode_bytes(1003, b"z" * 200)
    + (
        encode_varint(1004 << 3 | 3)
        + b"\x0b\x10\x05\x0c"
        + b"\x4a\x32"
        + b"r" * 50
        + encode_varint(1004 << 3 | 4)
    )
)


@pytest.mark.parametrize("threshold", [0, 8, 4096])
def test_unknown_fields_survive_at_every_level(threshold):
    data = encode_bytes(9, b"x" * 50) + _UNKNOWN
    for number in (5, 5, 1, 7):  # attribute.t, node.attribute, graph.node, model.graph
        data = encode_bytes(number, data) + _UNKNOWN
    model, bulk = read_model(data, threshold=threshold)
    assert len(bulk) == (threshold < 4096)
    assert _materialise(model, bulk).SerializeToString() == data


def test_a_known_number_of_another_wire_type_is_unknown():
    data = encode_number(7, 5) + b"\x3b\x3c" + _wrap(encode_bytes(9, b"x" * 50), *_TENSOR_OF_GRAPH)
    model, bulk = read_model(data, threshold=2)
    assert len(bulk) == 1
    assert _materialise(model, bulk) == ModelProto.FromString(data)


def _nested(levels):
    data = encode_bytes(9, b"x" * 50)
    data = encode_bytes(5, data)
    for _ in range(levels):
        data = _wrap(data, 1, 5, 6)
    return encode_bytes(7, data)


def test_nesting_is_read_as_deep_as_protobuf_reads_it():
    model, bulk = read_model(_nested(32), threshold=2)
    assert len(bulk) == 1
    assert _materialise(model, bulk) == ModelProto.FromString(_nested(32))
    with pytest.raises(WireError, match="nested more than 100 deep"):
        read_model(_nested(33), threshold=2)
    with pytest.raises(WireError, match="nested more than 100 deep"):
        read_model(_nested(33))


def test_the_routes_lead_to_bulk_only():
    routes = routes_to_bulk(ModelProto.DESCRIPTOR)
    assert sorted(tag >> 3 for tag in routes) == [7, 20, 25]
    assert routes[7 << 3 | 2].inner is not None
    assert sorted(tag >> 3 for tag in routes[7 << 3 | 2].inner) == [1, 5, 15]


def test_a_message_of_another_class_is_read():
    tensor = read_message(TensorProto, TensorProto(dims=[2], raw_data=b"ab").SerializeToString())
    assert tensor.raw_data == b"ab"
    assert read_message(TensorProto, b"") == TensorProto()
    with pytest.raises(
        WireError, match=r"^t\.pb: truncated or no TensorProto: raw_data at byte 2, of 5: .* beyond"
    ):
        read_message(TensorProto, b"\x08\x02\x4a\x09a", source="t.pb")


def test_what_looks_like_a_model():
    assert not looks_like_model(ModelProto())
    assert not looks_like_model(ModelProto(producer_name="x"))
    assert looks_like_model(ModelProto(ir_version=3))
    assert looks_like_model(read_model(_nested(1))[0])


@given(st.lists(st.binary(max_size=80), max_size=5), st.integers(0, 40))
def test_any_tensors_are_read_as_protobuf_reads_them(contents, threshold):
    model = ModelProto(ir_version=1)
    for content in contents:
        model.graph.initializer.add(raw_data=content)
        model.graph.node.add().attribute.add().t.raw_data = content
    read, bulk = read_model(model.SerializeToString(), threshold=threshold)
    assert _materialise(read, bulk) == model


def test_the_walk_of_a_large_graph_is_fast():
    model = ModelProto(ir_version=10)
    for i in range(20_000):
        model.graph.node.add(op_type="Add", name=f"n{i}", input=[f"v{i}", f"w{i}"], output=[f"v{i + 1}"])
        model.graph.initializer.add(name=f"w{i}", raw_data=bytes(100))
    data = model.SerializeToString()
    start = time.process_time()
    read_model(data)
    assert time.process_time() - start < 2  # some 15 ms; a walk that begins anew for each field takes minutes


def test_a_model_above_two_gib_is_read_from_a_sparse_file(tmp_path):
    size = 2_200_000_000
    raw = b"\x4a" + encode_varint(size)
    tensor = b"\x2a" + encode_varint(len(raw) + size)
    graph = b"\x3a" + encode_varint(len(tensor) + len(raw) + size)
    head = graph + tensor + raw
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.write(head)
        os.truncate(path, len(head) + size)
        file.seek(len(head) + size)
        file.write(encode_number(1, 14))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    model, bulk = read_model(mapped)
    assert model.ir_version == 14
    assert len(bulk.get(model.graph.initializer[0].raw_data)) == size
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_a_skeleton_above_two_gib_is_refused(tmp_path):
    size = 2_200_000_000
    path = tmp_path / "huge.onnx"
    head = b"\x32" + encode_varint(size)  # doc_string
    path.write_bytes(head)
    os.truncate(path, len(head) + size)
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with pytest.raises(WireError, match="without its raw_data the message has 22000000"):
        read_model(mapped)
    with pytest.raises(WireError, match="protobuf reads at most"):
        read_message(ModelProto, mapped)
