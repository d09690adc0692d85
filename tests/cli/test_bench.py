import itertools
import json
import re
import sys
import time
import types

import numpy as np
import pytest

import sabir
from sabir.cli import _bench
from sabir.compilation.inspect import roofline as _roofline

MODEL = """<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x) => (float[N,2] y, float[N,K] z) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
  h = MatMul (x, w)
  y = Relu (h)
  z = Unique <axis = 1> (x)
}"""


@pytest.fixture
def model(write, tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_roofline, "_MEMORY", 1 << 16)
    monkeypatch.setattr(_roofline, "_PERIOD", 0.0)
    monkeypatch.setattr(_bench, "_PAUSE", 0.0)
    return write(MODEL)


# ---------------------------------------------------------------- profile


def test_a_profile(cli, model):
    code, out, err = cli("profile", model, "--dim", "N=3", "--runs", "2")
    assert (code, err) == (0, "")
    assert out.startswith("model.onnxtxt: ")
    assert " a run, median of 2\n" in out
    assert "Kernels and evaluated nodes  the slowest first\n" in out
    assert "MatMul with output 'h', Relu with output 'y'\n" in out
    assert "   shared with 1 more   Relu with output 'y'\n" in out
    assert "evaluated   Unique with output 'z'\n" in out
    assert "the slowest 1 of 4" in cli("profile", model, "--dim", "N=3", "--runs", "1", "--top", "1").out


