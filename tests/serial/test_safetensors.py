"""The safetensors format, in both directions, beside the package that defines it."""

import json
import math
import resource

import ml_dtypes
import numpy as np
import pytest
import safetensors
import safetensors.numpy

import sabir
from sabir.base import ExternalDataError, FileError, UnsupportedError
from sabir.elements import ELEMENTS, STRING
from sabir.ir import all_tensors
from sabir.serial import load_safetensors
from support.externals import contents, model_of

A = np.arange(6, dtype=np.float32).reshape(2, 3)


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def entry(dtype="F32", shape=(2, 3), offsets=(0, 24)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


# reading


def test_what_the_package_writes_is_read_in_place(tmp_path):
    arrays = {
        "a": A, "b": np.arange(5, dtype=np.int64), "c": np.array([True]), "d": np.zeros((0, 4), np.uint16),
        "e": A.astype(ml_dtypes.bfloat16), "f": (A + 1j).astype(np.complex64), "ü \n": A.astype(np.float16),
    }  # fmt: skip
    safetensors.numpy.save_file(arrays, tmp_path / "w", metadata={"format": "np"})
    read = load_safetensors(tmp_path / "w")
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name].array(), array)
        assert read[name].array().dtype == array.dtype
        assert not read[name].array().flags.owndata


def test_read_tensors_are_saved_in_models(tmp_path):
    safetensors.numpy.save_file({"a": A}, tmp_path / "w")
    model = sabir.Builder(21).model()
    model.graph.add_initializer("x", load_safetensors(tmp_path / "w")["a"])
    sabir.save(model, tmp_path / "m.onnx")
    assert contents(sabir.load(tmp_path / "m.onnx")) == [A.tolist()]


def test_no_tensors(tmp_path):
    assert load_safetensors(write(tmp_path / "w", {})) == {}
    assert load_safetensors(write(tmp_path / "w", {"__metadata__": {"a": "b"}})) == {}


@pytest.mark.parametrize(
    ("header", "size", "message"),
    [
        (b"", 0, "does not begin"),
        (b"[]", 0, "does not begin"),
        (b" {}", 0, "does not begin"),
        (b"{", 0, "not JSON"),
        (b"{} {}", 0, "not JSON"),
        (b'{"a": 1e999999}', 0, "must have"),
        (b'{"a": NaN}', 0, "NaN"),
        (b'{"\xff": {}}', 0, "not JSON"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", 0, "nested too deep|not JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", 0, "not JSON|must have"),
        (b"{" + b'"a":[],' * 2_100_000 + b'"b":1}', 0, "more than 4000000 items"),
        (b'{"a": {"dtype":"U8","shape":[],"data_offsets":[0,1]}, "a": 0}', 1, "'a' twice"),
        (b'{"\\ud800": {"dtype":"U8","shape":[],"data_offsets":[0,1]}}', 1, "not Unicode"),
        ({"a": 1}, 0, "must have"),
        ({"a": {"dtype": "F32", "shape": [1]}}, 4, "must have"),
        ({"a": entry(shape=[-1])}, 24, "must be sizes"),
        ({"a": entry(shape=[2.0])}, 24, "must be sizes"),
        ({"a": entry(shape=[True, 6])}, 24, "must be sizes"),
        ({"a": entry(shape=[2**63])}, 24, "must be sizes"),
        ({"a": entry(shape="23")}, 24, "must be sizes"),
        ({"a": entry(offsets=[0])}, 24, "must be sizes"),
        ({"a": entry(offsets=[24, 0])}, 24, "must be sizes"),
        ({"a": entry(offsets=[0, 24, 24])}, 24, "must be sizes"),
        ({"a": entry(shape=[2**62] * 4)}, 24, "does not fit"),
        ({"a": entry(shape=[5])}, 24, "does not fit"),
        ({"a": entry()}, 23, "take 24 bytes, and the file has 23"),
        ({"a": entry()}, 25, "take 24 bytes, and the file has 25"),
        ({"a": entry(offsets=[8, 32])}, 32, "leaves a gap"),
        ({"a": entry(), "b": entry()}, 24, "overlaps"),
        ({"a": entry(), "b": entry(offsets=[20, 44])}, 44, "overlaps"),
        ({"a": entry("F4", [3], [0, 2])}, 2, "does not fill whole bytes"),
        ({"__metadata__": {"a": 1}}, 0, "must contain strings"),
        ({"__metadata__": []}, 0, "must contain strings"),
        ({"__metadata__": {"onnx_types": "["}}, 0, "must be a JSON object"),
        ({"__metadata__": {"onnx_types": '{"a":1}'}}, 0, "must be a JSON object"),
        (
            {"__metadata__": {"onnx_types": '{"a":"string[3]"}'}, "a": entry("U8", [3], [0, 3])},
            3,
            "is invalid",
        ),
        (
            {"__metadata__": {"onnx_types": '{"a":"int4[-1]"}'}, "a": entry("U8", [3], [0, 3])},
            3,
            "is invalid",
        ),
        ({"__metadata__": {"onnx_types": '{"a":"int4[3]"}'}, "a": entry("I8", [3], [0, 3])}, 3, "is invalid"),
        (
            {"__metadata__": {"onnx_types": '{"a":"int4[3]"}'}, "a": entry("U8", [3], [0, 3])},
            3,
            "does not fit",
        ),
    ],
)
def test_what_breaks_the_format_is_refused(tmp_path, header, size, message):
    path = write(tmp_path / "w", header, bytes(size))
    with pytest.raises(ExternalDataError, match=message) as caught:
        load_safetensors(path)
    assert len(str(caught.value)) < 1000
    assert str(path) in str(caught.value)
    if header != b" {}" and "onnx_types" not in str(header)[:200]:  # the package takes these
        with pytest.raises(safetensors.SafetensorError):
            safetensors.deserialize(path.read_bytes())


@pytest.mark.parametrize(("dtype", "rank"), [("I4", 1), ("", 1), (None, 1), (["F32"], 1), ("U8", 65)])
def test_what_onnx_lacks_is_told(tmp_path, dtype, rank):
    path = write(tmp_path / "w", {"a": entry(dtype, [1] * rank, [0, 1])}, b"0")
    with pytest.raises(UnsupportedError, match="tensor 'a'"):
        load_safetensors(path)


@pytest.mark.parametrize("data", [b"", b"\0" * 7, b"\xff" * 8, b"\x03" + b"\0" * 7 + b"{}", b"\0" * 8])
def test_what_is_too_short_is_refused(tmp_path, data):
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(ExternalDataError, match="not safetensors"):
        load_safetensors(tmp_path / "w")


def test_a_header_beyond_the_formats_bound_is_not_read(tmp_path):
    with (tmp_path / "w").open("wb") as file:
        file.write((100_000_001).to_bytes(8, "little"))
        file.truncate(200_000_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ExternalDataError, match="a header of 100000001 bytes"):
        load_safetensors(tmp_path / "w")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="no such file"):
        load_safetensors(tmp_path / "w")


