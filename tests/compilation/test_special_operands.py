"""Infinities and NaN in weights and in inputs: they reach the results that depend on them, in every family of kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.evaluation import Runner

SPECIAL = (np.nan, np.inf, -np.inf)


class Family(NamedTuple):
    """A call of an operator: the shapes of its input and of its weights, and the kernel that computes it."""

    op: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    attributes: dict[str, Any]
    kind: str = "product"


FAMILIES = {
    "rows by columns": Family("MatMul", (70, 67), (67, 130), {}),
    "few rows": Family("MatMul", (3, 67), (67, 130), {}),
    "a row": Family("MatMul", (1, 300), (300, 41), {}),
    "batches": Family("MatMul", (5, 9, 20), (5, 20, 33), {}),
    "columns by rows": Family("Gemm", (67, 70), (130, 67), {"transA": 1, "transB": 1}),
    "windows": Family("Conv", (2, 3, 9, 10), (5, 3, 3, 3), {"pads": [1, 1, 1, 1]}),
    "windows of a line": Family("Conv", (1, 16, 9), (17, 16, 3), {"pads": [1, 1]}),
    "windows of a cube": Family("Conv", (1, 8, 6, 5, 6), (9, 8, 3, 3, 3), {"pads": [1] * 6}),
    "windows with gaps": Family("Conv", (1, 3, 32, 31), (8, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
    "single places": Family("Conv", (1, 40, 8, 8), (5, 40, 1, 1), {"pads": [1, 0, 0, 1]}),
    "sums of transformed tiles": Family("Conv", (1, 32, 13, 14), (33, 32, 3, 3), {"pads": [1] * 4}, "winograd"),
    "few filters": Family("Conv", (1, 16, 14, 14), (3, 16, 5, 5), {"pads": [2] * 4}),
    "parts of dilated windows": Family("Conv", (1, 4, 33, 33), (4, 4, 3, 3), {"pads": [12] * 4, "dilations": [12, 12]}),
    "taps in the padding": Family("Conv", (1, 8, 20, 20), (8, 8, 3, 3), {"pads": [30] * 4, "dilations": [30, 30]}),
    "channels alone": Family("Conv", (1, 17, 14, 14), (17, 1, 3, 3), {"pads": [1] * 4, "group": 17}, "sliding"),
    "channels alone, taps in the padding": Family(
        "Conv", (1, 17, 9), (17, 1, 3), {"pads": [10, 10], "dilations": [10], "group": 17}, "sliding"
    ),
    "several filters of a channel": Family(
        "Conv", (1, 16, 14, 14), (32, 1, 3, 3), {"pads": [1] * 4, "group": 16, "strides": [2, 2]}, "sliding"
    ),
    "groups of few channels": Family("Conv", (1, 16, 14, 14), (16, 4, 3, 3), {"pads": [1] * 4, "group": 4}, "sliding"),
    "groups": Family("Conv", (1, 20, 9, 9), (40, 10, 3, 3), {"pads": [1] * 4, "group": 2}),
    "windows larger than their number": Family("Conv", (2, 8, 20, 20), (9, 8, 18, 18), {}),
    "transposed": Family("ConvTranspose", (1, 4, 5, 6), (4, 5, 3, 3), {"pads": [1] * 4}),
    "transposed along a line": Family("ConvTranspose", (1, 1, 2), (1, 1, 3), {"strides": [2]}),
    "transposed in phases": Family("ConvTranspose", (1, 8, 5, 6), (8, 5, 4, 4), {"strides": [2, 2], "pads": [1] * 4}),
    "transposed without overlaps": Family("ConvTranspose", (1, 4, 5, 6), (4, 5, 2, 2), {"strides": [2, 2]}),
    "transposed and dilated": Family("ConvTranspose", (1, 4, 9), (4, 5, 3), {"dilations": [3], "strides": [2]}),
    "transposed in groups": Family(
        "ConvTranspose", (1, 8, 5, 6), (8, 1, 4, 4), {"strides": [2, 2], "group": 8}, "sliding"
    ),
    "transposed by transformed tiles": Family(
        "ConvTranspose", (1, 32, 12, 12), (32, 32, 3, 3), {"pads": [1] * 4}, "winograd"
    ),
}  # fmt: skip


def model_of(family: Family, w: np.ndarray | None) -> sabir.Model:
    """A model of the call; with `w` its weights are a constant."""
    b = sabir.Builder(opsets={"": 21})
    x = b.input("x", "float", family.x)
    weights = b.input("w", "float", family.w) if w is None else w
    b.output(getattr(b, family.op)(x, weights, **family.attributes), "y")
    return b.model()


def numbers(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Positive integers: no difference of infinities arises but where there are two."""
    return np.random.default_rng(seed).integers(1, 5, shape).astype(np.float32)


