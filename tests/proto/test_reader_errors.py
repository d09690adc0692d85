import gzip
import io
import json
import pickle  # ruff: ignore[suspicious-pickle-import] - only dumped here
import zipfile

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from sabir.base import WireError
from sabir.proto import AttributeProto, ModelProto, guess_format, read_model
from sabir.proto._wire import encode_bytes, encode_number, encode_varint


def _outcome(data, threshold=4096):
    """Return the text of the WireError that reading raises, or nothing; any other error is let through."""
    try:
        model, bulk = read_model(data, threshold=threshold)
    except WireError as error:
        return str(error)
    for tensor in model.graph.initializer:
        bulk.get(tensor.raw_data)
    return ""


def _small():
    model = ModelProto(ir_version=14, doc_string="documentation")
    node = model.graph.node.add(op_type="If", name="n", input=["a", "b"])
    node.attribute.add(name="g", type=AttributeProto.GRAPH).g.initializer.add(raw_data=b"12345678")
    for i in range(4):
        model.graph.initializer.add(name=f"w{i}", dims=[1, 300], raw_data=bytes(30))
    return model.SerializeToString()


@pytest.mark.parametrize("threshold", [0, 1, 20, 4096])
def test_truncated_anywhere_it_reads_or_says_so(threshold):
    data = _small()
    outcomes = [_outcome(data[:end], threshold) for end in range(1, len(data))]
    errors = [text for text in outcomes if text]
    assert len(errors) > len(data) * 0.9
    assert [e for e in errors if "truncated or no ONNX model: " not in e or " at byte " not in e] == []


@given(st.data(), st.sampled_from([0, 1, 20, 4096]))
def test_mutated_anyhow_nothing_but_a_wire_error_escapes(data, threshold):
    mutated = bytearray(_small())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(mutated) - 1))
        mutated[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    _outcome(bytes(mutated), threshold)


@given(st.binary(min_size=1, max_size=200), st.sampled_from([0, 4096]))
def test_from_any_bytes_nothing_but_a_wire_error_escapes(data, threshold):
    _outcome(data, threshold)


@given(st.binary(min_size=1, max_size=60))
def test_the_walk_refuses_nothing_that_protobuf_reads(data):
    try:
        expected = ModelProto.FromString(data)
    except DecodeError:
        return
    model, bulk = read_model(data, threshold=100_000)
    assert model == expected
    read_model(data, threshold=0)
    assert not len(bulk)


_GRAPH = encode_bytes(7, encode_bytes(5, b"") * 3 + encode_bytes(5, b"\x4a\x70xyz"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            _GRAPH,
            ["graph.initializer[3].raw_data at byte 10, of 15", "109 bytes beyond the end of its message"],
        ),
        (encode_number(1, 3) + b"\x3a\x05\x0a\x09ab", ["graph at byte 2", "beyond"]),
        (b"\x08", ["ir_version at byte 0", "the data ends within this field"]),
        (b"\x08" + b"\xff" * 11, ["ir_version at byte 0", "more than ten bytes"]),
        (b"\x3a\x02\x02\x00", ["byte 2, of 4: a field number of 0"]),
        (b"\x00\x01", ["byte 0", "a field number of 0"]),
        (b"\x0c", ["ir_version at byte 0", "the end of a group that never began"]),
        (b"\x0e", ["ir_version at byte 0", "unknown wire type 6"]),
        (encode_varint(1000 << 3 | 3) + b"\x14", ["field 1000 at byte 0", "a group other than"]),
        (encode_varint(1000 << 3 | 3) * 101, ["field 1000 at byte 0", "groups nested more than 100 deep"]),
        (encode_varint(1000 << 3 | 3), ["field 1000 at byte 0", "the data ends"]),
        (b"\xff\xff\xff\xff\xff\x01\x00", ["byte 0", "a field number out of range"]),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", ["graph at byte 0", "beyond"]),
    ],
)
@pytest.mark.parametrize("threshold", [0, 4096])
def test_an_error_says_where_and_why(data, words, threshold):
    with pytest.raises(WireError) as caught:
        read_model(data, source="m.onnx", threshold=threshold)
    message = str(caught.value)
    assert message.startswith("m.onnx: truncated or no ONNX model: ")
    assert [word for word in words if word not in message] == []


def test_a_fault_in_a_group_beside_bulk_is_located():
    group = encode_varint(50 << 3 | 3) + b"\x08\x01"
    data = encode_bytes(7, encode_bytes(5, encode_bytes(9, bytes(64))) + group)
    with pytest.raises(WireError, match=r"graph\.field 50 at byte"):
        read_model(data, threshold=2)


def _zip():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", b"x")
    return file.getvalue()


def _npy():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


def _safetensors():
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(4)


_OTHERS = [
    (_zip(), "zip archive"),
    (gzip.compress(b"x"), "gzip"),
    (b"\x89HDF\r\n\x1a\n" + bytes(50), "HDF5"),
    (_npy(), "NumPy"),
    (pickle.dumps({"a": 1}), "pickle"),
    (_safetensors(), "safetensors"),
    (b"\x1c\x00\x00\x00TFL3" + bytes(30), "TensorFlow Lite"),
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git-lfs"),
    (b"\n\n<!DOCTYPE html><html></html>", "HTML"),
    (b"<?xml version='1.0'?>", "XML"),
    (b'{"ir_version": 8}', "JSON"),
    (b'<ir_version: 8, opset_import: ["" : 18]>\nagraph (float[N] x) => (float[N] y) {}', "ONNX text syntax"),
    (b"agraph (float[N] x) => (float[N] y) { y = Relu(x) }", "ONNX text syntax"),
    (b'ir_version: 8\ngraph {\n  name: "g"\n}\n', "protobuf's text format"),
    ("déjà vu, said the text — ".encode() * 300, "text file"),
]


@pytest.mark.parametrize(("data", "name"), _OTHERS, ids=[name for _, name in _OTHERS])
def test_another_format_is_recognised(data, name):
    assert name in (guess_format(data) or "")


@pytest.mark.parametrize(("data", "name"), _OTHERS[:-1], ids=[name for _, name in _OTHERS[:-1]])
def test_another_format_is_named_in_the_error(data, name):
    text = _outcome(data)
    assert text.startswith("no ONNX model: this looks like ")
    assert name in text


def test_a_model_is_not_taken_for_another_format():
    assert guess_format(_small()) is None


def test_an_empty_file_is_refused():
    with pytest.raises(WireError, match=r"^e\.onnx: the file is empty$"):
        read_model(b"", source="e.onnx")
