"""Plans in stages: what follows a rank or a size that a run decides is compiled for what came."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.engine.staged import StagedProgram

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.linspace(-2, 3, 24, dtype=np.float32).reshape(4, 6)
YES, NO = np.ones((), np.bool_), np.zeros((), np.bool_)


def model_of(text):
    return sabir.parse(HEAD + text)


def agree(text, *runs, threads=1):
    """Compare the results of both engines, each run three times, the later ones fast; return the engine."""
    model = model_of(text)
    engine = Compiled(model, threads=threads)
    for feeds in runs:
        expected = sabir.evaluate(model, feeds)
        for turn in range(3):
            found = engine.run_fast(feeds) if turn else None
            if found is None:
                found = engine.run(feeds)
            for name, value in expected.items():
                if isinstance(value, np.ndarray):
                    np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
                    assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape)
                else:
                    assert len(found[name]) == len(value)
                    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(found[name], value, strict=True))
        assert engine.run_fast(feeds) is not None
    return engine


def parts_of(engine):
    """Return the plans of all stages, which have no evaluated calls."""
    found = list(engine._plans)
    assert all(program.is_native for program in found)
    return found


def scalar(number):
    return np.array(number, np.int64)


RANKS = """g (bool c, float[n,m] x) => (y) <int64[1] zero = {0}> {
    t = Mul (x, x)
    r = If (c) <then_branch = a () => (p) { p = Unsqueeze (t, zero) }, else_branch = b () => (q) { q = Relu (x) }>
    s = Exp (r)  u = Softmax <axis = -1> (s)  y = Add (u, r) }"""


@pytest.mark.parametrize("threads", [1, 2])
def test_branches_of_different_ranks(threads):
    engine = agree(RANKS, *({"c": c, "x": X} for c in (YES, NO, YES)), threads=threads)
    assert len(parts_of(engine)) == 3  # the first stage, and what follows for each rank


def test_a_computed_condition_chooses_the_plan_of_what_follows():
    text = RANKS.replace("bool c, ", "").replace(
        "r = If", "top = ReduceMax <keepdims = 0> (x)  limit = Constant <value = float {1.0}> ()"
        "  c = Greater (top, limit)  r = If"
    )  # fmt: skip
    engine = agree(text, {"x": X}, {"x": -X / 4}, {"x": X})
    assert len(parts_of(engine)) == 3


def test_an_undeclared_shape_is_compared_in_each_fast_run():
    text = """g (float[n] x) => (float[n] y) <int64[1] k = {0}> {
        found = NonZero (x)  rows = Squeeze (found, k)  picked = Gather (x, rows)  y = Tanh (picked) }"""
    engine = Compiled(model_of(text))
    whole, part = np.ones(4, np.float32), np.float32([1, 0, 1, 0])
    engine.run({"x": whole})
    with pytest.warns(sabir.SabirWarning, match="y"):
        found = engine.run_fast({"x": part}) or engine.run({"x": part})
    assert found["y"].shape == (2,)


def test_sizes_that_change_from_run_to_run():
    agree(RANKS, *({"c": c, "x": X[:n, :m]} for n, m in ((4, 6), (1, 6), (3, 1), (2, 2)) for c in (YES, NO)))


@pytest.mark.parametrize("elements", [0, 1, 5, 6])
def test_rows_that_are_found(elements):
    text = """g (float[n] x) => (y, rows) <int64 zero = {0}, int64[1] one = {1}> {
        a = Relu (x)  found = NonZero (a)  rows = Squeeze (found, k)
        picked = Gather (a, rows)  s = Sqrt (picked)  y = Mul (s, picked)  }"""
    text = text.replace("int64[1] one = {1}", "int64[1] k = {0}")
    x = np.zeros(6, np.float32)
    x[:elements] = np.arange(1, elements + 1)
    agree(text, {"x": x})


def test_the_number_of_found_rows_changes():
    text = """g (float[n] x) => (y) <int64[1] k = {0}> {
        found = NonZero (x)  rows = Squeeze (found, k)  picked = Gather (x, rows)  y = Tanh (picked) }"""
    rng = np.random.default_rng(0)
    agree(text, *({"x": (rng.random(16) < part).astype(np.float32)} for part in (0.5, 0.1, 0.9, 0.5, 0, 1)))


def test_a_computed_number_of_results():
    text = """g (float[n] x, float limit) => (v, i, y) {
        k = Constant <value = int64[1] {1}> ()
        big = Greater (x, limit)  b = Cast <to = 7> (big)  count = ReduceSum <keepdims = 1> (b)
        v, i = TopK (x, count)  s = Exp (v)  y = Mul (s, v) }"""
    x = np.random.default_rng(1).standard_normal(20).astype(np.float32)
    limits = (np.array(limit, np.float32) for limit in (0.0, -9.0, 9.0, np.sort(x)[-2], 0.5))
    engine = agree(text, *({"x": x, "limit": limit} for limit in limits))
    assert parts_of(engine)


def test_a_fed_number_of_turns_and_shapes():
    text = """g (int64 most, int64[2] shape, float[n] x) => (y, all) {
        zero = Constant <value = float {0.0}> ()
        y, all = Loop (most, "", zero) <body = b (int64 i, bool c, float s) => (bool c, float t, float t) {
            e = Gather (x, i)  t = Add (s, e) }>
        r = Reshape (x, shape)  z = Softmax (r) }"""
    text = text.replace("(y, all) {", "(y, all, z) {")
    x = np.arange(6, dtype=np.float32)
    runs = [
        {"most": scalar(n), "shape": np.array(shape), "x": x}
        for n in (0, 1, 2, 6) for shape in ((2, 3), (6, 1), (-1, 3))
    ]  # fmt: skip
    agree(text, *runs)


def test_several_deciding_calls_one_after_another():
    text = """g (float[n] x) => (y, z) {
        k = Constant <value = int64[1] {0}> ()  limit = Constant <value = float {0.5}> ()
        f = NonZero (x)  g = Squeeze (f, k)  p = Gather (x, g)
        big = Greater (p, limit)  q = Compress <axis = 0> (p, big)  u, a, b, c = Unique (q)
        y = Exp (u)  h = Cast <to = 1> (c)  z = Mul (y, h) }"""
    rng = np.random.default_rng(2)
    engine = agree(text, *({"x": np.float32(rng.integers(0, 4, 12) / 3)} for _ in range(5)))
    assert len(parts_of(engine)) >= 2


def test_sequences_between_stages():
    text = """g (float[4,6] x, int64 k) => (y, all) {
        parts = SplitToSequence <axis = 0, keepdims = 0> (x)
        one = SequenceAt (parts, k)  s = Exp (one)  y = Add (s, one)
        all = SequenceInsert (parts, y) }"""
    agree(text, *({"x": X, "k": scalar(n)} for n in (0, 3, -1)))


def test_a_result_that_no_stage_computes_is_not_shared():
    text = """g (float[n] x) => (x2, found, y) { x2 = Identity (x)  found = NonZero (x)  y = Neg (found) }"""
    engine = agree(text, {"x": X[0]})
    feeds = {"x": X[0].copy()}
    first, second = engine.run_fast(feeds), engine.run_fast(feeds)
    arrays = [*feeds.values(), *first.values(), *second.values()]
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])


def test_errors_are_those_of_the_interpreter():
    text = """g (float[n] x, int64 k) => (y) {
        f = NonZero (x)  g = Gather <axis = 1> (f, k)  h = Cast <to = 1> (g)  y = Exp (h) }"""
    engine = agree(text, {"x": X[0], "k": scalar(1)})
    feeds = {"x": X[0], "k": scalar(77)}
    with pytest.raises(sabir.EvaluationError) as expected:
        sabir.evaluate(model_of(text), feeds)
    assert engine.run_fast(feeds) is None
    with pytest.raises(sabir.EvaluationError) as found:
        engine.run(feeds)
    assert str(found.value) == str(expected.value)


def test_limits_hold_in_later_stages():
    text = """g (float[n] x, int64[1] count) => (y) { e = Expand (x, count)  y = Exp (e) }"""
    limits = sabir.Limits(elements=1000, memory=1 << 20)
    engine = Compiled(model_of(text), limits=limits)
    x = np.ones(1, np.float32)
    assert engine.run({"x": x, "count": np.array([10])})["y"].shape == (10,)
    for count in (1 << 20, 1 << 40):
        feeds = {"x": x, "count": np.array([count])}
        for run in (engine.run, lambda f: sabir.evaluate(model_of(text), f, limits=limits)):
            with pytest.raises(sabir.LimitError):
                run(feeds)
        assert engine.run_fast(feeds) is None


def test_several_threads_run_different_shapes():
    engine = Compiled(model_of(RANKS), threads=2)
    model, wrong = model_of(RANKS), []
    cases = [{"c": c, "x": X[:n].copy()} for n in (2, 4) for c in (YES, NO)]
    expected = [sabir.evaluate(model, feeds)["y"] for feeds in cases]

    def work(feeds, y):
        for _ in range(40):
            found = engine.run_fast(feeds) or engine.run(feeds)
            if found["y"].shape != y.shape or not np.allclose(found["y"], y, rtol=1e-5, atol=1e-6):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=case) for case in zip(cases, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_staged_session_can_be_released_cancelled_and_explained():
    engine = agree(RANKS, {"c": YES, "x": X})
    explanation = engine.explain()
    assert not explanation.evaluated
    assert explanation.later == tuple(
        f"{op} with output '{v}'" for op, v in (("If", "r"), ("Exp", "s"), ("Softmax", "u"), ("Add", "y"))
    )
    assert str(explanation).startswith("5 nodes: 1 kernel, nothing evaluated, 4 compiled in a run")
    engine.release()
    assert engine.run_fast({"c": YES, "x": X}) is None
    engine.cancel()
    agree(RANKS, {"c": NO, "x": X})
    np.testing.assert_allclose(
        engine.run({"c": YES, "x": X})["y"],
        sabir.evaluate(model_of(RANKS), {"c": YES, "x": X})["y"],
        rtol=1e-5,
    )


TEXTS = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 3]>
g (string[n] s, float[n,2] x) => (label, z, s2) <float[5,2] w = {1, 2, 3, -4, 5, 6, -7, 8, 9, 1}> {
    h = ai.onnx.ml.OneHotEncoder <cats_strings = ["a", "b", "c"], zeros = 0> (s)
    f = Concat <axis = 1> (x, h)  p = MatMul (f, w)  q = Softmax (p)
    k = ArgMax <axis = 1, keepdims = 0> (p)
    label = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_strings = ["no", "yes"]> (k)
    z = ai.onnx.ml.ZipMap <classlabels_strings = ["no", "yes"]> (q)
    s2 = StringConcat (s, s) }"""


