"""Kernels that are begun while their plan is made: loaded once, dropped where nothing takes them."""

import threading

import pytest

from sabir.base import UnsupportedError
from sabir.compilation.native import EarlyKernels, Library, Source, _emitting, host
from sabir.compilation.native._llvm import LOCK


@pytest.fixture(autouse=True)  # ruff: ignore[pytest-fixture-autouse]  every test here
def cores(monkeypatch):
    monkeypatch.setattr(_emitting, "usable_cores", lambda: 2)


@pytest.fixture
def source(scaled):
    """Return a function from a number to the source of a kernel; `written` lists whose texts were written."""
    written = []

    def make(number):
        def text():
            written.append(number)
            return scaled(number)

        return Source(f"early {number}", text)

    make.written = written
    return make


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("sabir-compiler")]


def is_free():
    """Return whether another thread gets the lock of LLVM."""
    found = []

    def ask():
        found.append(LOCK.acquire(blocking=False))
        if found[0]:
            LOCK.release()

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def test_a_kernel_that_was_begun_is_written_once(source):
    sources = [source(number) for number in range(8)]
    with EarlyKernels(host()) as early:
        for each in sources[1:]:
            early.begin(each)
        early.begin(sources[1])
        assert 1 <= len(early.symbols) <= len(sources) - 1
        assert not is_free()
        library = Library.load(sources, host(), early=early)
        assert is_free()
        assert not workers()
        assert not early.has_room()
    assert library.compiled == len(sources)
    assert sorted(source.written) == list(range(8))
    assert library.addresses == Library.load(sources, host()).addresses


def test_what_is_loaded_already_is_not_begun(source):
    library = Library.load([source(20)], host())
    with EarlyKernels(host()) as early:
        early.begin(source(20))
        assert not early.symbols
        assert Library.load([source(20)], host(), early=early).addresses == library.addresses
    assert source.written == [20]


def test_what_nothing_takes_is_dropped(source):
    with EarlyKernels(host()) as early:
        early.begin(source(30))
        assert early.symbols
        assert workers()
    assert not workers()
    assert is_free()
    with EarlyKernels(host()) as early:
        early.begin(source(31))
        assert Library.load([source(32)], host(), early=early).compiled == 1
    assert Library.load([source(31)], host()).compiled == 1


def test_a_text_that_is_not_valid():
    bad = Source("early bad", lambda: "garbage")
    with EarlyKernels(host()) as early, pytest.raises(UnsupportedError, match="not valid LLVM IR"):
        early.begin(bad)
    assert not workers()
    assert is_free()


def test_nothing_is_begun_while_another_thread_compiles(source):
    began, done = threading.Event(), threading.Event()

    def compile_something():
        with LOCK:
            began.set()
            done.wait()

    thread = threading.Thread(target=compile_something)
    thread.start()
    began.wait()
    with EarlyKernels(host()) as early:
        early.begin(source(40))
        assert not early.symbols
        assert not early.has_room()
        done.set()
        thread.join()
        assert early.has_room()
        early.begin(source(40))
        assert early.symbols
    assert source.written == [40]


def test_nothing_is_begun_on_the_only_core(source, monkeypatch):
    monkeypatch.setattr(_emitting, "usable_cores", lambda: 1)
    with EarlyKernels(host()) as early:
        early.begin(source(50))
        assert not early.symbols
        assert not early.has_room()
    assert not source.written
