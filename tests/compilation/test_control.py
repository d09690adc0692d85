"""Branches and loops as parts of a plan: the results, the errors and the limits of the interpreter."""

from __future__ import annotations

import signal
import threading
import time
import warnings

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.compilation import Compiled

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
X = np.linspace(-2, 3, 8, dtype=np.float32)
YES, NO = np.ones((), np.bool_), np.zeros((), np.bool_)


def model_of(text):
    return sabir.parse(HEAD + text)


def agree(text, *runs, threads=1, native=True):
    """Compare the results of both engines, each run twice: the second one is fast. Return the last results."""
    model = model_of(text)
    engine = Compiled(model, threads=threads)
    found = {}
    for feeds in runs:
        expected = sabir.evaluate(model, feeds)
        for turn in range(2):
            found = engine.run_fast(feeds) if turn else engine.run(feeds)
            if found is None:
                assert not native or turn
                found = engine.run(feeds)
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)
                assert found[name].dtype == value.dtype
                assert found[name].shape == value.shape
    if native:
        assert not engine.explain().evaluated
        assert engine.run_fast(runs[-1]) is not None
    return found


def scalar(number):
    return np.array(number, np.int64)


# ---------------------------------------------------------------- branches


IF = """g (bool c, float[n] x, float[n] w) => (float[n] y, float[n] z) {
    t = Mul (x, w)
    y, z = If (c) <then_branch = a () => (float[n] p, float[n] q) { p = Tanh (t)  q = Add (p, x) },
                   else_branch = b () => (float[n] p, float[n] q) { p = Identity (t)  q = Neg (w) }> }"""


@pytest.mark.parametrize("threads", [1, 2])
def test_one_branch_runs(threads):
    agree(IF, *({"c": c, "x": X, "w": X[::-1].copy()} for c in (YES, NO, YES)), threads=threads)


def test_a_branch_for_sizes_of_a_run():
    agree(IF, *({"c": c, "x": X[:n], "w": X[:n]} for n in (8, 1, 3, 8, 5) for c in (YES, NO)))


def test_a_branch_that_does_not_run_makes_no_error():
    text = """g (bool c, int64 k, float[8] x) => (y) {
        y = If (c) <then_branch = a () => (float p) { p = Gather (x, k) },
                    else_branch = b () => (float p) { p = ReduceSum <keepdims = 0> (x) }> }"""
    agree(text, {"c": YES, "k": scalar(3), "x": X}, {"c": NO, "k": scalar(99), "x": X})
    feeds = {"c": YES, "k": scalar(99), "x": X}
    engine = Compiled(model_of(text))
    engine.run({"c": NO, "k": scalar(99), "x": X})
    with pytest.raises(sabir.EvaluationError) as expected:
        sabir.evaluate(model_of(text), feeds)
    with pytest.raises(sabir.EvaluationError) as found:
        engine.run(feeds)
    assert str(found.value) == str(expected.value)


def test_results_that_are_outer_values_constants_and_twice_the_same():
    text = """g (bool c, float[2,4] x) => (p, q, r) <float[2,4] k = {1,2,3,4,5,6,7,8}> { p, q, r = If (c) <
    then_branch = a () => (u, u, k) { u = Identity (x) }, else_branch = b () => (k, v, m) { s = Transpose (x)
    v = Transpose (s)  m = Constant <value = float[2,4] {0,0,0,0,0,0,0,9}> () }> }"""
    agree(text, *({"c": c, "x": X.reshape(2, 4)} for c in (YES, NO)))


def test_operands_that_are_views_and_joined_tensors():
    text = """g (bool c, float[8] x) => (y, z) <int64[1] one = {1}, int64[1] five = {5}> { s = Slice (x, one,
    five)  j = Concat <axis = 0> (s, x) y, z = If (c) <then_branch = a () => (p, q) { p = Neg (s)  q = Neg (j)
    }, else_branch = b () => (p, q) { f = Slice (j, one, five)  p = Add (f, s)  q = Add (j, j) }> k = Constant
    <value = int64[2] {3, 4}> () }"""
    agree(text, *({"c": c, "x": X} for c in (YES, NO)))


