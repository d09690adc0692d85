"""Data moved out of a model: where it goes, what stays, and what is there when a save is cut short."""

import hashlib
import os
import re
import stat
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import onnx  # ruff: ignore[banned-api]  another reader
import pytest

import sabir
from sabir.base import ExternalDataError, FileError
from sabir.files import OpenFolder
from sabir.ir import ArrayTensor, ExternalTensor, WireTensor, all_tensors
from sabir.proto import TensorProto
from support.externals import contents, everywhere, locations, message_in, model_of, tensor_messages

A = np.arange(1000, dtype=np.float32)
B = np.arange(3000, dtype=np.float32) + 0.5


def files_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def ranges(path):
    """The offset and length of each external tensor in a model file."""
    found = [{e.key: e.value for e in t.external_data} for t in tensor_messages(message_in(path))]
    return [(int(e["offset"]), int(e["length"])) for e in found if e]


# where data goes


def test_data_goes_to_one_file_at_multiples_of_a_page(tmp_path):
    path = tmp_path / "m.onnx"
    model = model_of(a=A, b=B, small=A[:10])
    sabir.save(model, path, external="weights.data")
    assert files_in(tmp_path) == ["m.onnx", "weights.data"]
    assert ranges(path) == [(0, 4000), (4096, 12000)]
    data = (tmp_path / "weights.data").read_bytes()
    assert data == A.tobytes() + bytes(96) + B.tobytes()
    again = sabir.load(path, verify=True)
    assert contents(again) == contents(model)
    assert [type(t) for t, *_ in all_tensors(again)] == [ExternalTensor, ExternalTensor, WireTensor]


def test_others_read_it(tmp_path):
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", external="weights.data", checksum=True)
    onnx.checker.check_model(tmp_path / "m.onnx")
    read = onnx.load(tmp_path / "m.onnx").graph.initializer
    for tensor, array in zip(read, (A, B), strict=True):
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(tensor), array)


@pytest.mark.parametrize(("align", "offsets"), [(1, [0, 4000]), (64, [0, 4032]), (65536, [0, 65536])])
def test_the_alignment_is_asked_for(tmp_path, align, offsets):
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", external="w", align=align)
    assert [start for start, _ in ranges(tmp_path / "m.onnx")] == offsets


@pytest.mark.parametrize(("threshold", "count"), [(0, 3), (41, 2), (4000, 2), (4001, 1), (12001, 0)])
def test_small_tensors_stay_in_the_model(tmp_path, threshold, count):
    model = model_of(a=A, b=B, small=A[:10], empty=A[:0])
    sabir.save(model, tmp_path / "m.onnx", external="w", threshold=threshold)
    again = sabir.load(tmp_path / "m.onnx")
    assert len(locations(again)) == count
    assert (tmp_path / "w").exists() == bool(count)
    assert contents(again) == contents(model)


def test_shards_have_a_size(tmp_path):
    model = model_of(**{f"t{i}": A + i for i in range(5)}, large=B)
    sabir.save(model, tmp_path / "m.onnx", external="w.data", shard=9000, align=1)
    names = [f"w-{i:05}-of-00004.data" for i in (1, 2, 3, 4)]
    assert files_in(tmp_path) == ["m.onnx", *names]
    assert [(tmp_path / name).stat().st_size for name in names] == [8000, 8000, 4000, 12000]
    assert contents(sabir.load(tmp_path / "m.onnx", verify=True)) == contents(model)


def test_what_fits_one_shard_has_the_plain_name(tmp_path):
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", external="w.data", shard=10**9)
    assert files_in(tmp_path) == ["m.onnx", "w.data"]


def test_each_tensor_has_a_file_with_a_name_for_any_system(tmp_path):
    names = ["a", "A", "a/../b", "con", "", "ü", "x" * 300, "..", "a_1", "-", "d:e", "s p"]
    model = model_of(**{f"t{i}": A + i for i in range(len(names))})
    for value, name in zip(model.graph.initializers, names, strict=True):
        value.name = name
    sabir.save(model, tmp_path / "m.onnx", external="w/{name}.bin")  # ruff: ignore[missing-f-string-syntax]  our own pattern
    made = [
        name.removeprefix("w/").removesuffix(".bin") for name in locations(sabir.load(tmp_path / "m.onnx"))
    ]
    assert len({name.casefold() for name in made}) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,110}", name) for name in made)
    assert made[0] == "a"
    assert made[2] == "a_.._b"
    assert "con" not in made
    assert contents(sabir.load(tmp_path / "m.onnx", verify=True)) == contents(model)


