"""The engine around plans: requests to backends, settings, faults, locks, modules."""

import os
import threading
import warnings

import pytest

from sabir.base import CancelledError, UnsupportedError
from sabir.compilation import PASSES
from sabir.compilation import settings as settings_module
from sabir.compilation.backends.cpu.passes import PIPELINE
from sabir.compilation.cache.modules import _sources, modules
from sabir.compilation.engine.expressions import lowered
from sabir.compilation.engine.planning import planned
from sabir.compilation.engine.worth import PlanCost
from sabir.compilation.faults import is_strict, report_fault
from sabir.compilation.locks import ProcessLock, Stops
from sabir.compilation.protocol import Request
from sabir.compilation.settings import DEFAULT, Settings
from support.middle import Middle

TEXT = "g (float[N] x) => (float[N] y) { e = Exp (x) y = Neg (e) }"


# ---------------------------------------------------------------- requests


def test_a_backend_gets_a_request():
    middle, asked = Middle(TEXT, N=3), []

    class Backend:
        passes = PIPELINE

        def compile(self, request):
            asked.append(request)
            return "plan"

    updates = {"y": "x", "unknown": "x", "e": "x"}
    assert (
        planned(middle.prepared, {"N": 3}, Backend(), DEFAULT, lambda *_: None, updates, PlanCost()) == "plan"
    )
    (request,) = asked
    assert isinstance(request, Request)
    assert request.updates == {middle.names["y"]: middle.names["x"]}
    assert request.sizes == {"N": 3}
    assert set(request.lowered.expressions) >= {middle.names["y"]}


def test_passes_that_are_left_out_are_not_run():
    text = "g (float[1,4,9,9] x, float[8,4,3,3] w) => (float[1,8,7,7] y) { c = Conv (x, w) y = Relu (c) }"
    prepared = Middle(text).prepared
    slot = prepared.plan.results[0]
    usual = lowered(prepared, {}, PIPELINE, DEFAULT).expressions[slot]
    without = lowered(prepared, {}, PIPELINE, Settings(without=frozenset(PASSES))).expressions[slot]
    assert type(usual).__name__ == "Permute"  # channels are last
    assert type(without).__name__ == "Map"


def test_equal_settings_have_one_key():
    a, b = (
        Settings(without=frozenset(["shared-heads", "channels-last"])),
        Settings(without=frozenset(["channels-last", "shared-heads"])),
    )
    assert a.key == b.key
    assert len({s.key for s in (a, DEFAULT, Settings("fast"), Settings(newer_opsets=True))}) == 4
    assert Settings() == settings_module.DEFAULT


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(("value", "strict"), [("", False), ("0", False), ("1", True)])
def test_strictness(monkeypatch, value, strict):
    monkeypatch.setenv("SABIR_STRICT_COMPILER", value)
    assert is_strict() is strict


def test_a_strict_compiler_raises_faults(monkeypatch):
    monkeypatch.setenv("SABIR_STRICT_COMPILER", "1")
    with pytest.raises(AttributeError, match="x"):
        report_fault(AttributeError("x"), "lowering", result="the interpreter runs it")


def test_a_fault_of_a_user_is_a_warning(monkeypatch):
    monkeypatch.setenv("SABIR_STRICT_COMPILER", "")
    message = (
        r"the compiler failed in lowering of Conv_1, so nothing changes; please report it: KeyError: 'x'"
    )
    with pytest.warns(match=message):
        report_fault(KeyError("x"), "lowering", "Conv_1", result="nothing changes")


@pytest.mark.parametrize("error", [UnsupportedError("x"), MemoryError(), OverflowError()])
def test_refusals_are_no_faults(error):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report_fault(error, "lowering", result="nothing changes")


# ---------------------------------------------------------------- locks


def test_a_lock_is_reentrant():
    lock = ProcessLock()
    with lock, lock:
        pass


def test_a_child_finds_the_lock_free():
    lock = ProcessLock()
    with lock:
        child = os.fork()
        if child == 0:
            with lock:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


def test_runs_under_way_are_stopped_and_later_ones_go_on():
    stops = Stops()

    def cancelled():
        with stops.run() as control:
            stops.cancel()
            assert control.cancelled

    with pytest.raises(CancelledError, match="the run was cancelled"):
        cancelled()
    with stops.run() as control:
        assert not control.cancelled


def test_what_a_cancelled_run_found_is_not_kept():
    stops, kept = Stops(), []
    control = stops.control
    stops.keep(control, lambda: kept.append(1))
    stops.cancel()
    stops.keep(control, lambda: kept.append(2))
    assert kept == [1]


def test_a_lock_holds_up_other_threads():
    lock, order = ProcessLock(), []

    def other():
        with lock:
            order.append("other")

    with lock:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join(0.02)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


# ---------------------------------------------------------------- modules


def test_modules_are_identified_by_their_files(tmp_path):
    assert modules() == modules()
    assert len(modules()) == 64
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.py").write_text("2")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "c.py").write_text("3")
    (tmp_path / "note.txt").write_text("4")
    before = _sources(str(tmp_path))
    assert sorted(line.split()[0].rpartition("/")[2] for line in before) == ["a.py", "b.py"]
    (tmp_path / "a.py").write_text("11")
    assert _sources(str(tmp_path)) != before