def test_a_profile_has_the_decisions_of_its_kernels(cli, write):
    rejected = write("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[N,4] x) => (float[N,2] y) <float[4,2] w = {1, 2, 3, 4, 5, 6, 7, 8}> {
          h = MatMul (x, w)  y = Softmax (h) }""")
    out = cli("profile", rejected, "--dim", "N=3", "--runs", "1").out
    assert "Decisions  what was rejected for these kernels, and why\n" in out
    reason = "a kernel of the kind product computes no folds"
    node, other = "Softmax with output 'y'", "MatMul with output 'h'"
    assert f"   {node}: a separate kernel, not fused with {other}: {reason}\n" in out
    report = json.loads(cli("profile", rejected, "--dim", "N=3", "--runs", "1", "--json").out)
    (fused,) = [d for e in report["entries"] for d in e["decisions"] if d["subject"] == "fusion"]
    assert fused == {
        "nodes": [node], "subject": "fusion", "chosen": "a separate kernel", "rejected": f"fused with {other}",
        "because": reason,
    }  # fmt: skip


def test_a_profile_as_a_trace(cli, model, tmp_path):
    path = tmp_path / "trace.json"
    assert cli("profile", model, "--shape", "x=3,4", "--runs", "1", "--trace", path).code == 0
    events = json.loads(path.read_text())["traceEvents"]
    report = json.loads(cli("profile", model, "--shape", "x=3,4", "--runs", "1", "--json").out)
    assert [e["args"]["nodes"] for e in events] == [e["nodes"] for e in report["entries"]]
    assert {e["ph"] for e in events} == {"X"}
    for one, later in itertools.pairwise(events):
        assert later["ts"] == pytest.approx(one["ts"] + one["dur"])


def test_a_profile_as_json(cli, model):
    report = json.loads(cli("profile", model, "--shape", "x=3,4", "--runs", "1", "--json").out)
    kinds = {entry["kind"]: entry for entry in report["entries"]}
    assert kinds["product"]["flops"] == 2 * 3 * 2 * 4
    assert kinds["product"]["of_limit"] > 0
    assert kinds["evaluated"]["of_limit"] is None
    assert report["one_by_one"] == pytest.approx(sum(e["seconds"] for e in report["entries"]))
    assert {n["node"] for n in report["nodes"]} == {
        "MatMul with output 'h'", "Relu with output 'y'", "Unique with output 'z'", "a copy of 'z'",
    }  # fmt: skip
    assert set(report["limits"]) == {"flops", "bandwidth"}


# ---------------------------------------------------------------- bench


def test_fast_kernels_are_others(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    b = sabir.Builder(opsets={"": 21})
    w = np.random.default_rng(0).standard_normal((32, 32, 3, 3), np.float32)
    b.output(b.Conv(b.input("x", "float", [1, 32, 24, 24]), w), "y")
    path = tmp_path / "model.onnx"
    sabir.save(b.model(), path)
    tiles = {}
    for precision in ("exact", "fast"):
        code, out, _ = cli("compile", path, "--precision", precision, "--show", "schedule")
        assert code == 0
        tiles[precision] = re.findall(r"results (\S+)", out)
        assert cli("run", path, "--precision", precision)[0] == 0
    assert tiles == {"exact": ["2x2"], "fast": ["4x4"]}


@pytest.mark.parametrize("engine", ["reference", "compiled"])
def test_an_engine_alone(cli, model, engine):
    code, out, err = cli("bench", model, "--dim", "N=3", "--rounds", "12", "--engine", engine)
    assert (code, err) == (0, "")
    assert out.startswith("model.onnxtxt: 12 runs\n")
    assert all(word in out.split("\n")[1] for word in ("p50", "p90", "p99", "GFLOP/s", "of peak", "memory"))
    assert f"   {engine} " in out
    assert "note: GFLOP/s count kernels alone; 1 node without one ran too" in out


def test_beside_onnxruntime(cli, model):
    words = ("--engine", "compiled", "--against", "onnxruntime", "--threads", "1", "--rounds", "11")
    code, out, err = cli("bench", model, "--dim", "N=3", *words, "--json")
    assert (code, err) == (0, "")
    report = json.loads(out)
    ours, theirs = report["programs"]
    assert (ours["name"], theirs["name"]) == ("compiled", "onnxruntime")
    assert len(ours["seconds"]) == len(theirs["seconds"]) == 11
    assert ours["p50"] == pytest.approx(np.median(ours["seconds"]))
    assert ours["p50"] <= ours["p90"] <= ours["p99"] <= max(ours["seconds"])
    assert report["ratio"] == pytest.approx(theirs["p50"] / ours["p50"])
    assert report["flops"] == 2 * 3 * 2 * 4
    assert ours["flops_per_second"] == pytest.approx(report["flops"] / ours["p50"])
    assert theirs["memory"] is None
    assert report["differences"] == []
    assert "   onnxruntime / compiled: " in cli("bench", model, *words).out


def test_programs_take_turns_in_blocks(monkeypatch):
    calls = []
    pauses = []
    clock = types.SimpleNamespace(
        perf_counter=time.perf_counter, sleep=lambda seconds: pauses.append((seconds, len(calls)))
    )
    monkeypatch.setattr(_bench, "time", clock)
    programs = {"a": lambda _: calls.append("a"), "b": lambda _: calls.append("b")}
    times = _bench.measure(programs, {}, 13)
    # blocks of 10 and of 3, each after 2 runs that are not timed
    assert "".join(calls) == "a" * 12 + "b" * 12 + "a" * 5 + "b" * 5
    assert {name: len(seconds) for name, seconds in times.items()} == {"a": 13, "b": 13}
    assert pauses == [(0.15, 0), (0.15, 12), (0.15, 24), (0.15, 29)]


def other_program(results):
    """A module that looks like onnxruntime, and gives these results."""

    class InferenceSession:
        def __init__(self, data, *_, **__):
            assert isinstance(data, bytes)

        def get_outputs(self):
            return [types.SimpleNamespace(name="y")]

        def run(self, *_):
            if isinstance(results, Exception):
                raise results
            return [results]

    return types.SimpleNamespace(SessionOptions=types.SimpleNamespace, InferenceSession=InferenceSession)


def test_different_results_are_told(cli, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", other_program(np.zeros((1, 2), np.float32)))
    code, out, _ = cli("bench", model, "--against", "onnxruntime", "--rounds", "1")
    assert code == 1
    assert "the results differ: output y: " in out


def test_a_model_that_another_program_refuses(fails, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", other_program(RuntimeError("no such operator\nmore")))
    message = fails("bench", model, "--against", "onnxruntime")
    assert message == "onnxruntime cannot run this model: no such operator"


def test_a_program_that_is_not_installed(fails, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    message = fails("bench", model, "--against", "onnxruntime")
    assert message.startswith("onnxruntime cannot be imported")
    assert message.endswith("install it: python -m pip install onnxruntime")


def test_wrong_usage(fails, model):
    assert "there is no engine 'gpu'; there are auto, compiled, reference" in fails(
        "bench", model, "--engine", "gpu"
    )
    assert "there is no program 'x'; there are onnxruntime" in fails("bench", model, "--against", "x")


def test_without_kernels_for_the_machine(cli, model, monkeypatch):
    monkeypatch.setenv("SABIR_CPU", "z80")
    code, out, _ = cli("bench", model, "--engine", "reference", "--rounds", "1")
    assert code == 0
    assert "GFLOP/s are unknown" in out
