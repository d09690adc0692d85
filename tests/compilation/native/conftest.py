import ctypes
import os
import subprocess
import sys
import weakref

import numpy as np
import pytest

from sabir.compilation.backends.cpu.emit.emitter import POINTER, Emitter, Kind, Register
from sabir.compilation.disk import cache
from sabir.compilation.disk import places as _places
from sabir.compilation.native import Library, _objects, host

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, *(ctypes.c_int64,) * 3)


# ruff: ignore[pytest-fixture-autouse]  no test may use the cache of the user
@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of the cache: an empty one for each test, as in a new process."""
    place = tmp_path / "cache"
    monkeypatch.setenv("SABIR_CACHE", str(place))
    monkeypatch.delenv("SABIR_CACHE_SIZE", raising=False)
    monkeypatch.delenv("SABIR_CPU", raising=False)
    monkeypatch.setattr(_places, "_warned", set())
    monkeypatch.setattr(_objects, "_LOADED", weakref.WeakValueDictionary())
    return place


@pytest.fixture
def scaled():
    """The text of a kernel: buffer 1 is buffer 0 times a factor; the arguments are the number of elements."""

    def text(factor, lanes=16):
        e, kind = Emitter(), Kind("float", lanes)
        count = e.argument(0)
        source, target = (
            e.value(POINTER, f"load ptr, {e.offset(Register('%buffers', POINTER), e.index(i), 'i64')}")
            for i in range(2)
        )
        low, high = e.share(count)
        with e.loop(low, high, lanes) as i:
            x = e.load(e.offset(source, i, "float"), kind)
            e.store(e.binary("fmul", x, e.constant(kind, factor)), e.offset(target, i, "float"))
        return e.text()

    return text


@pytest.fixture
def run():
    """Call the kernel at an address on 64 numbers."""

    def call(library, place=0):
        x = np.arange(64, dtype=np.float32)
        y = np.full_like(x, -1)
        arguments, buffers = np.array([64]), np.array([x.ctypes.data, y.ctypes.data])
        FUNCTION(library.addresses[place])(arguments.ctypes.data, buffers.ctypes.data, 0, 1, 0)
        return y

    return call


@pytest.fixture
def entry(folder):
    """The file of the only object in the cache."""

    def find():
        (path,) = (folder / "objects").iterdir()
        return path

    return find


@pytest.fixture
def load(monkeypatch):
    """Load texts as a new process does: without code that is in memory already."""

    def again(*texts):
        monkeypatch.setattr(_objects, "_LOADED", weakref.WeakValueDictionary())
        return Library.load(texts, host())

    return again


@pytest.fixture
def script():
    """Start a Python program that imports the package; returns the process."""

    def start(code, **environment):
        return subprocess.Popen(  # ruff: ignore[subprocess-without-shell-equals-true]  our own code
            [sys.executable, "-W", "error", "-c", code],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    return start


@pytest.fixture
def output(script):
    """Run such a program to its end, and return what it prints."""

    def finish(code, **environment):
        out, err = script(code, **environment).communicate(timeout=60)
        assert not err
        return out

    return finish


@pytest.fixture
def the_cache():
    """The cache of this test."""
    return cache()
