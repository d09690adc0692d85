"""`sabir unpack` and `sabir pack`."""

import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sabir
from sabir.cli._pack import _size
from support.externals import contents, locations, message_in, model_of

A = np.arange(1000, dtype=np.float32)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.onnx"
    sabir.save(model_of(a=A, b=A + 1, small=A[:9]), path)
    return path


def names(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_there_and_back(cli, model, tmp_path):
    before = model.read_bytes()
    code, out, err = cli("unpack", model, "-o", model, "--data", "weights.data")
    assert (code, err) == (0, "")
    assert re.search(r"m\.onnx +\d+ bytes\n +weights\.data +7\.9 KiB", out)
    assert names(tmp_path) == ["m.onnx", "weights.data"]
    assert contents(sabir.load(model, verify=True)) == [A.tolist(), (A + 1).tolist(), A[:9].tolist()]
    code, out, err = cli("pack", model, "-o", model)
    assert (code, err) == (0, "")
    assert "weights.data" not in out
    assert model.read_bytes() == before


def test_the_data_is_called_after_the_model(cli, model, tmp_path):
    assert cli("unpack", model, "-o", tmp_path / "n.onnx").code == 0
    assert names(tmp_path) == ["m.onnx", "n.data", "n.onnx"]


@pytest.mark.parametrize(
    ("options", "files"),
    [
        (["--data", "w/{name}.bin"], ["w/a.bin", "w/b.bin"]),
        (["--threshold", "0"], ["n.data"]),
        (["--threshold", "1MiB"], []),
        (["--shard", "5kB"], ["n-00001-of-00002.data", "n-00002-of-00002.data"]),
        (["--shard", "2GB"], ["n.data"]),
        (["--data", "w.safetensors"], ["w.safetensors"]),
        (["--align", "64KiB", "--checksum"], ["n.data"]),
    ],
)
def test_options(cli, model, tmp_path, options, files):
    path = tmp_path / "out" / "n.onnx"
    path.parent.mkdir()
    assert cli("unpack", model, "-o", path, *options).code == 0
    assert names(path.parent) == sorted(["n.onnx", *files])
    again = sabir.load(path, verify=True)
    assert contents(again) == contents(sabir.load(model))
    if "--align" in options:
        assert (path.parent / "n.data").stat().st_size == 65536 + 4000
        assert all("checksum" in t.entries for t in list(again.graph.initializers.values())[:2])
    assert len(locations(again)) == {"0": 3, "1MiB": 0}.get(options[1], 2)


@pytest.mark.parametrize(
    ("arrays", "options", "reason"),
    [
        (
            {"a": A, "b": A[:500]},
            ["--threshold", "1MiB"],
            (
                "the largest tensor, 'a', has 3.9 KiB (4,000 bytes), "
                "and --threshold keeps all below 1.0 MiB (1,048,576 bytes) in the model"
            ),
        ),
        ({"a": A[:3]}, [], "the largest tensor, 'a', has 12 bytes, and --threshold keeps all below 1.0 KiB"),
        (
            {"a": np.array(["x" * 5000], object)},
            [],
            "the model has no tensor whose data can be in another file",
        ),
        ({"a": A[:0]}, ["--threshold", "0"], "the model has no tensor whose data can be in another file"),
        ({}, [], "the model has no tensor whose data can be in another file"),
    ],
)
def test_why_no_data_file_is_written(cli, tmp_path, arrays, options, reason):
    sabir.save(model_of(**arrays), tmp_path / "m.onnx")
    code, out, err = cli("unpack", tmp_path / "m.onnx", "-o", tmp_path / "n.onnx", *options)
    assert (code, err) == (0, "")
    assert f"No data file: {reason}" in out
    assert names(tmp_path) == ["m.onnx", "n.onnx"]


def test_a_data_file_needs_no_reason(cli, model, tmp_path):
    assert "No data file" not in cli("unpack", model, "-o", tmp_path / "n.onnx").out


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("4096B", 4096),
        ("1KiB", 1024),
        ("1kB", 1000),
        ("1.5 GiB", 3 << 29),
        ("2GB", 2 * 10**9),
        ("1M", 10**6),
    ],
)
def test_sizes(text, size):
    assert _size(text) == size


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--threshold", "many"], 2, "'many' is not a size; write it as 4096, 64KiB or 2GB"),
        (["--threshold", "-1"], 2, "'-1' is not a size"),
        (["--align", "0"], 2, "at least 1"),
        (["--shard", "0"], 2, "at least 1"),
        (["--shard", "5kB", "--data", "{name}"], 2, "files that tensors share"),
        (["--data", "../w"], 2, "must stay in the model's folder"),
        (["--data", "n.onnx"], 2, "is the model file itself"),
    ],
)
def test_what_cannot_be_done_is_told(fails, model, tmp_path, options, code, message):
    assert message in fails("unpack", model, "-o", tmp_path / "n.onnx", *options, code=code)
    assert names(tmp_path) == ["m.onnx"]


def test_missing_data_is_told(cli, fails, model, tmp_path):
    cli("unpack", model, "-o", model)
    (tmp_path / "m.data").unlink()
    assert "there is no such file" in fails("pack", model, "-o", tmp_path / "n.onnx")
    assert names(tmp_path) == ["m.onnx"]


def test_an_output_is_asked_for(fails, model):
    assert "--output" in fails("pack", model, code=2)
    assert "--output" in fails("unpack", model, code=2)


def test_a_pipe_gets_no_bar(cli, model, tmp_path):
    assert not cli("unpack", model, "-o", tmp_path / "n.onnx").err


def test_an_interrupt_leaves_no_litter(tmp_path):
    """A model of a gigabyte that is a hole, stopped as soon as it is being written."""
    path, data = tmp_path / "m.onnx", tmp_path / "w"
    sabir.save(model_of(a=np.zeros(1 << 18, np.float32)), path, external="w")
    proto = sabir.proto.ModelProto.FromString(path.read_bytes())
    (tensor,) = proto.graph.initializer
    tensor.dims[:] = [1 << 28]
    del tensor.external_data[1:]
    path.write_bytes(proto.SerializeToString())
    os.truncate(data, 1 << 30)
    before = path.read_bytes()
    command = [sys.executable, "-m", "sabir.cli", "pack", path, "-o", path]
    # ruff: ignore[subprocess-without-shell-equals-true]  our own program, to be interrupted
    process = subprocess.Popen(command)
    while process.poll() is None and len(list(tmp_path.iterdir())) == 2:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert names(tmp_path) == ["m.onnx", "w"]
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform != "linux", reason="only there is address space bounded")
def test_a_model_is_packed_that_there_is_no_room_to_map(tmp_path):
    import resource  # ruff: ignore[import-outside-top-level]  not everywhere

    sabir.save(model_of(a=np.ones(1000, np.float32)), tmp_path / "m.onnx", external="w")
    message = message_in(tmp_path / "m.onnx")
    message.graph.initializer[0].dims[:] = [1 << 28]
    del message.graph.initializer[0].external_data[1:]
    (tmp_path / "m.onnx").write_bytes(message.SerializeToString())
    os.truncate(tmp_path / "w", 1 << 30)
    done = subprocess.run(
        [sys.executable, "-m", "sabir.cli", "pack", "m.onnx", "-o", "p.onnx"], cwd=tmp_path, check=False,
        capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (800 << 20, 800 << 20)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "p.onnx").stat().st_size > 1 << 30
