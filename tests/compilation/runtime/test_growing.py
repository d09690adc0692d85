"""Runs whose sizes change each time: one fast run serves them, with the results of the interpreter."""

import threading

import numpy as np
import pytest

import sabir
from sabir.base import Limits
from sabir.compilation import Compiled
from sabir.compilation.plan.entries import Mismatch
from sabir.evaluation import Runner

JOINED = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[B,P,8] past, float[B,S,8] new, float[8,8] w) => (float[B,T,8] present, float[B,S,8] y, int64[3] shape) {
  present = Concat <axis = 1> (past, new)
  k = MatMul (present, w)
  kt = Transpose <perm = [0, 2, 1]> (k)
  s = MatMul (new, kt)
  p = Softmax (s)
  y = MatMul (p, present)
  shape = Shape (present)
}
"""


def feeds_of(batch, past, new, seed=0):
    rng = np.random.default_rng(seed)
    shapes = {"past": (batch, past, 8), "new": (batch, new, 8), "w": (8, 8)}
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def same(found, expected):
    assert found.keys() == expected.keys()
    for name, y in expected.items():
        assert found[name].shape == y.shape
        np.testing.assert_allclose(found[name], y, rtol=1e-5, atol=1e-5)


def growing(text=JOINED, **options):
    """An engine after two runs of different sizes, and the interpreter."""
    model = sabir.parse(text)
    engine = Compiled(model, **options)
    for past in (4, 5):
        engine.run(feeds_of(2, past, 3))
    return engine, Runner(model)


@pytest.mark.parametrize("threads", [1, 2])
def test_one_fast_run_serves_all_sizes(threads):
    engine, runner = growing(threads=threads)
    fast = engine._fast
    for seed, (past, new, batch) in enumerate([
        (6, 3, 2),
        (7, 3, 2),
        (200, 3, 2),
        (3, 5, 2),
        (9, 2, 5),
        (4, 3, 2),
    ]):
        feeds = feeds_of(batch, past, new, seed)
        found = engine.run_fast(feeds)
        assert found is not None
        same(found, runner.run(feeds))
    assert engine._fast is fast


def test_sizes_of_another_pattern_are_refused():
    engine, _ = growing()
    for past, new in ((1, 3), (6, 1), (0, 3)):
        assert engine.run_fast(feeds_of(2, past, new)) is None
    assert engine.run_fast({**feeds_of(2, 6, 3), "new": np.zeros((3, 3, 8), np.float32)}) is None
    assert engine.run_fast({**feeds_of(2, 6, 3), "w": np.zeros((8, 4), np.float32)}) is None
    assert engine.run_fast({**feeds_of(2, 6, 3), "new": [[0.0]]}) is None


def test_a_guard_that_does_not_hold_refuses_the_sizes():
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[A] a, float[B] b) => (float[C] y) { y = Add (a, b) }
    """
    model = sabir.parse(text)
    engine = Compiled(model)
    for size in (4, 5):
        engine.run({"a": np.ones(size, np.float32), "b": np.ones(size, np.float32)})
    assert engine.run_fast({"a": np.ones(6, np.float32), "b": np.ones(6, np.float32)}) is not None
    assert engine.run_fast({"a": np.ones(6, np.float32), "b": np.ones(7, np.float32)}) is None


def test_the_limits_of_a_run_hold():
    engine, _ = growing(limits=Limits(elements=1 << 12, memory=None, work=None))
    assert engine.run_fast(feeds_of(2, 40, 3)) is not None
    assert engine.run_fast(feeds_of(2, 100_000, 3)) is None


def test_a_layout_with_room_follows_only_sizes_within_it():
    engine, _ = growing()
    program = engine._last[0]
    sizes = engine._last[1]
    moving = program.moving_layout(sizes, {**sizes, "P": 20}, [])
    offsets = moving.layout.blocks.copy()
    moving.move({**sizes, "P": 20})
    assert not np.array_equal(moving.layout.blocks, offsets)
    with pytest.raises(Mismatch):
        moving.move({**sizes, "P": 500})