def texts(*words):
    return {"s": np.array(words, object), "x": np.float32([[n, -n] for n in range(len(words))])}


def test_texts_between_and_behind_kernels():
    model = sabir.parse(TEXTS)
    engine = Compiled(model, threads=1)
    for feeds in (texts("a", "c"), texts("b", "b"), texts("c", "a", "b"), texts("a")):
        expected = sabir.evaluate(model, feeds)
        for turn in range(3):
            found = (engine.run_fast(feeds) if turn else None) or engine.run(feeds)
            assert found["label"].tolist() == expected["label"].tolist()
            assert found["s2"].tolist() == expected["s2"].tolist()
            assert [m.keys() for m in found["z"]] == [m.keys() for m in expected["z"]]
            values = [[*m.values()] for m in expected["z"]]
            np.testing.assert_allclose([[*m.values()] for m in found["z"]], values, rtol=1e-5)
        assert engine.run_fast(feeds) is not None


def test_a_call_between_stages_that_fails_is_the_error_of_the_interpreter():
    engine = Compiled(sabir.parse(TEXTS), threads=1)
    for _ in range(3):
        engine.run(texts("a", "c"))
    feeds = texts("a", "unknown")
    assert engine.run_fast(feeds) is None
    with pytest.raises(sabir.EvaluationError, match="'unknown' is in none of the categories"):
        engine.run(feeds)
    assert engine.run_fast(texts("a", "c")) is not None


