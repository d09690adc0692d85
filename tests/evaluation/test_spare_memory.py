"""The memory of large values serves later values of a run and later runs, and never one that is still read."""

import threading

import numpy as np
import pytest

import sabir
from sabir.base import LARGE_ARRAY, SpareMemory, _spare_memory, new_array
from sabir.opsets.families.numbers.results import computed

HEAD = '<ir_version: 10, opset_import: ["" : 21]>'
N = 200  # a float32 matrix of this size is large
CHAIN = """g (float[200,200] x, float[200,200] w) => (float[200,200] y, float[200,200] z, float[400,200] both) {
    a = MatMul (x, w)
    turned = Transpose (a)
    b = Relu (a)
    c = Add (b, turned)
    d = Mul (c, b)
    e = Softmax (d)
    f = Sub (d, e)
    z = Exp (e)
    both = Concat <axis = 0> (f, a)
    y = Sum (turned, f, e)
}"""
STEPS = """g (float[200,200] s, float[5] x) => (float[200,200] last, float[5,200,200] all) {
    last, all = Scan <num_scan_inputs = 1, body = b (float[200,200] s, float x) => (float[200,200] t, float[200,200] y) {
        t = Add (s, x)  y = Mul (t, t)
    }> (s, x)
}"""


def drawn(seed):
    r = np.random.default_rng(seed)
    return {n: (r.standard_normal((N, N)) / 8).astype(np.float32) for n in "xw"}


def chain(x, w):
    """The results in float64."""
    a = x.astype(np.float64) @ w
    b = np.maximum(a, 0)
    d = (b + a.T) * b
    e = np.exp(d - d.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return {"y": a.T + d - e + e, "z": np.exp(e), "both": np.concatenate([d - e, a])}


def close(results, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(results[name], value, rtol=2e-4, atol=2e-5)


def test_results_stay_when_the_session_runs_again():
    session = sabir.Session(sabir.parse(HEAD + CHAIN), engine="reference")
    kept = [(seed, session.run(drawn(seed))) for seed in range(4)]
    for seed, results in kept:
        close(results, chain(**drawn(seed)))


def test_values_of_all_iterations_stay():
    session = sabir.Session(sabir.parse(HEAD + STEPS), engine="reference")
    start = drawn(0)["x"]
    for _ in range(2):
        found = session.run({"s": start, "x": np.float32([1, 2, 3, 4, 5])})
        states = start + np.array([1, 3, 6, 10, 15], np.float32)[:, None, None]
        np.testing.assert_allclose(found["all"], states**2, rtol=1e-5)
        np.testing.assert_allclose(found["last"], states[-1], rtol=1e-5)


def test_threads_that_run_one_session_have_memory_of_their_own():
    session = sabir.Session(sabir.parse(HEAD + CHAIN), engine="reference")
    wrong = []

    def work(seed):
        feeds = drawn(seed)
        expected = chain(**feeds)
        try:
            for _ in range(5):
                close(session.run(feeds), expected)
        except AssertionError as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_session_runs_after_a_run_that_failed():
    text = """g (float[200,200] x, int64[1] i) => (float[200,200] y, float[1,200] z) {
        y = Add (x, x)  z = Gather (y, i)
    }"""
    session = sabir.Session(sabir.parse(HEAD + text), engine="reference")
    x = drawn(0)["x"]
    with pytest.raises(sabir.EvaluationError, match="Gather") as caught:
        session.run({"x": x, "i": [N]})
    found = session.run({"x": x, "i": [3]})
    np.testing.assert_array_equal(found["y"], x + x)
    np.testing.assert_array_equal(found["z"], (x + x)[3:4])
    assert caught.value.__traceback__ is not None  # its frames held the values of the run that failed


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_is_spare_once_no_array_and_no_view_refers_to_it():
    spare, dtype = SpareMemory(), np.dtype(np.float32)
    with spare.in_use():
        first = new_array((N, N), dtype)
        place, view = address(first), first.T[1:]
        del first
        other = new_array((N, N), dtype)
        assert address(other) != place
        del view
        assert address(new_array((N, N), dtype)) == place
        assert address(new_array((N * N,), dtype)) == place  # the shape does not matter
    with spare.in_use():
        assert address(new_array((N, N), dtype)) == place  # the next run has it
    del other


def test_memory_that_left_a_run_never_returns():
    spare, dtype = SpareMemory(), np.dtype(np.float32)
    with spare.in_use():
        result = new_array((N, N), dtype)
    place = address(result)
    view = result[::2]
    del result
    with spare.in_use():
        assert address(new_array((N, N), dtype)) != place
    del view
    with spare.in_use():
        kept = [new_array((N, N), dtype) for _ in range(3)]
        assert len({*map(address, kept)}) == len(kept)


def test_memory_that_a_run_does_not_use_is_freed():
    spare, dtype = SpareMemory(), np.dtype(np.float32)
    with spare.in_use():
        new_array((N, N), dtype)
    with spare.in_use():
        pass
    assert not any(spare._of_last_run.values())


def test_a_run_keeps_no_more_than_the_bound(monkeypatch):
    monkeypatch.setattr(_spare_memory, "_MOST_OF_RUN", 4 * N * N)
    spare, dtype = SpareMemory(), np.dtype(np.float32)
    with spare.in_use():
        arrays = [new_array((N, N - 20), dtype) for _ in range(3)]
        assert [a.base is not None for a in arrays] == [True, False, False]


def test_small_values_and_texts_are_left_to_the_allocator():
    with SpareMemory().in_use():
        assert new_array((LARGE_ARRAY - 1,), np.dtype(np.uint8)).base is None
        assert new_array((LARGE_ARRAY,), np.dtype(object)).base is None
        assert new_array((LARGE_ARRAY,), np.dtype(np.uint8)).base is not None
    assert new_array((LARGE_ARRAY,), np.dtype(np.uint8)).base is None  # outside a run


def test_functions_compute_what_they_compute_elsewhere():
    a = drawn(1)["x"]
    operands = [
        (np.add, a, a.T), (np.add, a, a[:1]), (np.multiply, a[:, :1], a), (np.subtract, a, np.full((), 2, np.float32)),
        (np.exp, a), (np.exp, a.T), (np.greater, a, a.T), (np.add, a[:, None], a), (np.add, a, a.astype(np.float64)),
        (lambda x: x + 1, a), (np.add, (a * 99).astype(np.int32), (a * 9).astype(np.int32)),
    ]  # fmt: skip
    for function, *given in operands:
        expected = function(*given)
        with SpareMemory().in_use():
            found = computed(function, *given)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_release_gives_the_memory_back():
    session = sabir.Session(sabir.parse(HEAD + CHAIN), engine="reference")
    session.run(drawn(0))
    assert session._engine._spare
    session.release()
    assert not session._engine._spare
    close(session.run(drawn(1)), chain(**drawn(1)))