def test_several_threads_run_other_sizes_at_once():
    engine, runner = growing()
    wrong = []

    def run(seed):
        for past in range(6, 40, 3):
            feeds = feeds_of(2, past + seed, 3, seed)
            found, expected = engine.run_fast(feeds), runner.run(feeds)
            if found is None or not np.allclose(found["y"], expected["y"], atol=1e-5):
                wrong.append((seed, past))

    threads = [threading.Thread(target=run, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_results_that_are_empty_for_some_sizes_and_sizes_as_numbers():
    text = """
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[N] x) => (float[M] y, float[1] n) {
      first = Constant <value_ints = [3]> ()
      last = Constant <value_ints = [1000]> ()
      part = Slice (x, first, last)
      y = Exp (part)
      sizes = Shape (x)
      n = Cast <to = 1> (sizes)
    }
    """
    model = sabir.parse(text)
    session, runner = sabir.Session(model), Runner(model)
    for size in (3, 2, 3, 2, 4, 5, 2, 3, 9, 8):
        feeds = {"x": np.arange(size, dtype=np.float32)}
        same(session.run(feeds), runner.run(feeds))


# ---------------------------------------------------------------- inputs that are sizes

FIRST = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N,4] x, int64[1] count) => (float[M,4] y) {
  zero = Constant <value = int64[1] {0}> ()
  part = Slice (x, zero, count, zero)
  y = Relu (part)
}
"""


@pytest.mark.parametrize("engine", ["compiled", "reference"])
def test_an_input_may_be_a_size(engine):
    session = sabir.Session(sabir.parse(FIRST), engine=engine, sizes=["count"])
    x = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)
    for count in (3, 4, 5, 1, 0, 9, 2, 20, 6):
        found = session.run({"x": x, "count": np.int64([count])})["y"]
        np.testing.assert_array_equal(found, np.maximum(x[:count], 0))


def test_a_plan_serves_all_numbers_of_an_input_that_is_a_size():
    engine = Compiled(sabir.parse(FIRST), settings=sabir.compilation.Settings(sizes=("count",)))
    x = np.ones((9, 4), np.float32)
    for count in range(2, 9):
        engine.run({"x": x, "count": np.int64([count])})
    (program,) = engine._plans
    assert program.is_native
    assert engine.run_fast({"x": x, "count": np.int64([5])})["y"].shape == (5, 4)
    assert engine.run_fast({"x": x, "count": np.int64([1])}) is None
    assert engine.run_fast({"x": x, "count": np.int64([-3])}) is None


def test_numbers_that_sizes_determine_stay_numbers():
    """Exporters of PyTorch compute the scale of attention from the size of a head: here it is 0.5."""
    model = sabir.parse("""
    <ir_version: 10, opset_import: ["" : 21]>
    g (float[B,P,16] past, float[B,S,16] new) => (float[B,T,16] present, float[B,S,T] y)
      <int64[1] last = {-1}, int64[1] end = {9223372036854775807}> {
      present = Concat <axis = 1> (past, new)
      shape = Shape (new)
      size = Slice (shape, last, end)
      number = Cast <to = 1> (size)
      root = Sqrt (number)
      square = Reciprocal (root)
      scale = Sqrt (square)
      scaled = Mul (new, scale)
      transposed = Transpose <perm = [0, 2, 1]> (present)
      keys = Mul (transposed, scale)
      y = MatMul (scaled, keys)
    }""")
    compiled, reference = sabir.Session(model), sabir.Session(model, engine="reference")
    rng = np.random.default_rng(0)
    past = np.zeros((1, 2, 16), np.float32)
    for _ in range(7):
        feeds = {"past": past, "new": rng.standard_normal((1, 1, 16)).astype(np.float32)}
        expected = reference.run(feeds)
        same(compiled.run(feeds), expected)
        past = expected["present"]
