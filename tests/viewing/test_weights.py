"""Summaries of constants."""

import base64

import numpy as np
import pytest

from sabir.ir import ArrayTensor, SparseTensor
from sabir.viewing._weights import sampled, weight_summary


def summary(array):
    return weight_summary(ArrayTensor(np.asarray(array)))


def test_statistics_are_those_of_numpy():
    array = np.random.default_rng(0).normal(size=(40, 50)).astype(np.float32)
    found = summary(array)
    exact = array.astype(np.float64)
    assert found["size"] == 2000
    assert (found["min"], found["max"]) == (exact.min(), exact.max())
    assert found["mean"] == pytest.approx(exact.mean())
    assert found["std"] == pytest.approx(exact.std())
    assert found["histogram"] == np.histogram(exact, 32)[0].tolist()
    assert "sampled" not in found


def test_few_elements_are_listed():
    assert summary(np.int64([1, -1, 3]))["values"] == "1, -1, 3"
    assert summary(np.array(["a", "b"], object))["values"] == "a, b"


def test_what_is_not_finite_is_counted_and_left_out():
    found = summary(np.float32([np.nan, np.inf, -np.inf, 0, *range(1, 20)]))
    assert (found["nans"], found["infinities"], found["zeros"]) == (1, 2, 1)
    assert (found["min"], found["max"]) == (0, 19)
    assert sum(found["histogram"]) == 20


def test_nothing_finite():
    assert summary(np.full(20, np.nan, np.float32)) == {"size": 20, "nans": 20}


def test_equal_elements():
    found = summary(np.full(100, 2.5, np.float32))
    assert found["histogram"][16] == 100
    assert found["std"] == 0


def test_a_large_tensor_is_sampled():
    array = np.zeros((1000, 1000), np.float32)
    array[-1, -1] = 1
    found = summary(array)
    assert found["sampled"] == 1 << 16
    assert found["max"] == 1  # the last place is among those that are read


def test_samples_are_spread():
    places = sampled(np.arange(10_000), most=640).elements
    assert (places[0], places[-1]) == (0, 9999)
    assert np.diff(places).max() < 200


def test_a_heat_map_has_rows_and_columns():
    array = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    found = summary(array)["map"]
    cells = np.frombuffer(base64.b64decode(found["cells"]), np.uint8).reshape(found["rows"], found["columns"])
    assert cells.shape == (32, 32)
    assert (cells[0, 0], cells[-1, -1]) == (0, 255)
    assert (np.diff(cells.astype(int), axis=0) >= 0).all()
    assert "map" not in summary(np.arange(100))


def test_a_sparse_tensor_has_the_summary_of_its_values():
    values, indices = ArrayTensor(np.float32([1, 2])), ArrayTensor(np.int64([3, 5]))
    assert weight_summary(SparseTensor(values, indices, (1 << 40,)))["values"] == "1, 2"


def test_halves_and_extreme_numbers():
    found = summary(np.float64([-1e308, 1e308] * 10))
    assert found["std"] is None or np.isfinite(found["std"])
    assert sum(found["histogram"]) == 20
    assert summary(np.float16([0.5] * 20))["mean"] == pytest.approx(0.5)
