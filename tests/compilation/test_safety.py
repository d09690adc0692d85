"""What a compiled session must not do, whatever the model and the caller are: the limits, stops, threads, forks."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import sabir
from sabir import Limits
from sabir.base import CancelledError, EvaluationError, LimitError, run_with_limits

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'


def compiled(text, **options):
    return sabir.Session(sabir.parse(HEAD + text), engine="compiled", **options)


def same_error(text, feeds, **options):
    """Return the error of both engines, which must be the same."""
    told = []
    for engine in ("compiled", "reference"):
        session = sabir.Session(sabir.parse(HEAD + text), engine=engine, **options)
        with pytest.raises(sabir.SabirError) as caught:
            session.run(feeds)
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]
    return caught.value


OUTER = """g (float[n,1] x, float[1,m] y) => (float[] z, float[n] t) {
    a = Add (x, y)  b = Exp (a)  z = ReduceSum <keepdims = 0> (b)
    k = Constant <value_ints = [1]> ()  l = ReduceSum <keepdims = 0> (b, k)  t = Transpose (l) }"""


def outer(n):
    return {"x": np.zeros((n, 1), np.float32), "y": np.zeros((1, n), np.float32)}


@pytest.mark.parametrize(
    ("limits", "what"),
    [
        (Limits(elements=10), "elements"),
        (Limits(memory=10), "memory"),
        (Limits(work=10), "work"),
    ],
)
def test_a_run_needs_no_more_than_the_limits_allow(limits, what):
    """The sums never have the outer product in memory, but the limits are those of the model."""
    small, large = outer(20), outer(3000)  # the limits grow with the 6000 numbers of the feeds
    session = compiled(OUTER, limits=limits)
    assert session.run(small)["z"] == 400
    if what != "work":  # 32 KiB for each number are enough
        error = same_error(OUTER, large, limits=limits)
        assert isinstance(error, LimitError)
        assert what in {e.limit for e in error.exceeded}
    assert session.run(small)["z"] == 400


def test_many_cheap_nodes_are_too_much_work_together():
    chain = "  ".join(f"a{k + 1} = Exp (a{k})" for k in range(40))
    text = f"g (float[n,1] x, float[1,m] y) => (float[] z) {{ a0 = Add (x, y)  {chain}  z = ReduceSum <keepdims = 0> (a40) }}"
    error = same_error(text, outer(8000), limits=Limits(work=10))
    assert isinstance(error, LimitError)
    assert error.limit == "work"


def test_limits_around_a_session_hold_for_its_fast_runs_too():
    session = compiled("g (float[n] x) => (float[n] y) { y = Exp (x) }")
    x = {"x": np.zeros(1000, np.float32)}
    for _ in range(3):
        session.run(x)
    with pytest.raises(LimitError, match="time is up"):
        run_with_limits(Limits(seconds=-1), session.run, x)
    assert session.run(x)["y"].sum() == 1000


def test_folded_constants_have_limits():
    text = """g (float[1] x) => (float[] z) {
        n = Constant <value_ints = [3000, 1]> ()  m = Constant <value_ints = [1, 3000]> ()
        a = ConstantOfShape (n)  b = ConstantOfShape (m)  c = Add (a, b)  d = Add (c, x)
        z = ReduceSum <keepdims = 0> (d) }"""
    error = same_error(text, {"x": np.zeros(1, np.float32)}, limits=Limits(memory=1 << 20, elements=1 << 20))
    assert isinstance(error, LimitError)


BAD = {
    "an index out of range": (
        "g (float[n] x, int64[k] i) => (float[k] y) { e = Exp (x)  y = Gather (e, i) }",
        {"x": np.zeros(3, np.float32), "i": np.array([0, 7])},
    ),
    "an index into an empty axis": (
        "g (float[n,m] x, int64[k] i) => (y) { e = Exp (x)  y = Gather (e, i) }",
        {"x": np.zeros((0, 100_000), np.float32), "i": np.array([2])},
    ),
    "a negative size from a feed": (
        "g (float[n] x, int64[1] k) => (y) { e = Exp (x)  y = Expand (e, k) }",
        {"x": np.zeros(1, np.float32), "k": np.array([-4])},
    ),
    "a negative size from a shape": (
        """g (float[n] x) => (y) { s = Shape (x)  five = Constant <value_ints = [5]> ()  d = Sub (s, five)
        o = ConstantOfShape (d)  y = Exp (o) }""",
        {"x": np.zeros(3, np.float32)},
    ),
    "an absurd size from a shape": (
        """g (float[n] x) => (y) { s = Shape (x)  b = Mul (s, s)  c = Mul (b, b)  d = Mul (c, c)
        z = Constant <value_float = 1.0> ()  o = Expand (z, d)  y = Exp (o) }""",
        {"x": np.zeros(200, np.float32)},
    ),
    "a Reshape that does not divide": (
        """g (float[n] x) => (y) { e = Exp (x)  k = Constant <value_ints = [7, -1]> ()
        r = Reshape (e, k)  y = Neg (r) }""",
        {"x": np.zeros(20, np.float32)},
    ),
    "a loop that does not end": (
        """g (float[n] x) => (y) { most = Constant <value_int = 1000000> ()  go = Constant <value = bool {1}> ()
        y = Loop (most, go, x) <body = b (int64 i, bool c, float[n] v) => (bool c, float[n] w) { w = Neg (v) }> }""",
        {"x": np.zeros(20, np.float32)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_the_message_of_a_failing_run_is_that_of_the_interpreter(name):
    text, feeds = BAD[name]
    same_error(text, feeds, limits=Limits(iterations=1000))


def test_sizes_that_were_right_may_become_wrong_and_right_again():
    text, _ = BAD["a negative size from a shape"]
    session = compiled(text)
    assert session.run({"x": np.zeros(8, np.float32)})["y"].shape == (3,)
    with pytest.raises(EvaluationError, match="ConstantOfShape"):
        session.run({"x": np.zeros(4, np.float32)})
    assert session.run({"x": np.zeros(9, np.float32)})["y"].shape == (4,)


def test_a_loop_of_native_turns_does_not_use_up_the_memory():
    text = """g (float[n] x) => (float[n] y) { most = Constant <value_int = 200> ()
        y = Loop (most, "", x) <body = b (int64 i, bool c, float[n] v) => (bool c, float[n] w) {
            one = Constant <value_float = 1.0> ()  w = Add (v, one) }> }""".replace('""', "go").replace(
        "most =", "go = Constant <value = bool {1}> ()  most ="
    )
    x = {"x": np.zeros(20_000, np.float32)}
    assert compiled(text, limits=Limits(memory=0)).run(x)["y"].sum() == 200 * 20_000


# ---------------------------------------------------------------- stops

ROWS = """g (float[n,m] x) => (float[n,n] z) {
    a = Softmax (x)  b = Transpose <perm = [1, 0]> (a)  m0 = MatMul (a, b)  m1 = MatMul (m0, m0)  m2 = MatMul (m1, m1)
    m3 = MatMul (m2, m2)  m4 = MatMul (m3, m3)  m5 = MatMul (m4, m4)  m6 = MatMul (m5, m5)  z = MatMul (m6, m6) }"""
TURNS = """g (float[n] x) => (float[n] y) { go = Constant <value = bool {1}> ()  most = Constant <value_int = 1000000> ()
    y = Loop (most, go, x) <body = b (int64 i, bool c, float[n] v) => (bool c, float[n] w) { w = Neg (v) }> }"""
LONG = {
    "native rows": (ROWS, {"x": np.ones((700, 700), np.float32)}),
    "one native row": (
        "g (float[n,n] x) => (y) { y = MatMul (x, x) }",
        {"x": np.ones((900, 900), np.float32)},
    ),
    "turns of a small body": (TURNS, {"x": np.zeros(20, np.float32)}),
    "turns of a native body": (TURNS, {"x": np.zeros(1 << 15, np.float32)}),
}


@pytest.mark.parametrize("name", LONG)
def test_cancel_stops_the_runs_of_other_threads_and_no_later_one(name):
    text, feeds = LONG[name]
    session = compiled(text, threads=2, limits=Limits(iterations=None, work=None))
    told = []

    def run():
        try:
            while True:  # a short run, ended before the stop, is followed by another one
                session.run(feeds)
        except CancelledError as error:
            told.append(str(error))

    runner = threading.Thread(target=run)
    runner.start()
    time.sleep(0.3)
    session.cancel()
    runner.join(60)
    assert told == ["the run was cancelled"]
    if name == "native rows":
        assert session.run(feeds)["z"].shape == (700, 700)


def test_a_cancelled_session_runs_under_the_limits_of_its_caller():
    session = compiled("g (float[n] x) => (float[n] y) { y = Exp (x) }")
    x = {"x": np.zeros(10, np.float32)}

    def job():
        session.run(x)
        session.cancel()
        session.run(x)
        return session.run(x)["y"].sum()

    assert run_with_limits(Limits(seconds=100), job) == 10


def test_many_threads_run_and_cancel_one_session():
    session = compiled("g (float[n] x) => (float[n] y) { e = Exp (x)  y = Add (e, x) }", threads=2)
    wrong, stop = [], threading.Event()

    def work(size):
        x = np.full(size, 0.5, np.float32)
        expected = np.exp(np.float64(0.5)) + 0.5
        while not stop.is_set():
            try:
                y = session.run({"x": x})["y"]
            except CancelledError:
                continue
            except Exception as error:  # ruff: ignore[blind-except]  a thread's error is the test's
                wrong.append(error)
                return
            if y.shape != (size,) or abs(y - expected).max() > 1e-6:
                wrong.append(y)

    threads = [threading.Thread(target=work, args=(size,)) for size in (3, 70, 5000, 70_000)]
    for thread in threads:
        thread.start()
    for turn in range(40):
        time.sleep(0.02)
        session.cancel() if turn % 2 else session.release()
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
    assert session.run({"x": np.zeros(3, np.float32)})["y"].tolist() == [1, 1, 1]


# ---------------------------------------------------------------- memory and processes


def test_a_dropped_session_gives_back_code_arenas_and_threads():
    from sabir.compilation.native._objects import _LOADED  # ruff: ignore[import-outside-top-level]  as the engine

    text = """g (float[n,m] x) => (float[n] y) { a = Constant <value_ints = [1]> ()
        e = Exp (x)  c = Cos (e)  y = ReduceMax <keepdims = 0> (c, a) }"""
    compiled("g (float[n] x) => (float[n] y) { y = Relu (x) }").run({"x": np.zeros(3, np.float32)})
    for loader in threading.enumerate():  # of what stays for the life of the process
        if loader.name == "sabir-loader":
            loader.join()
    gc.collect()
    gc.disable()
    try:
        before, threads = set(_LOADED.keys()), threading.active_count()
        session = compiled(text, threads=7)
        for size in (10, 200_000):
            session.run({"x": np.zeros((3, size), np.float32)})
        engine = weakref.ref(session._engine)
        assert set(_LOADED.keys()) - before
        assert threading.active_count() > threads
        del session
        assert engine() is None
        assert set(_LOADED.keys()) == before
        until = time.monotonic() + 30
        while threading.active_count() > threads and time.monotonic() < until:
            time.sleep(0.01)
        assert threading.active_count() <= threads  # a worker of an earlier test may have ended meanwhile
    finally:
        gc.enable()


PROCESS = """
import os, signal, sys, threading, time
import numpy as np
import sabir
model = sabir.parse('''<ir_version: 10, opset_import: ["" : 21]>
g (float[n,m] x) => (float[n,n] z) { a = Softmax (x)  b = Transpose <perm = [1, 0]> (a)  c = MatMul (a, b)  z = Tanh (c) }''')
session = sabir.Session(model, engine="compiled", threads=2)
def check(size):
    x = np.zeros((size, size), np.float32)
    z = session.run({"x": x})["z"]
    assert abs(z - np.tanh(1 / size)).max() < 1e-5
