"""Attention computes the keys from the first to the last that a mask allows, where the others have no effect."""

import time

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.evaluation import Runner

BOOL = "m = Where (allowed, s, low)"
FLOAT = "m = Add (s, bias)"
MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[B,2,N,8] q, float[B,2,8,M] k, float[B,2,M,8] v, bool[B,1,N,M] allowed, float[B,1,N,M] bias)
  => (float[B,2,N,8] y) <float low = {LOW}> {
  s = MatMul (q, k)
  MASKED
  p = Softmax (m)
  PROBABILITIES
  y = MatMul (w, v)
}
"""


def model_of(masked, probabilities="w = Identity (p)", low="-inf"):
    text = MODEL.replace("MASKED", masked).replace("PROBABILITIES", probabilities).replace("LOW", "0")
    model = sabir.parse(text)
    model.graph.initializers["low"] = np.float32(low)
    return model


def feeds_of(rows, keys, last, batch=1, window=1 << 20):
    """Feeds in which row `n` of an item attends to the `window` keys up to `last[item][n]`."""
    rng = np.random.default_rng(rows * keys)
    shapes = {"q": (batch, 2, rows, 8), "k": (batch, 2, 8, keys), "v": (batch, 2, keys, 8)}
    feeds = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    own = np.asarray(last).reshape(batch, 1, rows, 1)
    allowed = (np.arange(keys) <= own) & (np.arange(keys) > own - window)
    bias = np.where(allowed, rng.standard_normal(allowed.shape), -np.inf).astype(np.float32)
    return {**feeds, "allowed": allowed, "bias": bias}


def listed(model, feeds):
    return "\n".join(Compiled(model).compile(feeds).listing("schedule"))


@pytest.mark.parametrize("masked", [BOOL, FLOAT])
@pytest.mark.parametrize(("rows", "keys"), [(2, 3), (3, 16), (5, 17), (50, 50), (70, 131), (2, 300)])
def test_results_are_those_of_all_keys(masked, rows, keys):
    model = model_of(masked)
    rng = np.random.default_rng(keys)
    causal = np.arange(rows) + keys - rows
    for last in (causal, np.zeros(rows), rng.integers(0, keys, rows), np.full(rows, keys - 1)):
        feeds = feeds_of(rows, keys, [np.maximum(last, 0)])
        assert ("bounded by" in listed(model, feeds)) == (masked == BOOL)
        y = Runner(model).run(feeds)["y"]
        np.testing.assert_allclose(Compiled(model).run(feeds)["y"], y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [BOOL, FLOAT])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["k", "v"])
def test_special_numbers_of_excluded_keys_are_those_of_the_interpreter(masked, number, name):
    model = model_of(masked)
    feeds = feeds_of(4, 200, [[9, 20, 3, 60]])
    feeds[name].swapaxes(2, 3 if name == "k" else 2)[:, 1, 100, 3] = number
    with np.errstate(invalid="ignore"):
        y = Runner(model).run(feeds)["y"]
    np.testing.assert_allclose(Compiled(model).run(feeds)["y"], y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("rows", "keys", "window"), [(2, 700, 9), (70, 1300, 40), (5, 2000, 600), (40, 40, 3)]
)
def test_windows_of_keys(rows, keys, window):
    model = model_of(BOOL)
    for last in (
        np.arange(rows) + keys - rows,
        np.arange(rows) * (keys // rows),
        np.arange(rows) - rows // 2,
    ):
        feeds = feeds_of(rows, keys, [last], window=window)
        with np.errstate(invalid="ignore"):  # some rows have no keys
            y = Runner(model).run(feeds)["y"]
        np.testing.assert_allclose(Compiled(model).run(feeds)["y"], y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["k", "v"])
def test_special_numbers_before_a_window_are_those_of_the_interpreter(name):
    model = model_of(BOOL)
    feeds = feeds_of(4, 900, [[890, 891, 880, 899]], window=20)
    feeds[name].swapaxes(2, 3 if name == "k" else 2)[:, 1, 7, 3] = np.nan
    y = Runner(model).run(feeds)["y"]
    assert np.isnan(y).any() == (name == "v")
    np.testing.assert_allclose(Compiled(model).run(feeds)["y"], y, rtol=1e-4, atol=1e-5)


def test_keys_before_a_window_cost_little():
    """The computations of 64 keys, not of 4096, for each of 128 rows: a fifth of the time in November 2026."""
    session = Compiled(model_of(BOOL), threads=1)
    calls = [feeds_of(128, 4096, [np.arange(128) + 3968], window=window) for window in (64, 4096)]
    times: list[list[float]] = [[], []]
    for _ in range(6):
        for kept, feeds in zip(times, calls, strict=True):
            start = time.process_time()
            session.run(feeds)
            kept.append(time.process_time() - start)
    few, all_ = (min(kept[1:]) for kept in times)
    assert few < 0.6 * all_, (few, all_)


def test_items_of_a_batch_begin_and_end_apart():
    model = model_of(BOOL)
    feeds = feeds_of(3, 900, [[0, 1, 2], [880, 881, 882]], batch=2, window=30)
    np.testing.assert_allclose(
        Compiled(model).run(feeds)["y"], Runner(model).run(feeds)["y"], rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("masked", [BOOL, FLOAT])
@pytest.mark.parametrize(
    "probabilities",
    [
        "w = Identity (p)",
        "zero = Constant <value = float {0.0}> () none = IsNaN (p) w = Where (none, zero, p)",
    ],
)
def test_rows_without_keys(masked, probabilities):
    model = model_of(masked, probabilities)
    feeds = feeds_of(4, 40, [[-1, 5, -1, 2]])
    assert ("bounded by" in listed(model, feeds)) == (masked == BOOL)
    y = Runner(model).run(feeds)["y"]
    np.testing.assert_allclose(Compiled(model).run(feeds)["y"], y, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("masked", "probabilities", "low"),
    [
        (BOOL, "w = Identity (p)", "-100"),  # the weights of other keys are small, and not 0
        (BOOL, "one = Sub (p, low) w = Neg (p)", "0"),
        ("m = Mul (s, bias)", "w = Identity (p)", "-inf"),
    ],
)
def test_masks_that_leave_weights(masked, probabilities, low):
    model = model_of(masked, probabilities, low)
    feeds = feeds_of(3, 40, [[4, 5, 6]])
    feeds["bias"] = np.nan_to_num(feeds["bias"], neginf=0.5)
    assert "bounded by" not in listed(model, feeds)
    np.testing.assert_allclose(
        Compiled(model).run(feeds)["y"], Runner(model).run(feeds)["y"], rtol=1e-4, atol=1e-5
    )


def test_bits_do_not_depend_on_threads():
    model = model_of(BOOL)
    for window in (1 << 20, 50):
        feeds = feeds_of(100, 1400, [np.arange(100) + 1250], window=window)
        one, two = (Compiled(model, threads=threads).run(feeds)["y"] for threads in (1, 2))
        assert np.array_equal(one, two)