def test_every_tensor_of_a_model_is_moved(tmp_path):
    model = everywhere()
    path = tmp_path / "m.onnx"
    sabir.save(model, path, external="w")
    messages = list(tensor_messages(message_in(path)))
    assert len(messages) == len(contents(model)) == 24
    assert all(m.data_location == TensorProto.EXTERNAL and not m.raw_data for m in messages)
    again = sabir.load(path, verify=True)
    assert contents(again) == contents(model)
    (tmp_path / "other").mkdir()
    sabir.save(again, tmp_path / "other" / "m.onnx")  # and all of it is taken along
    (tmp_path / "w").unlink()
    messages = list(tensor_messages(message_in(tmp_path / "other" / "m.onnx")))
    assert all(m.data_location == TensorProto.DEFAULT for m in messages)
    assert contents(sabir.load(tmp_path / "other" / "m.onnx")) == contents(model)


def test_tensors_that_are_one_share_their_data(tmp_path):
    model = model_of(a=A, b=B)
    first, second = model.graph.initializers
    model.graph.initializers[second] = model.graph.initializers[first]
    sabir.save(model, tmp_path / "m.onnx", external="w")
    assert ranges(tmp_path / "m.onnx") == [(0, 4000), (0, 4000)]
    sabir.save(sabir.load(tmp_path / "m.onnx"), tmp_path / "n.onnx", external="v")
    assert (tmp_path / "v").stat().st_size == 4000  # and go on doing so


def test_strings_and_malformed_data_stay_inside(tmp_path):
    model = model_of(a=A, b=B)
    first, second = model.graph.initializers
    texts = np.array(["x" * 100] * 100, object)
    bad = [
        TensorProto(data_type=1, dims=[1000], raw_data=bytes(3999)),
        TensorProto(data_type=1, dims=[-1000], raw_data=bytes(4000)),
        TensorProto(data_type=999, dims=[1000], raw_data=bytes(4000)),
        TensorProto(data_type=1, dims=[1000], raw_data=bytes(4000), float_data=[1]),
        TensorProto(data_type=1, dims=[1000], float_data=[1] * 999),
        TensorProto(data_type=4, dims=[1000], int32_data=[70000] * 1000),
        TensorProto(data_type=1, dims=[1000], int64_data=[1] * 1000),
    ]
    for message in bad:
        model.graph.initializers[first] = WireTensor(message)
        model.graph.initializers[second] = ArrayTensor(texts)
        sabir.save(model, tmp_path / "m.onnx", external="w")
        one, two = message_in(tmp_path / "m.onnx").graph.initializer
        one.ClearField("name")
        assert one == message
        assert two.string_data[99] == b"x" * 100
        assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("number", "field", "values", "raw"),
    [
        (1, "float_data", [1.5] * 2, np.float32([1.5, 1.5]).tobytes()),
        (7, "int64_data", [-1, 2], np.int64([-1, 2]).tobytes()),
        (10, "int32_data", [0x3C00] * 2, np.float16([1, 1]).tobytes()),
        (22, "int32_data", [0x21], b"\x21"),
    ],
)
def test_values_of_typed_fields_are_moved_as_raw_bytes(tmp_path, number, field, values, raw):
    model = model_of(a=A)
    message = TensorProto(data_type=number, dims=[2], doc_string="kept", **{field: values})
    message.external_data.add(key="mine", value="kept too")
    (value,) = model.graph.initializers
    model.graph.initializers[value] = WireTensor(message)
    sabir.save(model, tmp_path / "m.onnx", external="w", threshold=1)
    assert (tmp_path / "w").read_bytes() == raw
    (made,) = message_in(tmp_path / "m.onnx").graph.initializer
    assert made.doc_string == "kept"
    assert not getattr(made, field)
    assert made.external_data[-1].key == "mine"


def test_digests_are_those_of_the_files(tmp_path):
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", external="{name}", checksum=True)
    for tensor, *_ in all_tensors(sabir.load(tmp_path / "m.onnx", verify=True)):
        data = (tmp_path / tensor.entries["location"]).read_bytes()
        assert tensor.entries["checksum"] == hashlib.sha1(data, usedforsecurity=False).hexdigest()


def test_progress_is_told(tmp_path):
    told = []
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", external="w", progress=lambda *n: told.append(n))
    assert told[-1] == (16096, 16096)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    told.clear()
    sabir.save(model_of(a=A, b=B), tmp_path / "m.onnx", progress=lambda *n: told.append(n))
    assert told[-1] == ((tmp_path / "m.onnx").stat().st_size,) * 2