"""
FORKS = """
def child(job):
    made = os.fork()
    if not made:
        try:
            job()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(made, 0)[1] == 0
child(lambda: check(40))          # before the first run
check(300)
child(lambda: (check(300), check(41)))
stop = threading.Event()
def others():
    while not stop.is_set():
        check(300)
worker = threading.Thread(target=others)
worker.start()
for _ in range(5):
    time.sleep(0.01)
    child(lambda: check(300))     # while another thread runs
stop.set()
worker.join()
check(300)
print("done")
"""
EXITS = """
check(300)
threading.Thread(target=lambda: [check(300) for _ in range(1000000)], daemon=True).start()
time.sleep(0.05)
print("done")
"""
INTERRUPTED = """
x = {"x": np.ones((2000, 2000), np.float32)}
check(300)
print("ready", flush=True)
try:
    while True:
        session.run(x)
except KeyboardInterrupt:
    check(300)
    print("done")
"""


def in_a_process(source, *, interrupt=False):
    # ruff: ignore[subprocess-without-shell-equals-true]  our own text
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS + source], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if interrupt:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert (out, err, process.returncode) == ("done\n", "", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_children_made_by_fork_run_a_session_of_the_parent():
    in_a_process(FORKS)


def test_a_process_ends_while_a_session_is_running():
    in_a_process(EXITS)


def test_an_interrupt_stops_a_run_and_not_the_session():
    in_a_process(INTERRUPTED, interrupt=True)