def test_branches_within_branches():
    text = """g (bool c, bool d, float[8] x) => (y) { y = If (c) < then_branch = a () => (p) { t = Exp (x) p =
    If (d) <then_branch = aa () => (u) { u = Mul (t, x) }, else_branch = ab () => (v) { v = Sqrt (t) }> },
    else_branch = b () => (q) { q = If (d) <then_branch = ba () => (u) { u = Neg (x) }, else_branch = bb () =>
    (v) { v = Abs (x) }> }> }"""
    agree(text, *({"c": c, "d": d, "x": X} for c in (YES, NO) for d in (YES, NO)))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_conditions_of_one_element(shape):
    text = f"""g (bool[{",".join(map(str, shape))}] c, float[8] x) => (y) {{
        y = If (c) <then_branch = a () => (p) {{ p = Neg (x) }}, else_branch = b () => (p) {{ p = Abs (x) }}> }}"""
    if not shape:
        text = text.replace("bool[] c", "bool c")
    agree(text, *({"c": np.full(shape, c), "x": X} for c in (True, False)))


def test_a_condition_of_several_elements_is_refused_by_both_engines():
    text = """g (bool[m] c, float[8] x) => (y) {
        y = If (c) <then_branch = a () => (p) { p = Neg (x) }, else_branch = b () => (p) { p = Abs (x) }> }"""
    feeds = {"c": np.array([True, False]), "x": X}
    for run in (Compiled(model_of(text)).run, lambda f: sabir.evaluate(model_of(text), f)):
        with pytest.raises(sabir.EvaluationError, match="one element"):
            run(feeds)
    agree(text, {"c": np.array([True]), "x": X}, native=False)


def test_what_contradicts_a_declared_type_of_a_branch_is_a_warning_of_both_engines():
    text = """g (bool c, float[8] x) => (y) { y = If (c) <then_branch = a () => (float[4] p) { p = Neg (x) },
    else_branch = b () => (p) { p = Abs (x) }> }"""
    for run in (Compiled(model_of(text)).run, lambda f: sabir.evaluate(model_of(text), f)):
        with pytest.warns(sabir.SabirWarning, match=r"output 'p' of the subgraph 'a'"):
            run({"c": YES, "x": X})


# ---------------------------------------------------------------- loops


def test_states_are_carried_for_any_number_of_iterations():
    text = """g (int64 most, float[n] x, float[n] w) => (y, i, last) { zero = Constant <value = int64 {0}> ()
    k = Constant <value = float {0.5}> () y, i, last = Loop (most, "", x, zero, w) < body = b (int64 i, bool
    c, float[n] s, int64 j, float[n] t) => (bool d, float[n] u, int64 i, float[n] s) { d = Identity (c)  m =
    Mul (s, k)  a = Add (m, t)  u = Tanh (a) }> }"""
    counts = (-3, 0, 1, 2, 3, 17)
    agree(text, *({"most": scalar(n), "x": X, "w": X[::-1].copy()} for n in counts))
    agree(text, *({"most": scalar(n), "x": X[:m], "w": X[:m]} for n in counts for m in (1, 3)))


def test_a_loop_may_end_by_its_condition_at_any_iteration():
    text = """g (bool go, int64 end, int64 most) => (y, n) { one = Constant <value = int64 {1}> () y, n = Loop
    (most, go, one, one) <body = b (int64 i, bool c, int64 s, int64 m) => (bool d, int64 t, int64 i) { t = Add
    (s, s)  d = Less (t, end) }> }"""
    runs = [
        {"go": np.array(go), "end": scalar(end), "most": scalar(most)}
        for go in (True, False) for end in (0, 2, 32, 1 << 40) for most in (0, 1, 50)
    ]  # fmt: skip
    agree(text, *runs)
    agree(
        text.replace("(most, go", '("", go').replace(", int64 most)", ")"),
        *({k: f[k] for k in ("go", "end")} for f in runs[::3]),
    )


def test_a_loop_without_a_condition_ignores_that_of_its_body():
    text = """g (int64 most, float[8] x) => (y) { never = Constant <value = bool {0}> () y = Loop (most, "",
    x) <body = b (int64 i, bool c, float[8] s) => (bool never, float[8] t) { t = Cos (s) }> }"""
    agree(text, *({"most": scalar(n), "x": X} for n in (0, 1, 5)))