def test_the_model_object_is_not_changed(tmp_path):
    model = sabir.load(saved(tmp_path, a=A, b=B))
    before = sabir.dumps(model)
    sabir.save(model, tmp_path / "n.onnx", external="w")
    assert sabir.dumps(model) == before
    assert model.path == tmp_path / "m.onnx"


def saved(folder, name="m.onnx", data=None, **arrays):
    sabir.save(model_of(**arrays), folder / name, external=data)
    return folder / name


# containment


@pytest.mark.parametrize(
    "location", ["", "../w", "/w", "a/../../w", "C:w", "a\\b", "w\0", "..", "../{name}", "/{name}"]
)
def test_data_never_leaves_the_folder(tmp_path, location):
    (tmp_path / "inner").mkdir()
    with pytest.raises(ExternalDataError, match="the location"):
        sabir.save(model_of(a=A), tmp_path / "inner" / "m.onnx", external=location)
    assert files_in(tmp_path) == []


def test_a_folder_that_is_a_link_is_not_gone_through(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "model" / "inner").symlink_to("../secret")
    with pytest.raises(FileError):
        sabir.save(model_of(a=A), tmp_path / "model" / "m.onnx", external="inner/w")
    assert not any((tmp_path / "secret").iterdir())
    assert [p.name for p in (tmp_path / "model").iterdir()] == ["inner"]


def test_a_link_with_the_wanted_name_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "model" / "w").symlink_to("../secret")
    sabir.save(model_of(a=A), tmp_path / "model" / "m.onnx", external="w")
    assert (tmp_path / "secret").read_bytes() == b"secret"
    assert (tmp_path / "model" / "w").read_bytes() == A.tobytes()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_replaced(tmp_path, make):
    make(tmp_path / "w")
    with pytest.raises(FileError, match="not a regular file"):
        sabir.save(model_of(a=A), tmp_path / "m.onnx", external="w")
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_data_cannot_go_into_the_model_file(tmp_path):
    for location in ("m.onnx", "./m.onnx"):
        with pytest.raises(FileError, match="is the model file itself"):
            sabir.save(model_of(a=A), tmp_path / "m.onnx", external=location)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("location", ["data/", "data/.", ".", "w.data/", "{name}/"])
def test_data_cannot_go_into_what_is_named_as_a_folder(tmp_path, location):
    with pytest.raises(ExternalDataError, match="must name a file"):
        sabir.save(model_of(a=A), tmp_path / "m.onnx", external=location)
    assert files_in(tmp_path) == []


@pytest.mark.parametrize("numbers", [{"threshold": -1}, {"align": 0}, {"shard": 0}])
def test_senseless_numbers_are_refused(tmp_path, numbers):
    with pytest.raises(ValueError, match="must be at least"):
        sabir.save(model_of(a=A), tmp_path / "m.onnx", external="w", **numbers)


# what is there already


def test_data_is_never_appended(tmp_path):
    (tmp_path / "w").write_bytes(b"junk" * 10000)
    for _ in range(3):
        path = saved(tmp_path, data="w", a=A, b=B)
        assert files_in(tmp_path) == ["m.onnx", "w"]
        assert (tmp_path / "w").stat().st_size == 16096
        assert contents(sabir.load(path, verify=True)) == [A.tolist(), B.tolist()]


@pytest.mark.parametrize("options", [{"align": 1}, {"shard": 5000}, {"threshold": 5000}, {"checksum": True}])
def test_a_model_is_saved_over_the_files_that_it_is_read_from(tmp_path, options):
    path = saved(tmp_path, data="w", a=A, b=B)
    model = sabir.load(path)
    sabir.save(model, path, external="w", **options)
    assert contents(sabir.load(path, verify=True)) == [A.tolist(), B.tolist()]
    assert contents(model) == [A.tolist(), B.tolist()]  # the object still reads the old files
    sabir.save(model, path)  # whose names other files have now
    assert contents(sabir.load(path, verify=True)) == [A.tolist(), B.tolist()]


def test_a_large_model_is_saved_over_the_files_that_are_mapped(tmp_path):
    large = np.arange(3 << 20, dtype=np.float32)
    path = saved(tmp_path, data="w", a=large, b=B)
    model = sabir.load(path)
    sabir.save(model, path, external="w", align=1)
    sabir.save(model, path, external="w", align=64)
    for read in (model, sabir.load(path, verify=True)):
        first, second = read.graph.initializers.values()
        np.testing.assert_array_equal(first.array(), large)
        np.testing.assert_array_equal(second.array(), B)
    assert files_in(tmp_path) == ["m.onnx", "w"]


