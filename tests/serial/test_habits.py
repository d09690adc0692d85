# ruff: file-ignore[banned-api]  its messages cross
"""Calls as users of other libraries write them: they work, or the error says what was meant."""

import gzip
import io

import numpy as np
import onnx
import pytest

import sabir
from sabir.serial import FORMATS


@pytest.fixture
def model():
    b = sabir.Builder(21)
    b.output(b.Add(b.input("x", "float", ["N"]), b.initializer("w", np.arange(5000, dtype=np.float32))), "y")
    return b.model()


class Trickle(io.RawIOBase):
    """A file that takes a few bytes at a time."""

    def __init__(self):
        self.data = b""

    def writable(self):
        return True

    def write(self, data):
        self.data += bytes(data[:1000])
        return min(len(data), 1000)


class Silent:
    """A file whose `write` returns nothing."""

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data)


@pytest.mark.parametrize("name", FORMATS)
def test_a_model_is_saved_to_an_open_file(model, name):
    file = io.BytesIO()
    sabir.save(model, file, format=name)
    assert file.getvalue() == sabir.dumps(model, format=name)
    assert sabir.dumps(sabir.load(io.BytesIO(file.getvalue()))) == sabir.dumps(model)


def test_open_files_of_other_kinds(model, tmp_path):
    with gzip.open(tmp_path / "m.gz", "wb") as file:
        sabir.save(model, file)
    with gzip.open(tmp_path / "m.gz") as file:
        assert sabir.dumps(sabir.load(file)) == sabir.dumps(model)
    for file in (Trickle(), Silent()):
        sabir.save(model, file)
        assert file.data == sabir.dumps(model)


def test_progress_of_an_open_file(model):
    calls = []
    sabir.save(model, io.BytesIO(), progress=lambda done, total: calls.append((done, total)))
    size = len(sabir.dumps(model))
    assert calls[-1] == (size, size)


def test_an_open_file_gets_external_data_as_bytes_do(model, tmp_path):
    sabir.save(model, tmp_path / "m.onnx", external="w.bin")
    split = sabir.load(tmp_path / "m.onnx")
    for name, external, has_data in (
        ("protobuf", None, True), ("onnxtxt", None, False), ("onnxtxt", False, True), ("json", False, True),
    ):  # fmt: skip
        file = io.BytesIO()
        sabir.save(split, file, format=name, external=external)
        assert (b"w.bin" not in file.getvalue()) is has_data
        if external is None:
            assert file.getvalue() == sabir.dumps(split, format=name)


def test_what_an_open_file_cannot_do(model):
    with pytest.raises(sabir.FileError, match="no folder for `external` data; save to a path"):
        sabir.save(model, io.BytesIO(), external="w.bin")
    with pytest.raises(sabir.FileError, match="takes text; open it as binary, with mode 'wb'"):
        sabir.save(model, io.StringIO())
    with pytest.raises(sabir.FileError, match="the open file: No space left on device"):
        sabir.save(model, Full())


class Full:
    """A file on a full disk."""

    def write(self, _):
        raise OSError(28, "No space left on device")


def test_swapped_arguments_are_explained(model, tmp_path):
    with pytest.raises(TypeError, match=r"save takes the model first: save\(model, 'a\.onnx'\)"):
        sabir.save("a.onnx", model)
    with pytest.raises(TypeError, match=r"save takes a sabir\.Model, not a str$"):
        sabir.save("a.onnx", "b.onnx")
    message = sabir.to_proto(model, onnx.ModelProto)
    for call in (lambda: sabir.save(message, tmp_path / "m.onnx"), lambda: sabir.dumps(message)):
        with pytest.raises(TypeError, match=r"not a ModelProto; `sabir\.from_proto` makes a model"):
            call()


def test_a_missing_folder_is_named(model, tmp_path):
    with pytest.raises(sabir.FileError, match="there is no folder .*new; create it first"):
        sabir.save(model, tmp_path / "new" / "m.onnx")


@pytest.mark.parametrize("name", ["textproto", "json", "onnxtxt"])
def test_a_string_of_a_text_format_is_loaded(model, name, tmp_path):
    text = sabir.dumps(model, format=name).decode()
    for again in (sabir.loads(text), sabir.loads(text, format=name), sabir.load(io.StringIO(text))):
        assert sabir.dumps(again) == sabir.dumps(model)
    (tmp_path / "m.txt").write_text(text)
    with (tmp_path / "m.txt").open() as file:
        assert sabir.dumps(sabir.load(file)) == sabir.dumps(model)


def test_a_string_that_is_no_model_is_refused(model):
    for text in ("model.onnx", "", "\x08\x0a"):
        with pytest.raises(
            sabir.WireError, match="a model in protobuf is bytes, and `load\\(path\\)` loads a file"
        ):
            sabir.loads(text)
    with pytest.raises(sabir.WireError, match="a model in protobuf is bytes"):
        sabir.loads(sabir.text(model), format="protobuf")
    with pytest.raises(sabir.WireError, match="half of a surrogate pair at character 1"):
        sabir.loads("<\ud800")


def test_a_file_without_content_is_refused():
    class Odd:
        def read(self, _size=-1):
            return 3

    with pytest.raises(
        sabir.FileError, match="the open file returned a int; it must return bytes or a string"
    ):
        sabir.load(Odd())
    with pytest.raises(sabir.FileError, match="is not UTF-8; open it as binary, with mode 'rb'"):
        sabir.load(io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))


def test_a_path_or_a_message_has_a_text(model, tmp_path):
    sabir.save(model, tmp_path / "m.onnx")
    wanted = sabir.text(model)
    assert sabir.text(tmp_path / "m.onnx") == sabir.text(str(tmp_path / "m.onnx")) == wanted
    assert sabir.text(sabir.to_proto(model, onnx.ModelProto)) == wanted
    assert sabir.text(tmp_path / "m.onnx", elide=16) == sabir.text(model, elide=16) != wanted
    with pytest.raises(sabir.FileError, match="there is no such file"):
        sabir.text("absent.onnx")
    with pytest.raises(TypeError, match="has a text, and this is a int"):
        sabir.text(3)