def test_results_of_a_known_number_of_iterations_are_stacked():
    text = """g (float[n,4] x) => (y, all, numbers) { shape = Shape (x)  zero = Constant <value = int64[1]
    {0}> ()  first = Constant <value = int64[1] {1}> () count = Slice (shape, zero, first)  most = Squeeze
    (count) start = Constant <value = float[4] {0, 0, 0, 0}> () y, all, numbers = Loop (most, "", start) <
    body = b (int64 i, bool c, float[4] s) => (bool d, float[4] t, float[4] item, int64 i) { d = Identity (c)
    row = Gather (x, i)  t = Add (s, row)  item = Mul (t, row) }> }"""
    agree(text, *({"x": np.arange(4 * n, dtype=np.float32).reshape(n, 4)} for n in (0, 1, 2, 5, 64)))


def test_stacked_results_that_a_call_does_not_name():
    text = """g (float[64] x) => (all) {
        zero = Constant <value = float {0.0}> ()  most = Constant <value = int64 {64}> ()
        "", all = Loop (most, "", zero) <body = b (int64 i, bool c, float s) => (bool c, float t, float[64] a, float u) {
            e = Gather (x, i)  t = Add (s, e)  a = Add (x, e)  u = Neg (t) }> }"""
    agree(
        text.replace("=> (all)", "=> (b)").replace('"", all', '"", "", b'),
        {"x": np.arange(64, dtype=np.float32)},
    )
    agree(text, {"x": np.arange(64, dtype=np.float32)})


@pytest.mark.parametrize("directions", ["0, 0", "1, 0", "1, 1"])
def test_a_scan_whose_body_is_no_recurrence_is_a_loop_over_slices(directions):
    text = f"""g (float[4] s, float[n,4] x, int64[n,2] w) => (y, z, p, q) <int64[1] two = {{2}}> {{
        y, z, p, q = Scan <num_scan_inputs = 2, scan_input_directions = [{directions}],
            body = b (float[4] a, float[4] r, float[4] e, int64[2] i)
                => (float[4] c, float[4] a, float[4] m, int64[2] k) {{
                    v, k = TopK (e, two)  t = Gather (a, i)  u = ReduceSum <keepdims = 0> (t)
                    d = Add (e, u)  c = Softmax (d)  m = Mul (r, c) }}> (s, s, x, w) }}"""
    rng = np.random.default_rng(4)
    runs = [
        {
            "s": rng.standard_normal(4).astype(np.float32), "x": rng.standard_normal((n, 4)).astype(np.float32),
            "w": rng.integers(0, 4, (n, 2)),
        }
        for n in (1, 2, 5, 33)
    ]  # fmt: skip
    agree(text, *runs)


def test_loops_and_branches_within_a_loop():
    text = """g (int64 most, float[8] x) => (y) { two = Constant <value = int64 {2}> ()  zero = Constant
    <value = int64 {0}> () half = Constant <value = float {0.5}> () y = Loop (most, "", x) <body = b (int64 i,
    bool c, float[8] s) => (bool d, float[8] t) { d = Identity (c)  r = Mod (i, two)  even = Equal (r, zero) u
    = If (even) <then_branch = p () => (o) { o = Tanh (s) }, else_branch = q () => (o) { o = Add (s, x) }> t =
    Loop (i, "", u) <body = bb (int64 j, bool e, float[8] a) => (bool e, float[8] h) { h = Mul (a, half) }> }>
    }"""
    agree(text, *({"most": scalar(n), "x": X} for n in (0, 1, 2, 7)))


def test_states_swap_places():
    text = """g (int64 most, float[8] x, float[8] w) => (y, z) { y, z = Loop (most, "", x, w) <body = b (int64
    i, bool c, float[8] s, float[8] t) => (bool c, float[8] t, float[8] u) { u = Add (s, t) }> }"""
    agree(text, *({"most": scalar(n), "x": X, "w": X[::-1].copy()} for n in (0, 1, 2, 3, 9)))


def test_what_follows_and_precedes_a_loop_is_compiled_with_it():
    text = """g (int64 most, float[16,16] x) => (y) {
        a = MatMul (x, x)  b = Softmax (a)
        c = Loop (most, "", b) <body = f (int64 i, bool c, float[16,16] s) => (bool c, float[16,16] t) {
            u = MatMul (s, a)  t = Softmax (u) }>
        d = Transpose (c)  e = MatMul (d, b)  y = Add (e, x) }"""
    x = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    for threads in (1, 2):
        agree(text, *({"most": scalar(n), "x": x} for n in (0, 1, 6)), threads=threads)


