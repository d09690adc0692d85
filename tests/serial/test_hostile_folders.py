"""Folders, files and paths that were made to harm a load or a save, and legal ones that look as odd."""

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.base import ExternalDataError, FileError, WireError
from sabir.files import NewFile, OpenFolder
from sabir.proto import ModelProto
from sabir.serial import load_safetensors
from support.externals import contents, model_of

A = np.arange(1000, dtype=np.float32)
HUGE = 1 << 40


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "m.onnx"
    sabir.save(model_of(a=A), made, external="w.bin")
    return made


def bounded(code, *arguments, room=2 << 30):
    """Run some code in a process of its own, with so much address space; return what it printed."""
    head = f"import resource, sys\nresource.setrlimit(resource.RLIMIT_AS, ({room}, {room}))\n"
    command = [sys.executable, "-c", head + textwrap.dedent(code), *map(str, arguments)]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own code, whose memory is bounded
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


# paths


class BytesPath:
    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


def test_a_path_may_be_given_as_bytes(path, tmp_path):
    assert contents(sabir.load(BytesPath(path))) == [A.tolist()]
    assert contents(sabir.loads(path.read_bytes(), folder=os.fsencode(tmp_path))) == [A.tolist()]
    sabir.save(sabir.load(path), os.fsencode(tmp_path / "n.onnx"), external="v.safetensors")
    assert contents(sabir.load(tmp_path / "n.onnx")) == [A.tolist()]
    assert list(load_safetensors(os.fsencode(tmp_path / "v.safetensors"))) == ["a"]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_what_can_be_no_path_is_a_typed_error(path, name):
    model, data = sabir.load(path), path.read_bytes()
    for call in (
        lambda: sabir.load(name),
        lambda: sabir.loads(data, folder=name),
        lambda: sabir.save(model, name),
        lambda: sabir.save(model, name, external="v"),
        lambda: sabir.save(model, path, external=name),
    ):
        with pytest.raises((FileError, ExternalDataError)):
            call()


def test_a_present_folder_that_is_gone_is_a_typed_error(path, tmp_path, monkeypatch):
    model, data = sabir.load(path), path.read_bytes()
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for call in (
        lambda: sabir.load("m.onnx"),
        lambda: sabir.loads(data, folder=""),
        lambda: sabir.save(model, "n.onnx"),
        lambda: sabir.save(model, "n.onnx", external="v"),
    ):
        with pytest.raises(FileError, match="there is no"):
            call()
    assert contents(sabir.load(path)) == [A.tolist()]


def test_a_model_in_protobuf_opened_as_text_is_a_typed_error(tmp_path):
    sabir.save(model_of(a=A), tmp_path / "m.onnx")
    (tmp_path / "m.onnx").write_bytes((tmp_path / "m.onnx").read_bytes() + b"\xff")
    with (tmp_path / "m.onnx").open(encoding="utf-8") as file, pytest.raises(FileError, match="mode 'rb'"):
        sabir.load(file)


def test_a_link_to_the_model_from_elsewhere_finds_its_data(path, tmp_path):
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "b.onnx").symlink_to("../m.onnx")
    (tmp_path / "links" / "a.onnx").symlink_to("b.onnx")
    model = sabir.load(tmp_path / "links" / "a.onnx", verify=True)
    assert contents(model) == [A.tolist()]
    sabir.save(model, tmp_path / "links" / "c.onnx")
    path.unlink()
    (tmp_path / "w.bin").unlink()
    assert contents(sabir.load(tmp_path / "links" / "c.onnx")) == [A.tolist()]


@pytest.mark.parametrize("holds", [True, False])
def test_what_the_folder_of_the_path_has_comes_first(path, tmp_path, monkeypatch, holds):
    monkeypatch.setattr("sabir.files._folders._CAN_KEEP_OPEN", holds)
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "m.onnx").symlink_to(path)
    assert contents(sabir.load(tmp_path / "links" / "m.onnx")) == [A.tolist()]
    (tmp_path / "links" / "w.bin").write_bytes((A + 1).tobytes())
    assert contents(sabir.load(tmp_path / "links" / "m.onnx")) == [(A + 1).tolist()]


