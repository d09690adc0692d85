import json

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.limits import memory_test_text, multiply_test_text
from sabir.compilation.disk import Cache, cache
from sabir.compilation.inspect import roofline as _roofline
from sabir.compilation.inspect.roofline import Roofline, roofline
from sabir.compilation.native import Control, Library, execute, host, team


@pytest.fixture
def quick(monkeypatch, tmp_path):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_roofline, "_MEMORY", 1 << 16)
    monkeypatch.setattr(_roofline, "_ROUNDS", 64)
    monkeypatch.setattr(_roofline, "_PERIOD", 0.0)
    return tmp_path / "cache"


def run(text, argument, buffers, threads=2):
    library = Library.load([text], host())
    block = np.array([argument], np.int64)
    row = np.array([[library.addresses[0], block.ctypes.data, 0]], np.int64)
    table = np.array([b.ctypes.data for b in buffers], np.int64)
    execute(team(threads, host()), row.ctypes.data, 0, 1, table.ctypes.data, Control(), lambda: None)


def test_the_kernels_do_the_work_that_they_say():
    lanes = host().vector_bits // 32
    text, operations = multiply_test_text(lanes)
    result = np.zeros((2, lanes), np.float32)
    run(text, 1, [result])
    # one round: the sums begin as 0 to 11, and each becomes s * 1 + 1 four times
    assert (result[0] == sum(range(12)) + 12 * 4).all()
    assert set(result[1]) <= {0, result[0, 0]}  # 0 where a run of another thread has the workers
    assert operations == 2 * lanes * 12 * 4

    text, step = memory_test_text(lanes)
    memory = np.zeros(5 * step // 4, np.int32)
    result = np.zeros((2, lanes), np.int32)
    memory[[0, -1, 3 * step // 8]] = 1, 2, 4
    run(text, 5, [result, memory])
    assert np.bitwise_or.reduce(result, axis=None) == 7


def test_the_limits_are_measured_once(quick, monkeypatch):
    found = roofline(team(2, host()))
    assert found.flops > 0
    assert found.bandwidth > 0
    monkeypatch.setattr(_roofline, "_measured", None)
    assert roofline(team(2, host())) == found
    with pytest.raises(TypeError):  # another number of threads is measured again
        roofline(team(1, host()))
    assert [e.kind for e in Cache(quick).entries()].count("roofline") == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[1.0]",
        b"[1.0, 0.0]",
        b"[1.0, NaN]",
        b"[1.0, Infinity]",
        b"[true, 1.0]",
        b"\xff",
        b"[" * 100_000,
    ],
)
@pytest.mark.usefixtures("quick")
def test_damaged_entries_are_measured_again(monkeypatch, data):
    measured = Roofline(2.0, 3.0)
    monkeypatch.setattr(_roofline, "_measured", lambda *_: measured)
    key = _roofline._key(team(1, host()))
    cache().put("roofline", key, data)
    assert roofline(team(1, host())) == measured
    assert json.loads(bytes(cache().get("roofline", key))) == [2.0, 3.0]


def test_the_time_at_the_limits():
    limits = Roofline(flops=8.0, bandwidth=2.0)
    assert limits.seconds(16, 2) == pytest.approx(2.0)
    assert limits.seconds(8, 6) == pytest.approx(3.0)