# writing


def test_the_package_reads_what_is_saved(tmp_path):
    arrays = {
        "w8": np.arange(9, dtype=np.int8),
        "w32": A,
        "w64": np.arange(3.0),
        "half": A.astype(np.float16),
    }
    model = sabir.Builder(21).model()
    for name, array in arrays.items():
        model.graph.add_initializer(name, array)
    sabir.save(model, tmp_path / "m.onnx", external="w.safetensors", threshold=0, checksum=True)
    read = safetensors.numpy.load_file(tmp_path / "w.safetensors")
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    again = sabir.load(tmp_path / "m.onnx", verify=True)
    assert contents(again) == [array.tolist() for array in arrays.values()]
    offsets = [int(t.entries["offset"]) for t, *_ in all_tensors(again)]
    assert min(offsets) == 4096
    widths = [array.itemsize for array in arrays.values()]
    assert all(offset % width == 0 for offset, width in zip(offsets, widths, strict=True))


@pytest.mark.parametrize("kind", [kind for kind in ELEMENTS if kind is not STRING], ids=str)
@pytest.mark.parametrize("shape", [(3, 5), (4, 4), (), (0, 2)])
def test_every_element_type_comes_back(tmp_path, kind, shape):
    array = np.zeros(shape, kind.dtype)
    if kind.name != "float8e8m0" and array.size:
        array.flat[-1] = 1
    model = sabir.Builder(21).model()
    model.graph.add_initializer("w", array)
    sabir.save(model, tmp_path / "m.onnx", external="w.safetensors", threshold=1)
    (read,) = [t for t, *_ in all_tensors(sabir.load(tmp_path / "m.onnx", verify=True))]
    assert read.array().tobytes() == array.tobytes()
    if not array.size:
        assert not (tmp_path / "w.safetensors").exists()
        return
    ((_, told),) = safetensors.deserialize((tmp_path / "w.safetensors").read_bytes())
    (again,) = load_safetensors(tmp_path / "w.safetensors").values()
    assert (again.element, again.shape) == (kind, shape)
    assert again.array().tobytes() == array.tobytes()
    plain = math.prod(shape) * kind.bits % 8 == 0 and kind.name not in {
        "complex128",
        "int4",
        "uint4",
        "int2",
        "uint2",
    }
    assert (tuple(told["shape"]) == shape and (told["dtype"] != "U8" or kind.name == "uint8")) == plain


def test_names_are_made_unique(tmp_path):
    model = model_of(a=A, b=A + 1, c=A + 2, d=A + 3)
    for value, name in zip(model.graph.initializers, ["x", "x", "__metadata__", ""], strict=True):
        value.name = name
    sabir.save(model, tmp_path / "m.onnx", external="w.safetensors", threshold=0)
    read = safetensors.numpy.load_file(tmp_path / "w.safetensors")
    assert {name: array.flat[0] for name, array in read.items()} == {
        "x": 0,
        "x_1": 1,
        "tensor": 2,
        "tensor_1": 3,
    }
    assert len(contents(sabir.load(tmp_path / "m.onnx", verify=True))) == 4


def test_shards_and_single_files_are_safetensors_too(tmp_path):
    model = model_of(a=A, b=A + 1)
    for location, count in (("w.safetensors", 2), ("{name}.safetensors", 2)):
        folder = tmp_path / location
        folder.mkdir()
        options = {"shard": 24} if location[0] == "w" else {}
        sabir.save(model, folder / "m.onnx", external=location, threshold=0, align=1, **options)
        files = list(folder.glob("*.safetensors"))
        assert len(files) == count
        read = {k: v.array().tolist() for path in files for k, v in load_safetensors(path).items()}
        assert read == {"a": A.tolist(), "b": (A + 1).tolist()}
        assert contents(sabir.load(folder / "m.onnx", verify=True)) == contents(model)
