"""An interrupt may come between any two instructions; what follows it runs as if nothing had happened."""

import gc
import sys

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.base import (
    DEFAULT_LIMITS,
    LimitError,
    check_elements,
    limits_in_force,
    run_with_limits,
    start_budget,
)
from sabir.cli._app import INTERRUPTED, main
from sabir.repairing import fix_in_place
from sabir.syntax import text

SOURCE = '<ir_version: 10, opset_import: ["" : 21]> g (float[n] x) => (float[n] y) { y = Neg (x) }'
TIGHT = Limits(nodes=1, elements=1, memory=1000, work=1000)
X = {"x": np.ones(1, np.float32)}
MODEL = sabir.parse(SOURCE)
SESSION = sabir.Session(MODEL, limits=TIGHT)
DATA = sabir.dumps(MODEL)


class Stopped(KeyboardInterrupt):
    """An interrupt that comes at a chosen step."""


def stopped_at(step, job, *, kinds):
    """Run `job`, and interrupt it at an event of our own modules; return whether it got there."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        if "sabir" not in frame.f_code.co_filename and "contextlib" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return events(frame, event, _argument)

    def events(_frame, event, _argument):
        nonlocal count
        count += event in kinds
        if count == step:
            sys.settrace(None)
            raise Stopped
        return events

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    except Stopped:
        return True
    finally:
        sys.settrace(before)
    return False


JOBS = {
    "a run": (lambda: SESSION.run(X), 1),
    "an evaluation": (lambda: sabir.evaluate(MODEL, X, limits=TIGHT), 7),
    "an inference": (lambda: sabir.infer(MODEL, limits=TIGHT), 7),
    "a check": (lambda: list(sabir.findings(MODEL, limits=TIGHT)), 97),
    "a repair": (lambda: fix_in_place(MODEL, limits=TIGHT), 31),
    "an inlining": (lambda: sabir.inline(MODEL, limits=TIGHT), 7),
    "a text": (lambda: text(MODEL, limits=TIGHT), 7),
    "a parse": (lambda: sabir.parse(SOURCE, limits=TIGHT), 7),
    "a load of bytes": (lambda: sabir.loads(DATA, limits=TIGHT), 7),
    "bytes": (lambda: sabir.dumps(MODEL, limits=TIGHT), 7),
}


@pytest.mark.parametrize("name", JOBS)
def test_an_interrupt_leaves_no_limits_behind(name):
    job, stride = JOBS[name]
    errors = np.geterr()
    job()  # what is imported at first use is there now
    step, reached = 1, True
    while reached:
        reached = stopped_at(step, job, kinds={"opcode"})
        assert limits_in_force() is DEFAULT_LIMITS, step
        assert np.geterr() == errors, step
        step += stride
        gc.enable()
    assert step > 10 * stride
    assert sabir.evaluate(MODEL, {"x": np.ones(5000, np.float32)})["y"].shape == (5000,)


# an interrupt in a generator that is being closed is printed, and goes no further
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["a parse", "a load of bytes", "a check"])
def test_an_interrupt_leaves_the_collector_on(name):
    """At the start of a call, which is where the interpreter looks for signals."""
    job, _ = JOBS[name]
    job()
    step, reached = 1, True
    while reached:
        reached = stopped_at(step, job, kinds={"call"})
        assert gc.isenabled(), step
        step += 1
    assert step > 10


def test_files_are_loaded_and_saved_in_a_context_of_their_own(tmp_path):
    path = tmp_path / "m.onnx"
    for job in (
        lambda: sabir.save(MODEL, path, limits=TIGHT),
        lambda: sabir.load(path, limits=TIGHT),
        lambda: sabir.save(MODEL, path, external="w.bin", limits=TIGHT),
    ):
        job()
        step, reached = 1, True
        while reached:
            reached = stopped_at(step, job, kinds={"opcode"})
            assert limits_in_force() is DEFAULT_LIMITS, step
            step += 97
        assert step > 97
        gc.enable()


def test_the_limits_of_a_command_end_with_it(tmp_path, monkeypatch, capsys):
    path = tmp_path / "m.onnx"
    sabir.save(MODEL, path)
    assert main(["check", str(path), "--limit", "nodes=1"]) == 0
    assert limits_in_force() is DEFAULT_LIMITS

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("sabir.cli._run.Session", interrupted)
    assert main(["run", str(path), "--limit", "nodes=1"]) == INTERRUPTED
    assert limits_in_force() is DEFAULT_LIMITS
    capsys.readouterr()


def test_what_a_call_sets_ends_with_it():
    def inner():
        start_budget(TIGHT)
        return limits_in_force()

    assert run_with_limits(Limits(), inner) == TIGHT
    assert limits_in_force() is DEFAULT_LIMITS
    with pytest.raises(LimitError):
        run_with_limits(TIGHT, check_elements, 2)
    assert limits_in_force() is DEFAULT_LIMITS
