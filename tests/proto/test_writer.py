# ruff: file-ignore[banned-api] - onnx writes the same models as an oracle
from pathlib import Path

import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError
from hypothesis import given
from hypothesis import strategies as st

from sabir.base import WireError
from sabir.proto import BulkWriter, ModelProto, SparseTensorProto, TensorProto, read_model

_FILES = sorted((Path(onnx.__file__).parent / "backend" / "test" / "data").rglob("*.onnx"))


def _take_out(message, writer):
    """Put placeholders in the place of all raw_data."""
    for field, value in message.ListFields():
        if field.name == "raw_data":
            message.raw_data = writer.placeholder(message.raw_data)
        elif field.message_type is not None:
            for inner in [value] if hasattr(value, "DESCRIPTOR") else value:
                _take_out(inner, writer)


def _written(message, threshold=0):
    writer = BulkWriter(threshold=threshold)
    skeleton = type(message)()
    skeleton.CopyFrom(message)
    _take_out(skeleton, writer)
    data = b"".join(writer.chunks(skeleton))
    assert writer.size == len(data)
    return data


@pytest.mark.parametrize("threshold", [0, 1, 41, 4096])
def test_the_bytes_are_those_of_the_whole_message(rich_model, threshold):
    assert _written(rich_model, threshold) == rich_model.SerializeToString()


def test_every_file_of_the_wheel_is_written_as_onnx_writes_it():
    for file in _FILES:
        data = file.read_bytes()
        assert _written(ModelProto.FromString(data)) == onnx.load_from_string(data).SerializeToString()


@given(st.lists(st.binary(max_size=200), max_size=6), st.integers(0, 200))
def test_any_tensors_are_written_as_protobuf_writes_them(contents, threshold):
    model = ModelProto(ir_version=1)
    for content in contents:
        model.graph.initializer.add(raw_data=content, name="after")
        model.functions.add().node.add().attribute.add(name="a").t.raw_data = content
    assert _written(model, threshold) == model.SerializeToString()


@pytest.mark.parametrize("size", [0, 1, 23, 24, 25, 127, 128, 16383, 16384, 2**21])
def test_lengths_are_corrected_at_every_size(size):
    model = ModelProto(ir_version=1)
    model.graph.initializer.add(raw_data=bytes(size), name="after")
    assert _written(model) == model.SerializeToString()


def test_large_buffers_are_yielded_themselves():
    arrays = [np.full((1250, 1000), i, np.float64) for i in range(3)]
    writer = BulkWriter()
    model, whole = ModelProto(ir_version=9), ModelProto(ir_version=9)
    for i, array in enumerate(arrays):
        model.graph.initializer.add(name=f"w{i}", raw_data=writer.placeholder(array.data))
        whole.graph.initializer.add(name=f"w{i}", raw_data=array.tobytes())
    chunks = list(writer.chunks(model))
    large = [c for c in chunks if len(c) == 10_000_000]
    assert [
        np.shares_memory(np.frombuffer(memoryview(c), np.uint8), a)
        for c, a in zip(large, arrays, strict=True)
    ] == [True] * 3
    assert sum(len(c) for c in chunks if len(c) != 10_000_000) < 200
    assert b"".join(chunks) == whole.SerializeToString()
    assert writer.size == whole.ByteSize()


def test_what_was_read_without_copies_is_written_without_copies():
    whole = ModelProto(ir_version=9)
    whole.graph.initializer.add(raw_data=bytes(range(256)) * 400)
    data = whole.SerializeToString()
    model, bulk = read_model(data)
    writer = BulkWriter()
    model.graph.initializer[0].raw_data = writer.placeholder(bulk.get(model.graph.initializer[0].raw_data))
    chunks = list(writer.chunks(model))
    assert b"".join(chunks) == data
    source = np.frombuffer(data, np.uint8)
    assert any(np.shares_memory(np.frombuffer(memoryview(c), np.uint8), source) for c in chunks)


def test_short_buffers_are_embedded():
    writer = BulkWriter()
    assert writer.placeholder(b"x" * 4095) == b"x" * 4095
    assert len(writer.placeholder(b"x" * 4096)) == 24
    assert writer.placeholder(np.zeros((0, 3)).data) == b""


def test_one_buffer_may_stand_in_two_tensors():
    writer = BulkWriter(threshold=0)
    raw = writer.placeholder(b"x" * 50)
    sparse = SparseTensorProto(values=TensorProto(raw_data=raw), indices=TensorProto(raw_data=raw))
    whole = SparseTensorProto(values=TensorProto(raw_data=b"x" * 50), indices=TensorProto(raw_data=b"x" * 50))
    assert b"".join(writer.chunks(sparse)) == whole.SerializeToString()


def test_data_that_is_no_placeholder_is_left_alone():
    writer = BulkWriter(threshold=0)
    stranger = BulkWriter(threshold=0).placeholder(b"y" * 50)
    raw = writer.placeholder(b"x" * 50)
    model = ModelProto()
    model.graph.initializer.add(raw_data=stranger)
    model.graph.initializer.add(raw_data=raw)
    written = ModelProto.FromString(b"".join(writer.chunks(model)))
    assert [t.raw_data for t in written.graph.initializer] == [stranger, b"x" * 50]


@pytest.mark.parametrize("suffix", [b"", b"z"])
def test_a_placeholder_out_of_place_is_refused(suffix):
    writer = BulkWriter(threshold=0)
    raw = writer.placeholder(b"x" * 50)
    model = ModelProto()
    if suffix:
        model.graph.initializer.add(raw_data=raw + suffix)
    else:
        model.graph.initializer.add(string_data=[raw])
    with pytest.raises(WireError, match="outside a raw_data field, or not alone"):
        writer.chunks(model)


class _Unwritable:
    def SerializeToString(self):  # ruff: ignore[invalid-function-name] - protobuf's name
        raise EncodeError("Failed to serialize proto")


def test_what_protobuf_cannot_write_is_a_wire_error():
    with pytest.raises(WireError, match="cannot serialise the message: Failed"):
        BulkWriter().chunks(_Unwritable())


def test_bulk_too_deep_to_be_read_back_is_refused():
    model = ModelProto()
    writer = BulkWriter(threshold=0)
    graph = model.graph
    for _ in range(40):
        graph = graph.node.add().attribute.add().g
    graph.initializer.add(raw_data=writer.placeholder(b"x"))
    with pytest.raises(WireError, match="nested more than 100 deep"):
        writer.chunks(model)


def test_a_buffer_with_gaps_is_refused():
    with pytest.raises(TypeError):
        BulkWriter().placeholder(np.zeros((100, 100))[:, ::2].data)


def test_a_message_above_two_gib_is_written_in_chunks():
    half = memoryview(bytes(2**20))
    writer = BulkWriter()
    raw = writer.placeholder(half)
    model = ModelProto()
    for _ in range(2100):
        model.graph.initializer.add(raw_data=raw)
    total = sum(len(chunk) for chunk in writer.chunks(model))
    assert writer.size == total > 2**31
