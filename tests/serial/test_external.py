# ruff: file-ignore[banned-api]  onnx makes the files
"""External data: read through a mapping, and never from outside the model's folder."""

import os
import pathlib
import subprocess
import sys
import textwrap

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import sabir
from sabir.base import ExternalDataError, SabirError
from sabir.ir import ExternalTensor, all_tensors
from support.externals import contents, everywhere

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
        ({"location": "."}, "must name a file"),
        ({"location": "weights.bin/"}, "must name a file"),
        ({"location": "weights.bin/."}, "must name a file"),
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


@pytest.mark.parametrize("key", ["location", "offset", "length", "checksum"])
def test_entries_that_say_two_things_are_refused(tmp_path, key):
    extra = [(key, "weights.bin" if key == "location" else "0")]
    extra += [(key, "0")] if key == "checksum" else []
    tensor = weights(write_model(tmp_path, offset=0, length=DATA.nbytes, extra=extra))
    with pytest.raises(ExternalDataError, match=f"tensor 'w': external data: there is more than one `{key}`"):
        tensor.array()


def test_entries_that_nobody_knows_are_passed_over(tmp_path):
    extra = [("__class__", "x"), ("basepath", "/etc"), ("mine", "1"), ("mine", "2")]
    np.testing.assert_array_equal(weights(write_model(tmp_path, extra=extra)).array(), DATA)


@pytest.mark.parametrize("text", ["", "1_0", " 4", "4 ", "+4", "0x4", "٤", "4.0", "1e3", "9" * 20, "-0"])
@pytest.mark.parametrize("key", ["offset", "length"])
def test_numbers_are_ascii_digits(tmp_path, key, text):
    tensor = weights(write_model(tmp_path, **{key: text}))
    with pytest.raises(ExternalDataError, match=f"`{key}` must be a number of up to 19 digits"):
        tensor.array()


def test_entries_that_are_no_text_are_refused(tmp_path):
    path = write_model(tmp_path)
    path.write_bytes(path.read_bytes().replace(b"weights.bin", b"weights\xff\xfe\xfd\xfc"))
    with pytest.raises(ExternalDataError, match="the entry 'location' is not UTF-8"):
        weights(path).array()


@pytest.mark.parametrize("dims", [[-4], [2**40, 2**40], [1] * 65, [2**62] * 3])
def test_shapes_without_a_size_are_refused(tmp_path, dims):
    path = write_model(tmp_path)
    message = onnx.load(path, load_external_data=False)
    message.graph.initializer[0].dims[:] = dims
    path.write_bytes(message.SerializeToString())
    with pytest.raises(SabirError) as caught:
        weights(path).array()
    assert len(str(caught.value)) < 400


def test_one_file_under_many_names_is_read_once(tmp_path):
    (tmp_path / "link").symlink_to("weights.bin")
    names = ["weights.bin", "./weights.bin", ".//weights.bin", "link", "./link"]
    message = onnx.load(write_model(tmp_path), load_external_data=False)
    for number, name in enumerate(names):
        message.graph.initializer.append(message.graph.initializer[0])
        message.graph.initializer[-1].name = f"w{number}"
        message.graph.initializer[-1].external_data[0].value = name
    model = sabir.loads(message.SerializeToString(), folder=tmp_path)
    views = [tensor.raw().obj for tensor in model.graph.initializers.values()]
    assert all(view is views[0] for view in views)


def test_the_empty_folder_is_the_present_one(tmp_path, monkeypatch):
    inner = tmp_path / "inner"
    inner.mkdir()
    data = write_model(inner).read_bytes()
    outside = write_model(inner, location="../weights.bin", data=None).read_bytes()
    (tmp_path / "weights.bin").write_bytes(DATA.tobytes())
    monkeypatch.chdir(inner)
    (tensor,) = sabir.loads(data, folder="").graph.initializers.values()
    monkeypatch.chdir(tmp_path)  # the folder is the one of the time of loading
    np.testing.assert_array_equal(tensor.array(), DATA)
    monkeypatch.chdir(inner)
    (tensor,) = sabir.loads(outside, folder="").graph.initializers.values()
    with pytest.raises(ExternalDataError, match="must stay in the model's folder"):
        tensor.array()


def test_every_tensor_goes_through_the_one_door(tmp_path):
    """Wherever in a model a tensor stands, its data is found, and none is found outside the folder."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "m.onnx"
    sabir.save(everywhere(), path, external="w.bin")
    assert contents(sabir.load(path, verify=True)) == contents(everywhere())
    (tmp_path / "in" / "w.bin").rename(tmp_path / "w.bin")
    (tmp_path / "in" / "w.bin").symlink_to("../w.bin")
    for tensor, *_ in all_tensors(sabir.load(path)):
        with pytest.raises(ExternalDataError, match="leads out of the model's folder"):
            tensor.array()


SHRINKING = """
    import os, sys
    import sabir
    from sabir.base import SabirError
    folder, when, mapped = sys.argv[1:]
    model = sabir.load(folder + "/model.onnx", mapped=mapped == "mapped")
    tensor = next(iter(model.graph.initializers.values()))
    if when == "after":
        assert tensor.array()[-1] == 5
    os.truncate(folder + "/weights.bin", 4096)
    for ask in (
        lambda: tensor.array()[-1] == 5,
        lambda: sabir.evaluate(model, {})["y"][-1] == 5,
        lambda: sabir.save(model, folder + "/new.onnx", external="new.bin"),
        lambda: sabir.save(model, folder + "/new.onnx", external=False),
        lambda: sabir.dumps(model),
    ):
        try:
            ask()
            print("right")
        except SabirError as error:
            print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("size", "when", "mapped", "told"),
    [
        (1 << 20, "before", "mapped", "ExternalDataError"),
        (1 << 20, "after", "mapped", "right"),  # a file of this size is read at once
        (12 << 20, "before", "mapped", "ExternalDataError"),
        (12 << 20, "after", "mapped", "Error"),
        (12 << 20, "after", "read", "right"),
    ],
)
def test_a_data_file_that_shrinks_ends_no_process(tmp_path, size, when, mapped, told):
    data = np.full(size // 4, 5, np.float32)
    message = onnx.load(write_model(tmp_path, data=data), load_external_data=False)
    message.graph.initializer[0].dims[:] = data.shape
    del message.graph.output[0].type.tensor_type.shape.dim[:]
    message.graph.output[0].type.tensor_type.shape.dim.add()
    (tmp_path / "model.onnx").write_bytes(message.SerializeToString())
    code = [sys.executable, "-c", textwrap.dedent(SHRINKING), str(tmp_path), when, mapped]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code, which may end its process
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [told if told in line else line for line in done.stdout.split()] == [told] * 5


def test_a_model_from_bytes_has_no_folder(tmp_path):
    data = write_model(tmp_path).read_bytes()
    (tensor,) = sabir.loads(data).graph.initializers.values()
    with pytest.raises(ExternalDataError, match="pass the `folder`"):
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