@pytest.mark.parametrize("threads", [1, 2])
def test_large_loops_run_on_all_threads(threads):
    text = """g (int64 most, float[96,256] x, float[256,256] w) => (y, n) { zero = Constant <value = int64
    {0}> ()  bound = Constant <value = float {0.9}> () two = Constant <value = int64 {2}> () y, n = Loop
    (most, "", x, zero) <body = f (int64 i, bool c, float[96,256] s, int64 m) => (bool c, float[96,256] t,
    int64 k) { u = MatMul (s, w)  r = Mod (i, two)  odd = Cast <to = 9> (r) v = If (odd) <then_branch = p ()
    => (o) { e = MatMul (u, w)  o = Add (e, u) }, else_branch = q () => (o) { o = Relu (u) }> t = Softmax (v)
    one = ReduceMax <keepdims = 0> (t)  big = Greater (one, bound)  b = Cast <to = 7> (big)  k = Add (m, b) }>
    }"""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((96, 256), (256, 256)))
    agree(text, *({"most": scalar(n), "x": x, "w": w} for n in (1, 2, 25)), threads=threads)


def test_a_body_whose_index_is_out_of_range_fails_as_in_the_interpreter():
    text = """g (int64 most, float[8] x) => (y) {
        zero = Constant <value = float {0.0}> ()
        y = Loop (most, "", zero) <body = b (int64 i, bool c, float s) => (bool c, float t) {
            e = Gather (x, i)  t = Add (s, e) }> }"""
    agree(text, *({"most": scalar(n), "x": X} for n in (3, 8)))
    engine, feeds = Compiled(model_of(text)), {"most": scalar(9), "x": X}
    engine.run({"most": scalar(8), "x": X})
    with pytest.raises(sabir.EvaluationError) as expected:
        sabir.evaluate(model_of(text), feeds)
    for _ in range(2):
        with pytest.raises(sabir.EvaluationError) as found:
            engine.run(feeds)
        assert str(found.value) == str(expected.value)
        assert engine.run_fast(feeds) is None


def test_kernels_of_many_kinds_within_a_loop():
    text = """g (int64 most, bool c, float[3,1,16] x, float[1,64,16] w) => (y, h) <int64 axis = {0}, int64[1] k = {3},
            int64[1] zero = {0}, int64[1] one = {1}, int64[1] rows = {48}> {
        v = Slice (w, zero, rows, one)
        y, h = Loop (most, "", x, x) <
            body = f (int64 i, bool d, float[3,1,16] s, float[3,1,16] q) => (bool d, float[3,1,16] t, float[3,1,16] r) {
                all, last, cell = LSTM <hidden_size = 16> (s, w, w)  steps = Squeeze (all, one)
                sums = CumSum (steps, axis)  best, places = TopK <axis = 2> (sums, k)
                t = ScatterElements <axis = 2> (steps, places, best)
                r = If (c) <
                    then_branch = a () => (o) { z, e = GRU <hidden_size = 16> (q, v, v)  o = Squeeze (z, one) },
                    else_branch = b () => (o) { o = MaxPool <kernel_shape = [3], pads = [1, 1]> (t) }> }> }"""
    rng = np.random.default_rng(3)
    x, w = (rng.standard_normal(shape).astype(np.float32) / 4 for shape in ((3, 1, 16), (1, 64, 16)))
    runs = [{"most": scalar(n), "c": c, "x": x, "w": w} for n in (0, 1, 4) for c in (YES, NO)]
    for threads in (1, 2):
        agree(text, *runs, threads=threads)


def test_deeply_nested_subgraphs_are_evaluated():
    nodes = "y = Neg (x)"
    for depth in range(30):
        branches = f"then_branch = a{depth} () => (y) {{ {nodes} }}, else_branch = b{depth} () => (y) {{ y = Abs (x) }}"
        nodes = f"y = If (c) <{branches}>"
    agree(f"g (bool c, float[8] x) => (y) {{ {nodes} }}", {"c": YES, "x": X}, native=False)


# ---------------------------------------------------------------- limits

ENDLESS = """g (bool go, float[8] x) => (y) {
    y = Loop ("", go, x) <body = b (int64 i, bool c, float[8] s) => (bool c, float[8] t) { t = Cos (s) }> }"""