@pytest.mark.parametrize("name", ["a.onnx", "a.json", "a.onnxtxt"])
def test_the_data_of_another_model_is_not_replaced(tmp_path, name):
    path = saved(tmp_path, name, data="w", a=A)
    for model in (model_of(b=B), sabir.load(path)):
        with pytest.raises(FileError, match=f"{name} uses the data file w; give the data another name"):
            sabir.save(model, tmp_path / "b.onnx", external="w")
    assert files_in(tmp_path) == [name, "w"]
    assert contents(sabir.load(path, verify=True)) == [A.tolist()]


def test_permissions_of_replaced_data_stay(tmp_path):
    path = saved(tmp_path, data="w", a=A)
    (tmp_path / "w").chmod(0o640)
    sabir.save(model_of(a=A), path, external="w")
    assert stat.S_IMODE((tmp_path / "w").stat().st_mode) == 0o640


# interrupted


class Killed(BaseException):
    """What ends a save without a chance to clean up."""


def saved_until(monkeypatch, step, save):
    """Save, but end at the given change to a folder, after which none is made; return whether it was reached."""
    changes = 0
    for name in ("open", "rename", "link", "remove", "make", "remove_folder"):
        real = getattr(OpenFolder, name)

        def change(self, *arguments, real=real, name=name):
            nonlocal changes
            if name == "open" and not arguments[1] & os.O_CREAT:
                return real(self, *arguments)
            changes += 1
            if changes > step:
                raise Killed
            return real(self, *arguments)

        monkeypatch.setattr(OpenFolder, name, change)
    try:
        save()
    except Killed:
        return True
    finally:
        monkeypatch.undo()
    return False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, {"external": "w"}),
        ({}, {"external": "w"}),
        ({"external": "w"}, {"external": "w"}),
        ({"external": "w"}, {}),
        ({"external": "w"}, {"external": "v"}),
        ({"external": "d/{name}"}, {"external": "d/{name}"}),
        ({"external": "a"}, {"external": "{name}"}),
        ({"external": "w.safetensors"}, {"external": "w.safetensors"}),
        ({"external": "w", "shard": 5000}, {"external": "w", "shard": 5000, "checksum": True}),
    ],
)
def test_at_any_moment_the_old_model_or_the_new_is_there(tmp_path, monkeypatch, old, new):
    before, after = model_of(a=A, b=B), model_of(a=A + 1, b=B + 1, c=A + 2)
    step, seen = 0, []
    while True:
        folder = tmp_path / str(step)
        folder.mkdir()
        if old is not None:
            sabir.save(before, folder / "m.onnx", **old)
        killed = saved_until(monkeypatch, step, partial(sabir.save, after, folder / "m.onnx", **new))
        if (folder / "m.onnx").exists():
            there = contents(sabir.load(folder / "m.onnx", verify=True))
            assert there == contents(before) or there == contents(after)
            seen.append(there == contents(after))
        else:
            assert old is None
        if not killed:
            break
        sabir.save(after, folder / "m.onnx", **new)  # what a kill left behind is in nobody's way
        assert contents(sabir.load(folder / "m.onnx", verify=True)) == contents(after)
        step += 1
    assert seen == sorted(seen)  # once the new one is there, it stays
    assert seen[-1]
    assert step >= 4 if "external" in new else step >= 2
    assert not [p for p in files_in(folder) if p.endswith(".tmp")]


@pytest.mark.parametrize("old", [{}, {"external": "w"}])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failed_save_leaves_the_old_files_and_no_litter(tmp_path, old, error):
    path = tmp_path / "m.onnx"
    sabir.save(model_of(a=A, b=B), path, **old)
    before = {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)}

    def fail(done, _total):
        if done > 5000:
            raise error

    with pytest.raises((KeyboardInterrupt, FileError)):
        sabir.save(model_of(a=A + 1, b=B), path, external="w", progress=fail)
    with pytest.raises((KeyboardInterrupt, FileError)):
        sabir.save(model_of(a=A + 1, b=B), path, external="x/{name}", progress=fail)
    assert {name: (tmp_path / name).read_bytes() for name in files_in(tmp_path)} == before
    assert not (tmp_path / "x").exists()


