"""Progress bars: shown where they are asked for, and where somebody looks."""

import io
import sys

import numpy as np
import pytest

import sabir
from sabir.drawing import counting_bar, progress_bars

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,2] x) => (float[N,1] y) <float[2,1] w = {1, 2}> { y = MatMul (x, w) }"""
FEEDS = {"x": np.ones((3, 2), np.float32)}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def terminal(monkeypatch):
    """Make standard error a terminal; not in a fixture, after which pytest sets its own."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def test_no_bars_unless_they_are_asked_for(monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert [progress_bars(shown) for shown in (None, False, "auto")] == [None] * 3
    monkeypatch.setattr(sys, "stderr", None)
    assert progress_bars("auto") is None


def test_auto_shows_bars_in_a_terminal_and_a_notebook(monkeypatch):
    terminal(monkeypatch)
    assert progress_bars("auto") is progress_bars(shown=True) is not None
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert progress_bars("auto") is not None


def test_without_tqdm(monkeypatch):
    terminal(monkeypatch)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(sabir.UnsupportedError, match=r"install it with `pip install 'sabir\[progress\]'`"):
        progress_bars(shown=True)
    assert progress_bars("auto") is None


def test_another_value_is_refused():
    with pytest.raises(
        sabir.UnsupportedError, match="progress is True, False, 'auto' or a function; got 'yes'"
    ):
        sabir.quantize(sabir.parse(MODEL), progress="yes")


def test_a_function_is_called_itself():
    def report(done, total):
        raise AssertionError((done, total))

    with counting_bar(report, "compiling", "kernel") as given:
        assert given is report


def test_a_bar_moves_and_is_full_at_the_end(monkeypatch):
    shown = terminal(monkeypatch)
    with counting_bar(progress=True, action="compiling", unit="kernel") as report:
        report(1, 4)
        report(3, 4)
    assert "compiling: 100%" in shown.getvalue()
    assert "3/3" in shown.getvalue()


def test_the_bar_of_work_that_fails_stays(monkeypatch):
    shown = terminal(monkeypatch)

    def fail():
        with counting_bar(progress=True, action="compiling", unit="kernel") as report:
            report(1, 4)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert "compiling" in shown.getvalue()
    assert "100%" not in shown.getvalue()


def test_quantize_and_compile_show_bars(monkeypatch):
    shown = terminal(monkeypatch)
    model = sabir.parse(MODEL)
    sabir.quantize(model, calibration=[FEEDS] * 2, progress=True)
    assert "quantizing: 100%" in shown.getvalue()
    sabir.Session(model).compile(FEEDS, progress=True)
    assert "compiling: 100%" in shown.getvalue()
