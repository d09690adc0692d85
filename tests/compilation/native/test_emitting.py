"""Kernels compiled by several threads: the same objects, the same errors, and no thread afterwards."""

import threading

import pytest

from sabir.base import UnsupportedError
from sabir.compilation.native import _emitting, host
from sabir.compilation.native._compile import object_of
from sabir.compilation.native._emitting import objects_of


@pytest.fixture(autouse=True)  # ruff: ignore[pytest-fixture-autouse]  every test here
def cores(monkeypatch):
    monkeypatch.setattr(_emitting, "usable_cores", lambda: 4)


def workers():
    return [t for t in threading.enumerate() if t.name.startswith("sabir-compiler")]


@pytest.mark.parametrize("has_library", [True, False])
def test_the_objects_are_those_of_one_thread(scaled, monkeypatch, has_library):
    if not has_library:
        monkeypatch.setattr(_emitting, "_library", lambda: None)
    texts = {f"k{i}": scaled(i) for i in range(40)}  # more than may wait at a time
    found = dict(objects_of([(name, lambda text=text: text) for name, text in texts.items()], host()))
    assert found == {name: object_of(text, name, host()) for name, text in texts.items()}
    assert not workers()


def test_an_invalid_text_ends_the_threads(scaled):
    good = [(f"k{i}", lambda i=i: scaled(i)) for i in range(6)]
    with pytest.raises(UnsupportedError, match="not valid LLVM IR"):
        dict(objects_of([*good, ("bad", lambda: "garbage")], host()))
    external = scaled(1).replace("ret void", "call void @printf()\n  ret void") + "\ndeclare void @printf()"
    with pytest.raises(UnsupportedError, match="a kernel calls 'printf'"):
        dict(objects_of([("bad", lambda: external), *good], host()))
    assert not workers()


def test_who_wants_no_more_objects_ends_the_threads(scaled):
    made = objects_of([(f"k{i}", lambda i=i: scaled(i)) for i in range(20)], host())
    next(made)
    made.close()
    assert not workers()


def test_without_threads(scaled, monkeypatch):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    found = dict(objects_of([(f"k{i}", lambda i=i: scaled(i)) for i in range(5)], host()))
    assert found == {f"k{i}": object_of(scaled(i), f"k{i}", host()) for i in range(5)}