def with_special(array: np.ndarray, number: float) -> list[np.ndarray]:
    """The array with the number at its first place, at its last, and in the middle."""
    found = []
    for place in (0, array.size // 2, array.size - 1):
        found.append(array.copy())
        found[-1].reshape(-1)[place] = number
    return found


@pytest.mark.parametrize("name", FAMILIES)
def test_special_numbers_of_an_input(name: str):
    family = FAMILIES[name]
    x, w = numbers(family.x, 0), numbers(family.w, 1)
    model = model_of(family, w)
    compiled, runner = Compiled(model), Runner(model)
    compiled.run({"x": x})
    assert family.kind in {kernel.kind for kernel in compiled.explain().kernels}
    for number in SPECIAL:
        for each in with_special(x, number):
            np.testing.assert_array_equal(compiled.run({"x": each})["y"], runner.run({"x": each})["y"])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("number", SPECIAL)
def test_special_numbers_of_constant_weights(name: str, number: float):
    family = FAMILIES[name]
    x = numbers(family.x, 0)
    for w in with_special(numbers(family.w, 1), number):
        model = model_of(family, w)
        compiled = Compiled(model)
        for _ in range(2):
            np.testing.assert_array_equal(compiled.run({"x": x})["y"], Runner(model).run({"x": x})["y"])


@pytest.mark.parametrize("name", FAMILIES)
def test_special_numbers_of_weights_that_a_run_has(name: str):
    family = FAMILIES[name]
    x, w = numbers(family.x, 0), numbers(family.w, 1)
    model = model_of(family, None)
    compiled, runner = Compiled(model), Runner(model)
    for number in SPECIAL:
        for each in (*with_special(w, number), w):
            feeds = {"x": x, "w": each}
            np.testing.assert_array_equal(compiled.run(feeds)["y"], runner.run(feeds)["y"])


def test_filters_that_are_not_finite_are_multiplied_by_the_product():
    family = FAMILIES["sums of transformed tiles"]
    w = with_special(numbers(family.w, 1), np.inf)[0]
    compiled = Compiled(model_of(family, w))

    compiled.run({"x": numbers(family.x, 0)})

    assert "winograd" not in {kernel.kind for kernel in compiled.explain().kernels}


def test_filters_that_meet_zeros_around_the_input_are_left_to_the_interpreter_if_they_are_not_finite():
    family = FAMILIES["transposed"]
    w = with_special(numbers(family.w, 1), np.nan)[0]

    (call,) = Compiled(model_of(family, w)).explain().evaluated

    assert "infinite or NaN" in call.reason


def test_special_numbers_of_deformed_windows():
    """Coordinates outside of the image read 0, and no element of it."""
    x, w = numbers((1, 4, 7, 7), 0), numbers((3, 4, 3, 3), 1)
    offsets = np.random.default_rng(2).integers(-3, 4, (1, 18, 7, 7)).astype(np.float32) / 2
    for number in SPECIAL:
        for image, weights in (
            *((each, w) for each in with_special(x, number)),
            (x, with_special(w, number)[1]),
        ):
            b = sabir.Builder(opsets={"": 22})
            inputs = b.input("x", "float", [1, 4, 7, 7]), weights, b.input("o", "float", [1, 18, 7, 7])
            b.output(b.DeformConv(*inputs, pads=[1] * 4, kernel_shape=[3, 3]), "y")
            model, feeds = b.model(), {"x": image, "o": offsets}
            ours, theirs = Compiled(model).run(feeds)["y"], Runner(model).run(feeds)["y"]
            np.testing.assert_array_equal(ours, theirs)
            if weights is w:  # the results that read the first place are few
                assert np.isfinite(theirs).sum() >= theirs.size // 2


@pytest.mark.parametrize("causal", [0, 1])
def test_special_numbers_of_keys_and_values(causal: int):
    b = sabir.Builder(opsets={"": 24})
    q, k, v = (b.input(n, "float", [1, 2, rows, 8]) for n, rows in (("q", 21), ("k", 35), ("v", 35)))
    b.output(b.Attention(q, k, v, is_causal=causal), "y")
    model = b.model()
    compiled, runner = Compiled(model), Runner(model)
    shapes = {"q": (1, 2, 21, 8), "k": (1, 2, 35, 8), "v": (1, 2, 35, 8)}
    usual = {n: numbers(shape, i) / 4 for i, (n, shape) in enumerate(shapes.items())}
    for name, array in usual.items():
        for number in SPECIAL:
            for each in with_special(array, number):
                ours, theirs = (e.run(usual | {name: each})["y"] for e in (compiled, runner))
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, err_msg=f"{name} {number}")
    assert "attention" in {kernel.kind for kernel in compiled.explain().kernels}