def test_a_staged_run_with_limits_makes_its_calls_under_them():
    model = sabir.parse(TEXTS)
    engine = Compiled(model, threads=1, limits=sabir.Limits(memory=1 << 20))
    for _ in range(3):
        found = engine.run_fast(texts("a", "c")) or engine.run(texts("a", "c"))
    assert found["label"].tolist() == sabir.evaluate(model, texts("a", "c"))["label"].tolist()


def test_results_of_calls_between_stages_are_the_callers_own():
    text = """g (float[n,m] x) => (i, c, y, s) {
        u, i, v, c = Unique (x)  r = Cast <to = 1> (c)  y = Exp (r)  s = SequenceConstruct (u, u) }"""
    engine = agree(text, {"x": X})
    first, second = engine.run_fast({"x": X}), engine.run_fast({"x": X})
    assert first is not None
    assert second is not None
    for results in (first, second):
        a, b = results.pop("s")
        results |= {"a": a, "b": b}
    arrays = [X, *first.values(), *second.values()]
    assert not any(np.may_share_memory(a, b) for n, a in enumerate(arrays) for b in arrays[:n])


KEPT = """g (float[n,4] boxes, float[n] scores) => (float[k,4] y) <float none = {0.5}, int64[2] one = {1, -1}> {
    large = Greater (scores, none)  found = NonZero (large)  flat = Constant <value = int64[1] {-1}> ()
    rows = Reshape (found, flat)  b = Gather (boxes, rows)  s = Gather (scores, rows)
    size = Size (b)  zero = Constant <value = int64 {0}> ()  is_empty = Equal (size, zero)
    kept = If (is_empty) <
        then_branch = nothing () => (int64[m] e) { e = Constant <value = int64[0] {}> () },
        else_branch = some () => (int64[p] k) {
            first = Constant <value = int64[1] {0}> ()  top = Constant <value = int64[1] {9}> ()
            last = Constant <value = int64[1] {2}> ()  both = Constant <value = int64[2] {0, 1}> ()
            bb = Unsqueeze (b, first)  ss = Unsqueeze (s, both)  part = Constant <value = float[1] {0.5}> ()
            chosen = NonMaxSuppression (bb, ss, top, part)
            column = Gather <axis = 1> (chosen, last)  axis = Constant <value = int64[1] {1}> ()
            k = Squeeze (column, axis) } >
    z = Gather (b, kept)  t = Tanh (z)  y = Mul (t, t) }"""


