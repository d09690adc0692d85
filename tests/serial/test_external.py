# ruff: file-ignore[banned-api]  onnx makes the files
"""External data: read through a mapping, and never from outside the model's folder."""

import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sabir
from sabir.base import ExternalDataError
from sabir.ir import ExternalTensor

DATA = np.arange(50_000, dtype=np.float32)


def write_model(folder, location="weights.bin", offset=None, length=None, data=DATA, extra=()):
    tensor = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=DATA.shape, data_location=TensorProto.EXTERNAL
    )
    entries = {"location": location, "offset": offset, "length": length}
    for key, value in [*entries.items(), *extra]:
        if value is not None:
            tensor.external_data.add(key=key, value=str(value))
    out = helper.make_tensor_value_info("y", TensorProto.FLOAT, DATA.shape)
    graph = helper.make_graph([helper.make_node("Relu", ["w"], ["y"])], "g", [], [out], [tensor])
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    if data is not None:
        (folder / "weights.bin").write_bytes(data.tobytes())
    return path


def weights(path):
    (tensor,) = sabir.load(path).graph.initializers.values()
    assert isinstance(tensor, ExternalTensor)
    return tensor


def test_data_is_read_where_it_lies(tmp_path):
    array = weights(write_model(tmp_path)).array()
    np.testing.assert_array_equal(array, DATA)
    assert not array.flags.owndata
    assert sabir.evaluate(sabir.load(tmp_path / "model.onnx"), {})["y"].tolist() == DATA.tolist()


def test_offset_and_length(tmp_path):
    padded = np.concatenate([np.full(1024, 7, np.float32), DATA, DATA])
    path = write_model(tmp_path, offset=4096, length=DATA.nbytes, data=padded)
    np.testing.assert_array_equal(weights(path).array(), DATA)


def test_in_a_folder_below(tmp_path):
    path = write_model(tmp_path, "data/w..v1.bin", data=None)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w..v1.bin").write_bytes(DATA.tobytes())
    np.testing.assert_array_equal(weights(path).array(), DATA)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ({"data": None}, "no such file"),
        ({"data": DATA[:-1]}, r"needs bytes 0 to 200000, and the file has 199996"),
        ({"offset": 4}, "needs bytes 4 to 200004"),
        ({"length": 8}, "`length` is 8, and the tensor's type and shape take 200000"),
        ({"offset": "-4"}, "must be a number"),
        ({"offset": "0_0"}, "must be a number"),
        ({"offset": 10**18}, "and the file has"),
        ({"location": "../weights.bin"}, "stay in the model's folder"),
        ({"location": "a/../../weights.bin"}, "stay in the model's folder"),
        ({"location": "/etc/passwd"}, "relative"),
        ({"location": "C:\\x"}, "backslash"),
        ({"location": "C:x"}, "relative"),
        ({"location": "a\0b"}, "control character"),
        ({"location": ""}, "must have 1 to"),
        ({"location": "."}, "stay in the model's folder"),
        ({"location": "x" * 5000}, "must have 1 to"),
        ({"location": None}, "must have 1 to"),
    ],
)
def test_bad_references(tmp_path, case, message):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "weights.bin").write_bytes(DATA.tobytes())
    tensor = weights(write_model(folder, **case))
    with pytest.raises(ExternalDataError, match=message):
        tensor.array()


@pytest.mark.parametrize("kind", ["file", "folder", "hard", "directory", "pipe"])
def test_links_and_special_files_are_refused(tmp_path, kind):
    folder, secret = tmp_path / "model", tmp_path / "secret"
    folder.mkdir()
    secret.mkdir()
    (secret / "weights.bin").write_bytes(DATA.tobytes())
    path = write_model(folder, "inner/weights.bin", data=None)
    inner = folder / "inner"
    if kind == "folder":
        inner.symlink_to(secret)
    else:
        inner.mkdir()
    target = inner / "weights.bin"
    match kind:
        case "file":
            target.symlink_to(secret / "weights.bin")
        case "hard":
            os.link(secret / "weights.bin", target)
        case "directory":
            target.mkdir()
        case "pipe":
            os.mkfifo(target)
    with pytest.raises(ExternalDataError, match="weights.bin"):
        weights(path).array()


def test_a_model_from_bytes_has_no_folder(tmp_path):
    data = write_model(tmp_path).read_bytes()
    (tensor,) = sabir.loads(data).graph.initializers.values()
    with pytest.raises(ExternalDataError, match="say in which `folder`"):
        tensor.array()
    (tensor,) = sabir.loads(data, folder=tmp_path).graph.initializers.values()
    np.testing.assert_array_equal(tensor.array(), DATA)


def test_saving_in_the_same_folder_keeps_data_external(tmp_path):
    model = sabir.load(write_model(tmp_path))
    sabir.save(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").stat().st_size < 1000
    np.testing.assert_array_equal(weights(tmp_path / "again.onnx").array(), DATA)


def test_saving_elsewhere_takes_the_data_along(tmp_path):
    model = sabir.load(write_model(tmp_path))
    (tmp_path / "other").mkdir()
    sabir.save(model, tmp_path / "other" / "again.onnx")
    proto = onnx.load(tmp_path / "other" / "again.onnx")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(proto.graph.initializer[0]), DATA)
    assert onnx.load_from_string(sabir.dumps(model)) == proto


def test_a_relative_path_is_a_folder_too(tmp_path, monkeypatch):
    write_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(weights(pathlib.Path("model.onnx")).array(), DATA)
