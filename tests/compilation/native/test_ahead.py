"""What is loaded while a model is planned, and what a process that cannot run code says."""

import threading

import pytest

from sabir.base import UnsupportedError
from sabir.compilation.native import _ahead, _objects, _team, host, require_loading, team


@pytest.fixture
def load(monkeypatch):
    """Load ahead as for the first time in a process, and wait for it; returns what was loaded."""
    monkeypatch.setattr(_ahead, "usable_cores", lambda: 2)
    loaded = []
    monkeypatch.setattr(_ahead, "load_driver", lambda _: loaded.append("driver"))
    monkeypatch.setattr(_ahead, "entrance", lambda _: loaded.append("entrance"))

    def wait():
        _ahead.load_ahead.cache_clear()
        _ahead.load_ahead(host())
        for thread in threading.enumerate():
            if thread.name == "sabir-loader":
                thread.join()
        return loaded

    yield wait
    _ahead.load_ahead.cache_clear()


def test_the_driver_and_the_entrance_are_loaded_once(load):
    assert load() == ["driver", "entrance"]
    _ahead.load_ahead(host())
    assert not any(thread.name == "sabir-loader" for thread in threading.enumerate())
    assert load() == ["driver", "entrance"] * 2


def test_nothing_is_loaded_ahead_where_it_takes_the_only_core(load, monkeypatch):
    monkeypatch.setattr(_ahead, "usable_cores", lambda: 1)
    assert load() == []


def test_a_thread_that_the_system_refuses(load, monkeypatch):
    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert load() == []


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_cannot_be_loaded_is_left_to_the_run(load, monkeypatch):
    def fail(_):
        raise UnsupportedError("no code")

    monkeypatch.setattr(_ahead, "load_driver", fail)
    assert load() == []


def test_a_team_needs_no_driver_before_it_runs(monkeypatch):
    def fail(_):
        raise UnsupportedError("no code")

    monkeypatch.setattr(_team, "_driver", fail)
    crew = _team._Crew(2, host(), _team.services())
    crew._end()  # it ends no workers
    assert not crew.started
    with pytest.raises(UnsupportedError, match="no code"):
        crew.start()
    assert not crew.started
    assert team(1, host()).threads == 1


def test_code_that_the_system_executes():
    require_loading(host())


@pytest.mark.parametrize("places", [True, False])
def test_code_that_the_system_does_not_execute(monkeypatch, places):
    def fail(*_):
        raise UnsupportedError("the machine code of kernels cannot be loaded")

    monkeypatch.setattr(_objects, "can_place", lambda: places)
    monkeypatch.setattr(_objects, "placed", lambda _: None)
    monkeypatch.setattr(_objects, "_linked", fail)
    with pytest.raises(UnsupportedError, match="cannot be loaded"):
        require_loading(host())
