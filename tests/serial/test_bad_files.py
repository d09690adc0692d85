# ruff: file-ignore[banned-api]  onnx makes the well-formed parts
"""Files that are no models end in one clear error that names them."""

import gzip
import io
import os
import stat
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

import sabir
from sabir.base import FileError, SabirError, WireError


def small_model():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])],
    )
    return helper.make_model(graph, ir_version=10).SerializeToString()


def zipped():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", "b")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (small_model()[:-3], "truncated"),
        (zipped(), "zip"),
        (gzip.compress(b"abc"), "gzip"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HTML"),
        (b'{"irVersion": "8"}', "JSON"),
        (b"\xff\xff\xff\xff", "no ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs"),
        (b"\x08\x0a", "no graph"),
    ],
    ids=["empty", "truncated", "zip", "gzip", "html", "json", "noise", "lfs", "no graph"],
)
def test_what_is_no_model_is_told_apart(tmp_path, content, message):
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(WireError, match=message) as error:
        sabir.load(path)
    assert str(path) in str(error.value)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileError, match=r"nothing\.onnx: there is no such file"):
        sabir.load(tmp_path / "nothing.onnx")


def test_a_directory(tmp_path):
    with pytest.raises(FileError, match="this is a directory"):
        sabir.load(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileError, match="not a regular file"):
        sabir.load(tmp_path / "pipe")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(small_model())
    path.chmod(stat.S_IWUSR)
    with pytest.raises(FileError, match="permission denied"):
        sabir.load(path)


def test_names_that_are_no_utf8():
    data = small_model().replace(b"Relu", b"Re\xff\xfe")
    with pytest.raises(WireError, match="NodeProto.op_type is not UTF-8"):
        sabir.loads(data)
    with pytest.raises(WireError, match="not UTF-8"):
        sabir.loads(small_model().replace(b"\x01x", b"\x01\xff"))


def test_graphs_nested_without_end_are_refused():
    graph = b""
    for _ in range(200):  # each holds a node, whose attribute `g` holds the next
        attribute = b"\x32" + varint(len(graph)) + graph
        node = b"\x2a" + varint(len(attribute)) + attribute
        graph = b"\x0a" + varint(len(node)) + node
    with pytest.raises(WireError, match="deep|nest|truncated or no"):
        sabir.loads(b"\x08\x0a" + b"\x3a" + varint(len(graph)) + graph)


def varint(number):
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


@settings(max_examples=150)
@given(st.data())
def test_no_damage_makes_another_error(data):
    good = bytearray(small_model())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(good) - 1))
        if data.draw(st.booleans()):
            good[place] = data.draw(st.integers(0, 255))
        else:
            del good[place]
    try:
        model = sabir.loads(bytes(good))
        sabir.dumps(model)
        for _ in sabir.findings(model):
            pass
        model = sabir.infer(model)
    except SabirError:
        pass


@pytest.mark.parametrize("size", range(0, len(small_model()), 3))
def test_every_truncation(size):
    try:
        sabir.loads(small_model()[:size])
    except SabirError as error:
        assert str(error)


def test_loading_from_bytes_and_open_files(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(small_model())
    with path.open("rb") as file:
        models = [sabir.load(path), sabir.load(str(path)), sabir.load(small_model()), sabir.load(file)]
    assert [sabir.dumps(m) for m in models] == [small_model()] * 4
    assert models[0].path == path
    assert models[3].path is None