def test_an_endless_loop_reaches_the_limit_of_iterations():
    feeds, limits = {"go": YES, "x": X}, Limits(iterations=20_000)
    engine = Compiled(model_of(ENDLESS), limits=limits)
    engine.run({"go": NO, "x": X})
    for _ in range(2):
        with pytest.raises(sabir.LimitError, match="subgraphs ran as often as they may"):
            engine.run(feeds)
        assert engine.run_fast(feeds) is None
    with pytest.raises(sabir.LimitError, match="subgraphs ran as often as they may"):
        sabir.evaluate(model_of(ENDLESS), feeds, limits=limits)


def test_an_endless_loop_reaches_the_limit_of_work():
    model = model_of(ENDLESS.replace("float[8]", "float[n]"))
    feeds = {"go": YES, "x": np.zeros(1 << 14, np.float32)}
    with pytest.raises(sabir.LimitError):
        Compiled(model, limits=Limits(work=1 << 26)).run(feeds)


def test_an_endless_loop_reaches_the_limit_of_time():
    engine = Compiled(model_of(ENDLESS), limits=Limits(iterations=None, work=None, seconds=0.5))
    began = time.perf_counter()
    with pytest.raises(sabir.LimitError, match="time"):
        engine.run({"go": YES, "x": X})
    assert time.perf_counter() - began < 20


@pytest.mark.parametrize("fast", [False, True])
def test_an_endless_loop_is_cancelled_from_another_thread(fast):
    engine = Compiled(model_of(ENDLESS), limits=Limits(iterations=None, work=None))
    engine.run({"go": NO, "x": X})
    timer = threading.Timer(0.2, engine.cancel)
    timer.start()
    with pytest.raises(sabir.CancelledError):
        (engine.run_fast if fast else engine.run)({"go": YES, "x": X})
    timer.join()
    assert engine.run({"go": NO, "x": X})["y"].tolist() == X.tolist()


def test_a_keyboard_interrupt_ends_a_loop():
    """Python handles signals between slices of native code."""

    def interrupt(*_):
        raise KeyboardInterrupt

    engine = Compiled(model_of(ENDLESS), limits=Limits(iterations=None, work=None))
    engine.run({"go": NO, "x": X})
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            engine.run_fast({"go": YES, "x": X})
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert engine.run_fast({"go": NO, "x": X})["y"].tolist() == X.tolist()


def test_several_threads_run_one_session():
    text = """g (int64 most, float[8] x) => (y) { y = Loop (most, "", x) <body = b (int64 i, bool c, float[8]
    s) => (bool c, float[8] t) { u = Add (s, x)  t = Tanh (u) }> }"""
    model = model_of(text)
    engine = Compiled(model, threads=2)
    cases = [{"most": scalar(n), "x": X + n} for n in range(4)]
    expected = [sabir.evaluate(model, feeds)["y"] for feeds in cases]
    engine.run(cases[0])
    wrong = []

    def work(feeds, y):
        for _ in range(200):
            found = engine.run_fast(feeds) or engine.run(feeds)
            if not np.allclose(found["y"], y, rtol=1e-5, atol=1e-6):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=case) for case in zip(cases, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# ---------------------------------------------------------------- looking inside

WHOLE = """g (int64 most, bool c, float[n,4] x) => (y, z) {
    a = Exp (x)  w = Constant <value = float[4,4] {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}> ()
    z = If (c) <then_branch = p () => (o) { o = MatMul (a, w) }, else_branch = q () => (o) { o = Neg (a) }>
    b = Softmax (z)
    y = Loop (most, "", b) <body = f (int64 i, bool c, float[n,4] s) => (bool c, float[n,4] t) { t = Tanh (s) }>
}"""


@pytest.mark.parametrize("threads", [1, 2])
def test_profiles_and_listings_of_a_plan_with_control_flow(threads):
    engine = Compiled(model_of(WHOLE), threads=threads)
    feeds = {"most": scalar(5), "c": YES, "x": X.reshape(2, 4)}
    profile = engine.profile(feeds, runs=2)
    kinds = [timing.kind for timing in profile.timings]
    assert [k for k in kinds if k.startswith(("choice", "jump", "loop"))] == [
        "choice", "jump", "loopstart", "looptest", "loopnext", "loopend",
    ]  # fmt: skip
    assert all(timing.seconds > 0 for timing in profile.timings if timing.kind == "nest")
    plan = engine.compile(feeds)
    for form in ("loops", "schedule", "plan", "llvm", "asm", "channels-last"):
        assert list(plan.listing(form))
    assert any("t: float[n,4] = tanh(s)" in line for line in plan.listing("loops"))
    assert "jump at the end of the loop, by its limit" in "\n".join(plan.listing("schedule"))


def test_a_plan_with_control_flow_is_read_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path))
    feeds = {"most": scalar(5), "c": YES, "x": X.reshape(2, 4)}
    engines = [Compiled(model_of(WHOLE)) for _ in range(2)]
    first, second = (engine.run(feeds) for engine in engines)
    assert [[plan.prepared is None for plan in engine._plans] for engine in engines] == [[False], [True]]
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value)
    other = engines[1].run(feeds | {"c": NO})
    np.testing.assert_allclose(other["z"], -np.exp(feeds["x"]), rtol=1e-6)


