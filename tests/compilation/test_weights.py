"""Packed weights: shared by the sessions of a process, kept on disk for the next one."""

import mmap
import os
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.cache.identities import _is_timeless
from sabir.compilation.disk import cache

SIZE = 640  # 1.6 MB: large enough to be kept on disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sabir.files._reading._SMALLEST_MAPPED", 1 << 20)
    return tmp_path


def model_of(weights):
    b = sabir.Builder(21)
    x = b.input("x", "float", ["N", SIZE])
    b.output(b.MatMul(x, weights), "y")
    return b.model()


def saved(folder, seed=0, name="m.onnx"):
    weights = np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32)
    path = folder / name
    sabir.save(model_of(weights), path)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path, weights


def ran(session):
    x = np.linspace(-1, 1, 3 * SIZE, dtype=np.float32).reshape(3, SIZE)
    found = session.run({"x": x})["y"]
    for thread in threading.enumerate():
        if thread.name == "sabir-cache":
            thread.join()
    return x, found


def packed(session):
    (program,) = session._plans
    (weights,) = program._packed.values()
    return weights


def test_sessions_of_one_file_share_their_weights(folder, monkeypatch):
    aged(monkeypatch)
    path, weights = saved(folder)
    first, second = Compiled(sabir.load(path)), Compiled(sabir.load(path))
    for session in (first, second):
        x, y = ran(session)
        np.testing.assert_allclose(y, x @ weights, atol=1e-3)
    assert packed(first) is packed(second)


def test_sessions_of_one_model_share_their_weights(folder):
    data = saved(folder)[0].read_bytes()
    model = sabir.loads(data)
    first, second, other = Compiled(model), Compiled(model), Compiled(sabir.loads(bytes(bytearray(data))))
    for session in (first, second, other):
        ran(session)
    assert packed(first) is packed(second)
    assert packed(first) is not packed(other)


@pytest.mark.usefixtures("folder")
def test_weights_in_arrays_are_not_shared():
    weights = np.ones((SIZE, SIZE), np.float32)
    model = model_of(weights)
    first = Compiled(model)
    _, y = ran(first)
    second = Compiled(model)
    np.testing.assert_array_equal(ran(second)[1], y)
    assert packed(first) is not packed(second)


def aged(monkeypatch):
    """Let every file have been changed long ago: what was just written may change again unseen."""
    monkeypatch.setattr("sabir.compilation.cache.identities._SETTLED", -1e9)


def test_the_next_process_maps_them(folder, monkeypatch):
    aged(monkeypatch)
    path, weights = saved(folder)
    session = Compiled(sabir.load(path))
    x, first = ran(session)
    (entry,) = [e for e in cache().entries() if e.kind == "weights"]
    assert entry.size > SIZE * SIZE * 4
    del session  # nothing in this process shares them any more
    monkeypatch.setattr(
        "sabir.compilation.runtime.program.CompiledProgram._pack", None
    )  # nothing may be packed
    _, second = ran(Compiled(sabir.load(path)))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(second, x @ weights, atol=1e-3)


def test_another_file_has_other_weights(folder, monkeypatch):
    aged(monkeypatch)
    for seed in (1, 2, 3):  # each replaces the file before
        path, weights = saved(folder, seed)
        x, y = ran(Compiled(sabir.load(path)))
        np.testing.assert_allclose(y, x @ weights, atol=1e-3)


def test_a_file_just_written_is_not_kept(folder, monkeypatch):
    monkeypatch.setattr(
        "sabir.compilation.cache.identities._SETTLED", 1e6
    )  # a slow machine may take seconds until it reads
    path, _ = saved(folder)
    ran(Compiled(sabir.load(path)))
    assert [e for e in cache().entries() if e.kind == "weights"] == []


def test_a_damaged_entry_is_found_and_replaced(folder, monkeypatch):
    aged(monkeypatch)
    path, weights = saved(folder)
    ran(Compiled(sabir.load(path)))
    (entry,) = [e for e in cache().entries() if e.kind == "weights"]
    file = cache().folder / entry.kind / entry.name
    file.write_bytes(file.read_bytes()[:-5])
    x, y = ran(Compiled(sabir.load(path)))
    np.testing.assert_allclose(y, x @ weights, atol=1e-3)
    assert not list(cache().problems())


@pytest.mark.parametrize("place", [100, SIZE * SIZE * 2, -40])
def test_a_flipped_bit_is_found_before_a_run(folder, monkeypatch, place):
    aged(monkeypatch)
    path, weights = saved(folder)
    ran(Compiled(sabir.load(path)))
    (entry,) = [e for e in cache().entries() if e.kind == "weights"]
    data = bytearray((cache().folder / entry.kind / entry.name).read_bytes())
    start = len(data) - SIZE * SIZE * 4 - 64 if place >= 0 else 0
    data[start + place] ^= 16
    (cache().folder / entry.kind / entry.name).write_bytes(data)
    assert list(cache().problems())
    x, y = ran(Compiled(sabir.load(path)))
    np.testing.assert_allclose(y, x @ weights, atol=1e-3)
    assert not list(cache().problems())


@pytest.fixture(params=["reported", "real"])
def timeless(request, tmp_path, monkeypatch):
    """A folder on a file system that leaves the times of a file that is written through a mapping."""
    if request.param == "reported":
        mounts = tmp_path / "mountinfo"
        device = tmp_path.stat().st_dev
        mounts.write_text(
            f"25 24 {os.major(device)}:{os.minor(device)} / /x rw,relatime shared:1 - tmpfs t rw\n"
        )
        monkeypatch.setattr("sabir.compilation.cache.identities._MOUNTS", mounts)
        _is_timeless.cache_clear()
        yield tmp_path
        _is_timeless.cache_clear()
        return
    memory = Path("/dev/shm")  # ruff: ignore[hardcoded-temp-file]  a file system in memory
    if not memory.is_dir() or not _is_timeless(memory.stat().st_dev):
        pytest.skip("this machine has no file system in memory")
    with tempfile.TemporaryDirectory(dir=memory) as made:
        yield Path(made)


@pytest.mark.usefixtures("folder")
def test_a_write_that_leaves_no_time_is_seen(timeless, monkeypatch):
    """1500 for 3000: on tmpfs a write through a mapping changes neither `mtime` nor `ctime`."""
    aged(monkeypatch)
    path, weights = saved(timeless)
    x, _ = ran(sabir.Session(path, engine="compiled"))
    before = path.stat()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        start = mapped.find(weights.tobytes())
        mapped[start : start + weights.nbytes] = (2 * weights).tobytes()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    np.testing.assert_allclose(ran(sabir.Session(path, engine="compiled"))[1], x @ (2 * weights), atol=1e-3)
    assert [e for e in cache().entries() if e.kind == "weights"] == []


def test_without_a_cache_they_are_packed(folder, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", "off")
    path, weights = saved(folder)
    x, y = ran(Compiled(sabir.load(path)))
    np.testing.assert_allclose(y, x @ weights, atol=1e-3)