def boxes_of(count, seed=0):
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 1, (12, 2)).astype(np.float32)
    return {
        "boxes": np.concatenate([corners, corners + np.float32(0.4)], axis=1),
        "scores": random.uniform(0.6, 1, 12).astype(np.float32) * (np.arange(12) < count),
    }


def test_a_branch_that_a_run_knows_is_a_part_of_the_stages():
    engine = agree(KEPT, boxes_of(7), boxes_of(9, 1), boxes_of(7, 2))
    assert not [call.label for program in engine._plans for call in program.calls.values()]
    model = model_of(KEPT)
    for count in (0, 1, 2, 5, 0, 12):
        feeds = boxes_of(count, 3)
        found = engine.run_fast(feeds) or engine.run(feeds)
        np.testing.assert_allclose(found["y"], sabir.evaluate(model, feeds)["y"], rtol=1e-5)


def test_direct_runs_that_fail_again_and_again_are_left_out(monkeypatch):
    text = """g (float[n] x, int64 m) => (y) <int64[1] w = {-1}> {
        found = NonZero (x)  rows = Reshape (found, w)  picked = Gather (x, rows)
        e = SequenceEmpty ()
        all = Loop (m, , e) <body = b (int64 i, bool c, seq(float[p]) s) => (c, t) {
            zero = Constant <value = int64 {0}> ()  t = SequenceInsert (s, picked, zero) }>
        j = ConcatFromSequence <axis = 0> (all)  z = Tanh (j)  y = Mul (z, z) }"""
    model, feeds = model_of(text), {"x": np.float32([0, 1, 2, 0]), "m": scalar(2)}
    engine, attempts = Compiled(model), []
    whole = StagedProgram._attempted
    monkeypatch.setattr(
        StagedProgram, "_attempted", lambda self, *args: attempts.append(self) or whole(self, *args)
    )
    for _ in range(40):
        found = engine.run_fast(feeds) or engine.run(feeds)
        np.testing.assert_allclose(found["y"], sabir.evaluate(model, feeds)["y"], rtol=1e-5)
    assert 0 < len(attempts) < 20


def test_what_is_no_text_is_refused_after_direct_runs():
    text = """g (string[n] x) => (float[m] y) { parts, count = StringSplit (x)
        f = Cast <to = 1> (count)  rows = NonZero (f)  flat = Constant <value = int64[1] {-1}> ()
        r = Reshape (rows, flat)  y = Cast <to = 1> (r) }"""
    engine, good = Compiled(model_of(text)), {"x": np.array(["a b", "", "c"], object)}
    for _ in range(3):
        engine.run(good)
    assert engine.run_fast(good) is not None
    bad = {"x": np.array(["a b", None, "c"], object)}
    assert engine.run_fast(bad) is None
    with pytest.raises(sabir.FeedError, match="pass texts"):
        engine.run(bad)