def test_a_model_that_becomes_a_link_after_the_load_opens_no_other_folder(path, tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "w.bin").write_bytes((A + 1).tobytes())
    (tmp_path / "w.bin").unlink()
    model = sabir.load(path)
    path.unlink()
    path.symlink_to("secret/w.bin")
    (tmp_path / "w.bin").symlink_to("secret/w.bin")
    folder = next(iter(model.graph.initializers.values())).opener
    assert folder.real == tmp_path.resolve()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can become a user without rights")
@pytest.mark.usefixtures("path")
def test_a_folder_whose_entries_may_not_be_listed(tmp_path):
    code = """
        import os, sys
        import sabir
        def last():
            model = sabir.load(sys.argv[1] + "/m.onnx")
            return next(iter(model.graph.initializers.values())).array()[-1]
        last()  # imports what it takes, which that user may not be allowed to read
        os.chmod(sys.argv[1], 0o311)
        os.setuid(65534)
        print(last())
    """
    for folder in itertools.takewhile(lambda f: f != Path(tempfile.gettempdir()), tmp_path.parents):
        folder.chmod(0o755)
    assert bounded(code, tmp_path)[0] == "999.0"


# sizes


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.usefixtures("path")
def test_a_little_of_a_file_that_is_larger_than_memory(tmp_path, mapped):
    os.truncate(tmp_path / "w.bin", HUGE)
    code = """
        import sabir
        def most(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = most()
        folder, mapped = sys.argv[1:]
        model = sabir.load(folder + "/m.onnx", mapped=mapped == "True", verify=True)
        print(next(iter(model.graph.initializers.values())).array()[-1])
        print(sabir.evaluate(model, {})["y"][-1])
        sabir.save(model, folder + "/packed.onnx", external=False)
        sabir.save(model, folder + "/m.onnx", external="w.bin")
        print(next(iter(sabir.load(folder + "/packed.onnx").graph.initializers.values())).array()[-1])
        print(next(iter(model.graph.initializers.values())).array()[-1])
        print(most() - before < 200_000)
    """
    assert bounded(code, tmp_path, mapped)[:5] == ["999.0"] * 4 + ["True"]
    assert (tmp_path / "w.bin").stat().st_size == 4000


def test_the_digest_of_a_file_of_holes_is_a_limit(path, tmp_path):
    message = ModelProto.FromString(path.read_bytes())
    message.graph.initializer[0].external_data.add(key="checksum", value="0" * 40)
    path.write_bytes(message.SerializeToString())
    os.truncate(tmp_path / "w.bin", HUGE)
    with pytest.raises(sabir.LimitError, match="constant_bytes"):
        sabir.load(path, verify=True)
    os.truncate(tmp_path / "w.bin", 1 << 28)
    with pytest.raises(sabir.LimitError, match="time is up"):
        sabir.load(path, verify=True, limits=sabir.Limits(seconds=0))


def test_one_digest_for_all_names_of_a_file(path, tmp_path, monkeypatch):
    message = ModelProto.FromString(path.read_bytes())
    tensor = message.graph.initializer[0]
    tensor.external_data.add(key="checksum", value="0" * 40)
    for number in range(20):
        message.graph.initializer.append(tensor)
        message.graph.initializer[-1].name = f"t{number}"
        message.graph.initializer[-1].external_data[0].value = "./" * number + "w.bin"
    asked = []
    monkeypatch.setattr("sabir.serial.Folder.digest", lambda _, location: asked.append(location) or "0" * 40)
    sabir.loads(message.SerializeToString(), folder=tmp_path, verify=True)
    assert len(asked) == 1


