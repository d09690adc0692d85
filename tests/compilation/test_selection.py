"""The places of the best elements: their order, ties, NaN, every number of them."""

import itertools

import numpy as np
import pytest

import sabir
from support.lowered import NAMES, kernels_only, model_of, same_bits


def order_of(row, largest):
    """Return the indices of a row from the best element on, by one comparison after the other."""

    def key(index):
        value = row[index].item()
        is_nan = value != value  # ruff: ignore[comparison-with-itself]  NaN alone differs from itself
        number = 0 if is_nan else value
        return (not is_nan, -number, index) if largest else (is_nan, number, index)

    return sorted(range(len(row)), key=key)


def places_of(x, k, axis, largest):
    rows = np.moveaxis(x, axis, -1)
    found = [order_of(rows[place], largest)[:k] for place in np.ndindex(rows.shape[:-1])]
    return np.moveaxis(np.array(found, np.int64).reshape(*rows.shape[:-1], k), -1, axis)


def check(x, counts, axis=-1, before="", read="x", seen=None):
    """Compare several counts, in both directions, in one model."""
    cases = [*itertools.product(counts, (0, 1))]
    lines = [
        f"k{n} = Constant <value = int64[1] {{{k}}}> ()"
        f" v{n}, p{n} = TopK <axis = {axis}, largest = {largest}> ({read}, k{n})"
        for n, (k, largest) in enumerate(cases)
    ]
    seen = x if seen is None else seen
    expected = {}
    for n, (k, largest) in enumerate(cases):
        places = expected[f"p{n}"] = places_of(seen, k, axis, largest)
        expected[f"v{n}"] = np.take_along_axis(seen, places, axis)
    results = kernels_only(model_of(" ".join([before, *lines]), {"x": x}, expected), {"x": x})
    for name, y in expected.items():
        same_bits(results[name], y, (name, x.shape, x.dtype, axis, cases[int(name[1:])]))


def numbers(shape, dtype, seed=5):
    random = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return random.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return random.integers(info.min, info.max, shape, dtype, endpoint=True)


def test_every_element_type():
    for dtype in NAMES:
        if dtype != np.bool_:
            check(numbers((3, 77), dtype), (1, 5, 77))


def test_every_count_and_axis():
    check(numbers((2, 35), np.float32), (0, 1, 2, 3, 16, 17, 34, 35))
    x = numbers((4, 19, 6), np.float32)
    for axis in range(-3, 3):
        check(x, (0, 1, 4), axis)
    check(numbers((1, 1), np.float32), (0, 1))
    check(numbers((0, 7), np.float32), (3,))
    check(np.zeros((3, 0), np.float32), (0,))
    check(numbers(300, np.float64), (7, 300))


def test_ties_and_their_order():
    ties = np.array([[0.0, -0.0, 1, 1, -0.0, 0, -1, -1, 1]], np.float32)
    check(ties, (1, 4, 7, 9))
    check(np.tile(np.int8([3, 3, 1, 2, 2, 3]), (4, 20)), (1, 2, 30, 119))
    check(np.zeros((2, 100), np.int64), (1, 33, 100))


def test_nan_is_greater_than_infinity():
    for dtype in (np.float32, np.float64):
        x = np.array([[1, np.nan, -np.inf, np.inf, -np.nan, 3, np.nan, 0] * 5], dtype)
        check(x, (1, 4, 15, 16, 40))


def test_long_rows_in_every_order():
    rising = np.arange(3000, dtype=np.float32)
    x = np.stack([rising, rising[::-1], np.random.default_rng(1).permutation(rising)])
    check(x, (1, 8, 100, 2999, 3000))


def test_of_what_other_kernels_compute():
    x = numbers((9, 31), np.float32)
    check(x, (3,), 0, "t = Transpose (x) m = Neg (t)", "m", -x.T)


def test_more_than_there_are():
    model = sabir.parse(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[m, n] x) => (float[m, k] v, int64[m, k] p)'
        " { k = Constant <value = int64[1] {5}> () v, p = TopK (x, k) }"
    )
    messages = []
    for engine in ("reference", "compiled"):
        with pytest.raises(sabir.EvaluationError) as caught:
            sabir.Session(model, engine=engine).run({"x": np.zeros((2, 4), np.float32)})
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
