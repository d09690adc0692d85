"""Parts of runs: commits, values that contain arrays, plans for other processors, loops that repeat a plan, tails."""

import ctypes

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.texts import source_of
from sabir.compilation.native import target_named
from sabir.compilation.plan.entries import Buffer
from sabir.compilation.plan.executable import executable_of
from sabir.compilation.plan.layout import RunSizes
from sabir.compilation.runtime.commits import Commit
from sabir.compilation.runtime.foreign import ForeignProgram
from sabir.compilation.runtime.repeating import _carries_on
from sabir.compilation.runtime.tail import Tail
from sabir.compilation.runtime.values import contains_arrays
from sabir.ir import symbol
from support.middle import CORES, Middle

N = symbol("N")


def test_a_commit_says_whether_results_are_written():
    commit = Commit(sorted)
    assert not commit.done
    commit.prepare({"y": 1, "x": 2})
    assert commit.prepared == ["x", "y"]
    ctypes.c_int64.from_address(commit.address).value = 1  # as native code does
    assert commit.done


def test_a_commit_refuses_results():
    def refuse(_):
        raise ValueError("no")

    commit = Commit(refuse)
    with pytest.raises(ValueError, match="no"):
        commit.prepare({})
    assert commit.prepared is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.zeros(2), True), ([], False), ([[]], False), ([None, [], [np.zeros(2)]], True), ({}, False), ([{}, {1: 0.5}], False),
        ({1: np.zeros(2)}, True), ("text", False), (None, False), (["a", "b"], False), ({"a": ["b"]}, False),
    ],
)  # fmt: skip
def test_values_that_contain_arrays(value, expected):
    assert contains_arrays(value) is expected


def test_a_plan_for_another_processor_can_be_laid_out():
    middle = Middle("g (float[N,8] x) => (float[N,8] y) { y = Softmax (x) }", "aarch64", N=3)
    executable = executable_of(middle.lowered.settled(), middle.plan(), frozenset({"N"}))
    program = ForeignProgram(executable, middle.prepared, target_named("aarch64"), CORES, source_of)
    assert (program.kernels, program.compiled) == (1, 0)
    layout = program.layout(0, RunSizes({"N": 5}))
    assert layout.scratch_bytes % 64 == 0
    assert layout.scratch_bytes > 0
    assert len(layout.rows) == 1


@pytest.mark.parametrize(
    ("shape", "dtype", "carries"),
    [((3, 2), np.float32, True), ((3, 2), np.float64, False), ((4, 2), np.float32, False)],
)
def test_results_that_a_loop_carries_on(shape, dtype, carries):
    output = Buffer("output", 3, "float", (N, 2), 8 * N)
    assert _carries_on([output], [np.zeros(shape, dtype)], RunSizes({"N": 3})) is carries


def loop(condition):
    """A loop that doubles a state, and stacks it; the condition of a turn comes from the body."""
    return sabir.parse(f"""<ir_version: 10, opset_import: ["" : 21]>
    g (int64 count, float[2] x) => (float[2] y, float[K,2] all) <bool go = {{1}}> {{
      y, all = Loop <body = b (int64 i, bool c, float[2] s) => (bool more, float[2] t, float[2] o) {{
        t = Add (s, s)
        o = Identity (t)
        {condition}
      }}> (count, go, x)
    }}""")


def test_a_plan_repeats_itself():
    model = loop("more = Identity (c)")
    x = np.float32([1, -2])
    found = Compiled(model).run({"count": np.int64(9), "x": x})
    np.testing.assert_array_equal(found["y"], x * 512)
    np.testing.assert_array_equal(found["all"], [x * 2**n for n in range(1, 10)])


def test_a_plan_repeats_itself_while_its_condition_holds():
    model = loop("""m = ReduceMax <keepdims = 0> (t)
        limit = Constant <value = float {20.0}> ()
        more = Less (m, limit)""")
    found = Compiled(model).run({"count": np.int64(100), "x": np.float32([1, -2])})
    assert found["y"].tolist() == [32, -64]
    assert len(found["all"]) == 5


def test_the_tail_of_a_plan(monkeypatch):
    """Texts are made of what kernels computed, in fast runs too."""
    text = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 4]>
    g (float[N] x) => (string[N] s) {
      r = Round (x)
      i = Cast <to = 7> (r)
      s = ai.onnx.ml.LabelEncoder <keys_tensor = int64[2] {1, 2}, values_tensor = string[2] {"one", "two"}, default_tensor = string[1] {"many"}> (i)
    }"""
    finished, finish = [], Tail.finish
    monkeypatch.setattr(Tail, "finish", lambda *args: finished.append(finish(*args)) or finished[-1])
    compiled = Compiled(sabir.parse(text))
    feeds, expected = {"x": np.float32([1.1, 1.9, 7])}, ["one", "two", "many"]
    assert compiled.run(feeds)["s"].tolist() == expected
    for _ in range(2):
        assert compiled.run_fast(feeds)["s"].tolist() == expected
    assert len(finished) == 2
