"""Convolutions by Winograd's algorithm: which ones, their values, and their bits."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled, Settings
from support.thresholds import texts_on

# of small integers, and of their halves and quarters, all sums are exact in any order


def integers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small integers."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


def convolved(x: np.ndarray, w: np.ndarray, pads: list[int]) -> np.ndarray:
    """The convolution of (N, C, H, W) with (M, C, 3, 3), in float64."""
    top, left, bottom, right = pads
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return np.einsum("nchwij,mcij->nmhw", windows, w.astype(np.float64), optimize=True)


def conv(shape: list[Any], w: np.ndarray, **attributes: Any) -> sabir.Model:
    """A model of a Conv with constant filters."""
    b = sabir.Builder(opsets={"": 21})
    b.output(b.Conv(b.input("x", "float", shape), w, **attributes), "y")
    return b.model()


def results(compiled: Compiled, shape: tuple[int, ...]) -> str:
    """How many results the tiles of the first Winograd kernel have: "2x2" or "4x4"."""
    listing = compiled.compile({"x": np.zeros(shape, np.float32)}).listing("schedule")
    line = next(line for line in listing if "  winograd float" in line)
    return re.findall(r"results (\S+)", line)[0]


def kinds(compiled: Compiled) -> set[str]:
    return {kernel.kind for kernel in compiled.explain().kernels}


def test_images_of_even_and_odd_sizes_with_any_number_of_channels():
    for shape, filters, pads in (
        ((1, 32, 12, 12), 32, [1, 1, 1, 1]),
        ((2, 33, 13, 16), 50, [1, 1, 1, 1]),
        ((1, 64, 14, 15), 96, [0, 0, 0, 0]),
        ((3, 47, 15, 13), 33, [2, 0, 1, 3]),
    ):
        x, w = integers(shape, 1), integers((filters, shape[1], 3, 3), 2)
        compiled = Compiled(conv(list(shape), w, pads=pads), threads=2)
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], convolved(x, w, pads))
        assert "winograd" in kinds(compiled)


def test_one_plan_serves_images_of_all_sizes_with_the_same_bits_in_any_batch_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((72, 40, 3, 3), np.float32)
    model = conv(["N", 40, "H", "W"], w, pads=[1, 1, 1, 1])
    one, two = (Compiled(model, threads=n) for n in (1, 2))
    for size in ((4, 40, 17, 22), (5, 40, 2, 3), (0, 40, 6, 6), (3, 40, 30, 31)):
        x = rng.standard_normal(size, np.float32)
        y = one.run({"x": x})["y"]
        expected = convolved(x, w, [1, 1, 1, 1])
        np.testing.assert_allclose(y, expected, rtol=0, atol=1e-6 * np.abs(expected).max(initial=1))
        np.testing.assert_array_equal(two.run({"x": x})["y"], y)
        for n in range(len(x)):
            np.testing.assert_array_equal(two.run({"x": x[n : n + 1]})["y"], y[n : n + 1])
    assert "winograd" in kinds(one)


def test_what_follows_is_computed_with_the_results():
    x, w, v, bias = (
        integers(shape, n) for n, shape in enumerate(((2, 32, 13, 13), (32, 32, 3, 3), (32, 32, 3, 3), (32,)))
    )
    b = sabir.Builder(opsets={"": 21})
    image = b.input("x", "float", [2, 32, 13, 13])
    first = b.Relu(b.Conv(image, w, bias, pads=[1, 1, 1, 1]))
    total = b.Add(b.Conv(first, v, pads=[1, 1, 1, 1]), image)
    b.output(b.Relu(total), "y")
    b.output(b.Gelu(b.Erf(b.Tanh(b.Mish(total)))), "z")
    model = b.model()
    compiled = Compiled(model, threads=2)
    got = compiled.run({"x": x})
    inner = np.maximum(convolved(x, w, [1] * 4) + bias[:, None, None], 0)
    s = convolved(inner, v, [1] * 4) + x
    np.testing.assert_array_equal(got["y"], np.maximum(s, 0))
    erf = np.vectorize(math.erf)
    z = erf(np.tanh(s * np.tanh(np.logaddexp(0, s))))
    np.testing.assert_allclose(got["z"], z * (1 + erf(z / np.sqrt(2))) / 2, rtol=1e-5, atol=1e-5)
    assert sum(kernel.kind == "winograd" for kernel in compiled.explain().kernels) == 2


def test_other_convolutions_are_products():
    w = integers((64, 64, 3, 3), 1)
    for shape, filters, attributes in (
        ([1, 64, 24, 24], w, {"strides": [2, 2]}),
        ([1, 64, 24, 24], w, {"dilations": [2, 2]}),
        ([1, 64, 24, 24], w[:, :, :, :2], {}),
        ([1, 128, 24, 24], w, {"group": 2}),
        ([1, 16, 24, 24], w[:, :16], {}),
        ([1, 64, 24, 24], w[:16], {}),
        ([1, 64, 11, 11], w, {}),
    ):
        compiled = Compiled(conv(shape, filters, **attributes))
        x = integers(tuple(shape), 2)
        assert compiled.run({"x": x})["y"].any()
        assert "winograd" not in kinds(compiled), attributes


def test_filters_that_vary_are_transformed_in_each_run():
    b = sabir.Builder(opsets={"": 21})
    x, w = b.input("x", "float", ["N", 32, 20, 20]), b.input("w", "float", [32, 32, 3, 3])
    b.output(b.Conv(x, w), "y")
    turned = b.Slice(b.Transpose(w, perm=[1, 0, 2, 3]), [2, 2], [-4, -4], [2, 3], [-1, -1])
    b.output(b.Conv(x, turned), "z")
    compiled = Compiled(b.model())
    for seed in range(2):
        feeds = {"x": integers((2, 32, 20, 20), seed), "w": integers((32, 32, 3, 3), seed + 2)}
        found = compiled.run(feeds)
        np.testing.assert_array_equal(found["y"], convolved(feeds["x"], feeds["w"], [0] * 4))
        other = np.ascontiguousarray(feeds["w"].transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
        np.testing.assert_array_equal(found["z"], convolved(feeds["x"], other, [0] * 4))
    assert sum(kernel.kind == "winograd" for kernel in compiled.explain().kernels) == 2


@pytest.mark.parametrize("number", [np.inf, np.nan])
def test_filters_that_vary_may_be_infinite_or_nan_in_a_run(number):
    b = sabir.Builder(opsets={"": 21})
    x, w = b.input("x", "float", [1, 32, 20, 20]), b.input("w", "float", [32, 32, 3, 3])
    b.output(b.Conv(x, w), "y")
    compiled, feeds = Compiled(b.model()), {"x": np.ones((1, 32, 20, 20), np.float32)}
    feeds["w"] = integers((32, 32, 3, 3), 1)
    feeds["w"][3, 4, 1, 1] = number
    y = compiled.run(feeds)["y"]
    np.testing.assert_array_equal(y, sabir.evaluate(b.model(), feeds)["y"])
    np.testing.assert_array_equal(y[0, 3], np.full((18, 18), number, np.float32))


def test_fast_convolutions_of_large_images_have_larger_tiles_and_round_a_little_more():
    rng = np.random.default_rng(0)
    for shape, filters, pads in (
        ((1, 40, 21, 24), 72, [1, 1, 1, 1]),
        ((3, 33, 27, 26), 50, [0, 2, 1, 0]),
        ((2, 96, 23, 22), 32, [1, 1, 1, 1]),
    ):
        x, w = (rng.standard_normal(s, np.float32) for s in (shape, (filters, shape[1], 3, 3)))
        model = conv(list(shape), w, pads=pads)
        one, two = (Compiled(model, threads=n, settings=Settings("fast")) for n in (1, 2))
        y = one.run({"x": x})["y"]
        expected = convolved(x, w, pads)
        np.testing.assert_allclose(y, expected, rtol=0, atol=3e-6 * np.abs(expected).max())
        np.testing.assert_array_equal(two.run({"x": x})["y"], y)
        alone = Compiled(conv([1, *shape[1:]], w, pads=pads), settings=Settings("fast"))
        np.testing.assert_array_equal(alone.run({"x": x[-1:]})["y"], y[-1:])
        assert (results(one, shape), results(Compiled(model), shape)) == ("4x4", "2x2")


def test_fast_convolutions_of_small_or_unknown_images_are_exact_ones():
    w = integers((32, 32, 3, 3), 2)
    for declared, shape in (([1, 32, 20, 20], (1, 32, 20, 20)), (["N", 32, "H", "W"], (2, 32, 40, 40))):
        compiled = Compiled(conv(declared, w), settings=Settings("fast"))
        x = integers(shape, 1)
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], convolved(x, w, [0] * 4))
        assert results(compiled, shape) == "2x2"


def test_infinities_and_nan_stay_in_the_results_that_depend_on_them():
    """Feeds of other values take the kernels again."""
    w, shape = integers((32, 32, 3, 3), 2), (1, 32, 12, 13)
    compiled = Compiled(conv(list(shape), w, pads=[1, 1, 1, 1]))
    for special in (np.inf, -np.inf, np.nan):
        for place in ((0, 0), (5, 6), (11, 12)):
            x = integers(shape, 1)
            expected = convolved(x, w, [1] * 4)
            x[0, 3, *place] = special
            rows, columns = (slice(max(n - 1, 0), n + 2) for n in place)
            found = compiled.run({"x": x})["y"]
            assert not np.isfinite(found[..., rows, columns]).all()
            found[..., rows, columns] = expected[..., rows, columns] = 0
            np.testing.assert_array_equal(found, expected)
        x = integers(shape, 3)
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], convolved(x, w, [1] * 4))
    assert "winograd" in kinds(compiled)


def test_infinities_stay_where_they_belong_in_fast_convolutions():
    w, shape = integers((32, 32, 3, 3), 2), (1, 32, 24, 25)
    compiled = Compiled(conv(list(shape), w, pads=[1, 1, 1, 1]), settings=Settings("fast"))
    x = integers(shape, 1)
    expected = convolved(x, w, [1] * 4)
    x[0, 3, 10, 24] = np.inf
    found = compiled.run({"x": x})["y"]
    assert not np.isfinite(found[..., 9:12, 23:]).all()
    found[..., 9:12, 23:] = expected[..., 9:12, 23:] = 0
    np.testing.assert_array_equal(found, expected)
    assert results(compiled, shape) == "4x4"


def test_decisions_on_algorithms():
    """Each convolution of several taps has an algorithm, and the reason against the other ones."""
    w = np.ones((40, 64, 3, 3), np.float32)
    large, small = [1, 64, 30, 30], [1, 64, 8, 8]
    infinite = w.copy()
    infinite[3, 2, 1, 0] = np.inf
    for model, expected in (
        (conv(large, w), "winograd F(2x2), not winograd F(4x4): the precision is exact"),
        (conv([1, 16, 30, 30], w[:, :16]), "direct, not winograd: 16 channels < 32"),
        (conv(large, w[:20]), "direct, not winograd: 20 filters < 32"),
        (conv(small, w), "direct, not winograd: 9 tiles of 2x2 < 36"),
        (conv(large, np.ones((40, 64, 5, 3), np.float32)), "direct, not winograd: windows of 5x3, not 3x3"),
        (conv(large, w, strides=[2, 2]), "direct, not winograd: its windows are not side by side"),
        (conv(large, infinite), "direct, not winograd: its filters may have infinities or NaN, whose differences are NaN"),
        (conv([1, 64, 30], w[..., 0]), "direct, not winograd: its images have not two axes"),
        (conv(["N", 64, "H", "W"], np.ones((2000, 64, 3, 3), np.float32)),
         "direct, not winograd: 128000 channels times filters > 65536 for an image of symbolic size"),
    ):  # fmt: skip
        assert texts_on(model, "algorithm", shapes=_shapes(model)) == [expected]
    assert texts_on(conv(large, w[..., :1, :1]), "algorithm") == [], "a convolution of one tap is a product"


def _shapes(model: sabir.Model) -> dict[str, list[int]] | None:
    """The shapes of an image of symbolic size."""
    return {"x": [2, 64, 30, 30]} if "N" in str(model.graph.inputs[0].type) else None


def test_decisions_on_algorithms_by_other_thresholds_and_precisions():
    w = np.ones((40, 64, 3, 3), np.float32)
    exact = "winograd F(2x2), not winograd F(4x4): "
    small = conv([1, 64, 8, 8], w)
    assert texts_on(small, "algorithm", winograd_tiles=9) == [exact + "the precision is exact"]
    assert texts_on(small, "algorithm", winograd_tiles=9, precision="fast") == [exact + "4 tiles of 4x4 < 9"]
    assert texts_on(small, "algorithm", winograd_tiles=4, precision="fast") == [
        "winograd F(4x4): the precision is fast"
    ]
    few = conv([1, 64, 30, 30], w[:20])
    assert texts_on(few, "algorithm", winograd_channels=20) == [exact + "the precision is exact"]


def test_filters_that_vary_are_filters_of_winograd_where_a_check_of_them_costs_little():
    for size, expected in (
        (30, "winograd F(2x2), not winograd F(4x4): the precision is exact"),
        ("W", "direct, not winograd: its filters may have infinities or NaN, whose differences are NaN"),
    ):
        b = sabir.Builder(opsets={"": 21})
        x, w = b.input("x", "float", [1, 64, 30, size]), b.input("w", "float", [40, 64, 3, 3])
        b.output(b.Conv(x, w), "y")
        shapes = {"x": [1, 64, 30, 30], "w": [40, 64, 3, 3]} if size == "W" else None
        assert texts_on(b.model(), "algorithm", shapes=shapes) == [expected]