def test_sizes_that_grow_keep_fast_runs():
    engine, model = Compiled(model_of(WHOLE)), model_of(WHOLE)
    rng = np.random.default_rng(0)
    for n in range(2, 90, 7):
        feeds = {
            "most": scalar(n % 5),
            "c": np.array(n % 2 == 0),
            "x": rng.standard_normal((n, 4)).astype(np.float32),
        }
        found = engine.run_fast(feeds)
        assert found is not None or n < 24
        found = engine.run(feeds) if found is None else found
        for name, value in sabir.evaluate(model, feeds).items():
            np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- generated programs


def generated(rng, depth=0, names=("x", "w")):
    """Return nodes over vectors of 8 floats, with branches and loops, and the name of a result."""
    values, nodes = list(names), []
    for number in range(int(rng.integers(2, 5))):
        name = f"v{depth}_{number}_{rng.integers(1 << 30)}"
        make = rng.choice([a_map, a_map, a_branch, a_loop]) if depth < 3 else a_map
        nodes.append(make(rng, depth, name, values))
        values.append(name)
    return "  ".join(nodes), values[-1]


def a_map(rng, _depth, name, values):
    """Return a node of one or two operands."""
    op = rng.choice(["Add", "Sub", "Max", "Tanh", "Neg", "Softmax", "Identity"])
    a, b = rng.choice(values, 2)
    return f"{name} = {op} ({a}, {b})" if op in {"Add", "Sub", "Max"} else f"{name} = {op} ({a})"


def a_branch(rng, depth, name, values):
    """Return an If that compares the sums of two values."""
    a, b = rng.choice(values, 2)
    (first, p), (second, q) = (generated(rng, depth + 1, tuple(values)) for _ in range(2))
    return f"""s{name} = ReduceSum <keepdims = 0> ({a})  t{name} = ReduceSum <keepdims = 0> ({b})
        c{name} = Less (s{name}, t{name})
        {name} = If (c{name}) <
            then_branch = p{name} () => (o{name}) {{ {first}  o{name} = Identity ({p}) }},
            else_branch = q{name} () => (o{name}) {{ {second}  o{name} = Identity ({q}) }}>"""


def a_loop(rng, depth, name, values):
    """Return a Loop with one state, that some turns or the state end."""
    start, state = rng.choice(values), f"s{name}"
    body, result = generated(rng, depth + 1, (*values, state))
    again = rng.choice([
        f"d{name} = Identity (g{name})",
        f"m{name} = ReduceMax <keepdims = 0> ({state})  d{name} = Less (m{name}, limit)",
    ])
    begins = rng.choice(['""', "begins"])
    return f"""{name} = Loop (turns, {begins}, {start}) <
        body = b{name} (int64 i{name}, bool g{name}, float[8] {state}) => (bool d{name}, float[8] r{name}) {{
            {body}  {again}  r{name} = Identity ({result}) }}>"""


@pytest.mark.parametrize("seed", range(30))
def test_generated_programs_have_the_results_of_the_interpreter(seed):
    rng = np.random.default_rng(seed)
    nodes, result = generated(rng)
    text = f"g (float[8] x, float[8] w, int64 turns, bool begins, float limit) => (y) {{ {nodes}  y = Neg ({result}) }}"
    runs = [
        {
            "x": rng.standard_normal(8).astype(np.float32), "w": rng.standard_normal(8).astype(np.float32),
            "turns": scalar(turns), "begins": np.array(bool(turns % 2)), "limit": np.float32(1.0),
        }
        for turns in (0, 1, 3, 4)
    ]  # fmt: skip
    agree(text, *(feeds | {"limit": np.array(1.0, np.float32)} for feeds in runs))


def test_no_warning_is_issued():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agree(IF, {"c": YES, "x": X, "w": X})