@pytest.mark.parametrize("way", ["dumps", "onnx", "json", "onnxtxt", "external"])
def test_very_many_tensors_that_read_the_same_bytes(path, tmp_path, way):
    message = ModelProto.FromString(path.read_bytes())
    tensor = message.graph.initializer.pop()
    for number in range(1200):
        made = message.graph.initializer.add()
        made.CopyFrom(tensor)
        made.name, made.dims[:] = f"t{number}", [1 << 22]
        made.external_data[1].value, made.external_data[2].value = str(4 * number), str(1 << 24)
    path.write_bytes(message.SerializeToString())
    os.truncate(tmp_path / "w.bin", 1 << 25)
    (tmp_path / "out").mkdir()
    model = sabir.load(path)
    out = tmp_path / "out" / f"m.{way if way in {'json', 'onnxtxt'} else 'onnx'}"
    call = {"dumps": lambda: sabir.dumps(model), "external": lambda: sabir.save(model, out, external="v")}
    with pytest.raises(sabir.LimitError, match="constant_bytes"):
        call.get(way, lambda: sabir.save(model, out))()
    assert not list((tmp_path / "out").iterdir())
    assert len(sabir.dumps(model, format="json")) < 1 << 20  # which only says where the data lies


def test_a_model_for_which_there_is_no_memory_is_a_typed_error(tmp_path):
    for form in ("onnx", "json", "textproto", "onnxtxt"):
        (tmp_path / f"m.{form}").write_bytes(b" ")
        os.truncate(tmp_path / f"m.{form}", 3 << 30)
    code = """
        import sabir
        for form in ("onnx", "json", "textproto", "onnxtxt"):
            for mapped in (True, False):
                try:
                    sabir.load(sys.argv[1] + "/m." + form, mapped=mapped)
                except sabir.SabirError as error:
                    print("typed")
    """
    assert bounded(code, tmp_path)[:8] == ["typed"] * 8


def test_a_text_for_which_the_data_is_too_large(path, tmp_path):
    message = ModelProto.FromString(path.read_bytes())
    tensor = message.graph.initializer[0]
    tensor.dims[:], tensor.external_data[2].value = [1 << 29], str(1 << 31)
    path.write_bytes(message.SerializeToString())
    os.truncate(tmp_path / "w.bin", 1 << 31)
    (tmp_path / "out").mkdir()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(WireError, match="at most 2 GiB"):
        sabir.save(sabir.load(path), tmp_path / "out" / "m.json")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_a_safetensors_header_is_not_filled_up_without_end(tmp_path):
    with pytest.raises(sabir.UnsupportedError, match="a safetensors header has at most"):
        sabir.save(model_of(a=A), tmp_path / "m.onnx", external="w.safetensors", align=1 << 40)


# limits


def nested(depth):
    message = ModelProto(ir_version=10)
    graph = message.graph
    for _ in range(depth):
        graph = graph.node.add(op_type="If").attribute.add(name="then_branch", type=5).g
    graph.name = "inner"
    return message.SerializeToString()


def test_loads_keep_to_limits(tmp_path):
    (tmp_path / "m.onnx").write_bytes(nested(10))
    sabir.save(sabir.load(tmp_path / "m.onnx"), tmp_path / "m.json")
    for name in ("m.onnx", "m.json"):
        data = (tmp_path / name).read_bytes()
        with (tmp_path / name).open("rb") as file:
            for source in (tmp_path / name, data, file):
                with pytest.raises(sabir.LimitError, match="nested too deep; the limit is 10: raise it"):
                    sabir.load(source, limits=sabir.Limits(depth=10))
        with pytest.raises(sabir.LimitError, match="the time is up"):
            sabir.loads(data, limits=sabir.Limits(seconds=0))
        sabir.loads(data, limits=sabir.Limits(depth=11, seconds=60))
    with pytest.raises(sabir.LimitError, match="nested too deep; the limit is 32"):
        sabir.loads(nested(32))
    with pytest.raises(sabir.SabirError):
        sabir.loads(nested(60), limits=sabir.Limits(depth=None))