def test_where_a_folder_holds_no_links_the_data_keeps_another_name(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    path = saved(tmp_path, data="w.data", a=A)
    monkeypatch.setattr(OpenFolder, "link", refuse)
    saved(tmp_path, data="w.data", b=B)
    assert contents(sabir.load(path, verify=True)) == [B.tolist()]
    (location,) = locations(sabir.load(path))
    assert re.fullmatch(r"w\.[0-9a-f]{8}\.data", location)


@pytest.mark.parametrize("name", ["m", "m.odd"])
def test_the_data_of_the_old_model_is_in_use_whatever_the_name_of_that_model(tmp_path, monkeypatch, name):
    def refuse(*_):
        raise OSError(1, "Operation not permitted")

    path = tmp_path / name
    sabir.save(model_of(a=A), path, format="protobuf", external="w.data")
    monkeypatch.setattr(OpenFolder, "link", refuse)
    sabir.save(model_of(a=B), path, format="protobuf", external="w.data")
    (location,) = locations(sabir.load(path, format="protobuf"))
    assert re.fullmatch(r"w\.[0-9a-f]{8}\.data", location)
    assert (tmp_path / "w.data").read_bytes() == A.tobytes()


# moved


def test_missing_data_is_no_reason_to_write_half_a_model(tmp_path):
    path = saved(tmp_path, data="w", a=A)
    (tmp_path / "w").unlink()
    model = sabir.load(path)
    for options in ({"external": "v"}, {"external": False}):
        with pytest.raises(ExternalDataError, match="there is no such file"):
            sabir.save(model, tmp_path / "n.onnx", **options)
    assert files_in(tmp_path) == ["m.onnx"]
    sabir.save(model, tmp_path / "n.onnx")  # what is missing is missing here too
    assert locations(sabir.load(tmp_path / "n.onnx")) == ["w"]


def test_a_model_in_the_layout_of_a_cache_is_loaded_and_saved_anywhere(tmp_path):
    blobs, snapshot, other = tmp_path / "blobs", tmp_path / "snapshots" / "r", tmp_path / "other"
    for folder in (blobs, snapshot, other):
        folder.mkdir(parents=True)
    saved(blobs, data="model.onnx_data", a=A)
    for name, blob in (("m.onnx", "123"), ("model.onnx_data", "456")):
        (blobs / name).rename(blobs / blob)
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    model = sabir.load(snapshot / "m.onnx", verify=True)
    for path, outside in ((snapshot / "n.onnx", 0), (other / "n.onnx", 0), (snapshot / "m.onnx", 1)):
        sabir.save(model, path)
        again = sabir.load(path, verify=True)
        assert contents(again) == [A.tolist()]
        assert len(locations(again)) == outside


def test_all_data_is_taken_in_on_request(tmp_path):
    path = saved(tmp_path, data="w", a=A)
    sabir.save(sabir.load(path), path, external=False)
    assert locations(sabir.load(path)) == []
    assert contents(sabir.load(path)) == [A.tolist()]
    assert (tmp_path / "w").exists()  # it may be another model's


def test_a_model_that_came_from_no_file_keeps_its_references(tmp_path):
    data = saved(tmp_path, data="w", a=A).read_bytes()
    model = sabir.loads(data)
    assert sabir.dumps(model) == data
    (tmp_path / "other").mkdir()
    sabir.save(model, tmp_path / "other" / "m.onnx")
    assert (tmp_path / "other" / "m.onnx").read_bytes() == data
    with pytest.raises(ExternalDataError, match="pass the `folder`"):
        sabir.save(model, tmp_path / "other" / "m.onnx", external=False)


MOVING = """
    import resource, sys
    import sabir
    def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    path, external = sys.argv[1:]
    model = sabir.load(path)
    before = most()
    sabir.save(model, path, external=external or False)
    print(most() - before)
"""


def test_data_is_moved_in_little_memory(tmp_path):
    """Both ways, in processes whose memory is measured."""
    path = saved(tmp_path, data="w", a=A)
    size = 64 << 20
    message = message_in(path)
    (tensor,) = message.graph.initializer
    tensor.dims[:] = [size // 4]
    del tensor.external_data[1:]
    path.write_bytes(message.SerializeToString())
    os.truncate(tmp_path / "w", size)
    for external, sizes in (("", [1]), ("v", [0, 1]), ("w", [0, 1])):
        code = [sys.executable, "-c", textwrap.dedent(MOVING), str(path), external]
        # ruff: ignore[subprocess-without-shell-equals-true]  our own code; a fresh process, to see what it takes
        done = subprocess.run(code, capture_output=True, text=True, check=True)
        assert int(done.stdout) < 16_000  # KiB
        files = [path, tmp_path / external] if external else [path]
        assert [p.stat().st_size >> 26 for p in files] == sizes