# what is there already


def test_data_does_not_take_the_place_of_another_model(path, tmp_path):
    sabir.save(model_of(b=A), tmp_path / "other.onnx")
    with pytest.raises(FileError, match="this is a model; give the data another name"):
        sabir.save(model_of(a=A), path, external="other.onnx")
    assert contents(sabir.load(tmp_path / "other.onnx")) == [A.tolist()]


def test_a_text_that_names_no_data_is_not_read_as_a_model(path, tmp_path, monkeypatch):
    (tmp_path / "tokens.json").write_text('{"vocabulary": ["loc", "ation"]}')
    asked = []
    real = sabir.load
    monkeypatch.setattr("sabir.serial._saving.load_by_any_name", lambda p: asked.append(p.name) or real(p))
    sabir.save(model_of(a=A + 1), path, external="w.bin")
    assert set(asked) == {"m.onnx"}


def test_the_type_of_an_attribute_may_be_said_to_be_undefined():
    message = ModelProto(ir_version=10)
    made = message.graph.node.add(op_type="Constant", output=["y"]).attribute.add(name="value", type=0)
    made.t.dims.append(0)
    made.t.data_type, made.t.raw_data = 1, b""
    data = message.SerializeToString()
    for form in ("protobuf", "json", "textproto", "onnxtxt"):
        again = sabir.loads(sabir.dumps(sabir.loads(data), format=form), format=form)
        assert ModelProto.FromString(sabir.dumps(again)) == message


# interrupts


class Stopped(KeyboardInterrupt):
    """An interrupt that comes at a chosen step."""


def stopped_at(step, save):
    """Save, and interrupt it at an instruction of the modules that write files; return whether it got there."""
    count = 0

    def trace(frame, _event, _argument):
        if not frame.f_code.co_filename.endswith(("_saving.py", "_folders.py", "_data_files.py")):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return instruction

    def instruction(_frame, event, _argument):
        nonlocal count
        count += event == "opcode"
        if count == step:
            sys.settrace(None)
            raise Stopped
        return instruction

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        save()
    except Stopped:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({}, {"external": "w"}),
        ({"external": "w"}, {"external": "w"}),
        ({"external": "w"}, {"external": "d/{name}", "checksum": True}),
        ({"external": "w"}, {"external": False}),
    ],
)
def test_an_interrupt_between_any_two_steps_destroys_nothing(tmp_path, old, new):
    before, after = model_of(a=A, b=A), model_of(a=A + 1, b=A + 2)
    sabir.save(before, tmp_path / "m.onnx", **old)
    step, reached = 1, True
    while reached:
        folder = tmp_path / str(step)
        folder.mkdir()
        sabir.save(before, folder / "m.onnx", **old)
        there = {p.name for p in folder.iterdir()}
        reached = stopped_at(step, lambda to=folder / "m.onnx": sabir.save(after, to, **new))
        found = contents(sabir.load(folder / "m.onnx", verify=True))
        is_old = found == contents(before)
        assert is_old or found == contents(after), step
        left = {p.name for p in folder.iterdir()} - there
        assert not [name for name in left if name.endswith(".tmp") or is_old], step
        step += 29
    assert step > 100


def test_a_file_that_took_its_name_is_not_discarded(tmp_path):
    (tmp_path / "other").write_bytes(b"other")
    with OpenFolder(tmp_path) as folder:
        new = NewFile(folder, "f")
        new.write([b"new"])
        new.take("f")
        new.discard()
        new.withdraw("other")
        assert {p.name for p in tmp_path.iterdir()} == {"f", "other"}
        new.withdraw("f")
        assert {p.name for p in tmp_path.iterdir()} == {"other"}
