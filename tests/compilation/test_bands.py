"""Convolutions around windows in bands of rows: the values, and the bits, of kernels for whole images."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import sabir
from sabir.compilation.plan.entries import Entry
from sabir.evaluation import Runner
from support.thresholds import compiled_by, texts_on

if TYPE_CHECKING:
    from pathlib import Path

    from sabir.compilation import Compiled


def small(model: sabir.Model, *, threads: int = 2, banded_bytes: int = 0, **thresholds: int) -> Compiled:
    """A model whose small images run in bands of few rows, on any machine."""
    return compiled_by(model, threads=threads, cores=2, banded_bytes=banded_bytes, **thresholds)


def integers(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> np.ndarray:
    """Small integers, of which sums of products are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def block(
    shape: list[Any],
    windows: dict[str, Any],
    taps: tuple[int, int] = (3, 3),
    *,
    width: int = 24,
    second: bool = True,
    residual: bool = False,
    dtype: str = "float32",
    random: bool = False,
) -> sabir.Model:
    """An inverted residual block: 1x1 to more channels, windows of each channel, 1x1 to fewer."""

    def weights(*sizes: int) -> np.ndarray:
        return (
            np.random.default_rng(7).standard_normal(sizes).astype(dtype)
            if random
            else integers(sizes, 5, dtype)
        )

    b = sabir.Builder(opsets={"": 21})
    x = b.input("x", {"float32": "float", "float64": "double"}.get(dtype, dtype), shape)
    y = b.Relu(b.Conv(x, weights(width, shape[1], 1, 1), weights(width)))
    y = b.Relu(b.Conv(y, weights(width, 1, *taps), weights(width), group=width, **windows))
    if second:
        y = b.Conv(y, weights(shape[1], width, 1, 1), weights(shape[1]))
    b.output(b.Add(y, x) if residual else y, "y")
    return b.model()


def in_bands(compiled: Compiled) -> list[tuple[str, ...]]:
    """The operators of each kernel that runs in bands."""
    kernels = [k for k in compiled.explain().kernels if k.kind == "bands"]
    return [tuple(node.split()[0] for node in k.nodes) for k in kernels]


def banded(model: sabir.Model, *feeds: np.ndarray, **options: int) -> list[tuple[str, ...]]:
    """Run a model in both engines, whose results must be equal; return the operators of each band."""
    compiled, runner = small(model, **options), Runner(model)
    for x in feeds:
        expected = runner.run({"x": x})
        for name, y in compiled.run({"x": x}).items():
            np.testing.assert_array_equal(y, expected[name], strict=True)
    assert compiled.explain().evaluated == ()
    return in_bands(compiled)


BLOCK = ("Conv", "Relu", "Conv", "Relu", "Conv")


def test_windows_of_every_form():
    for height, windows, taps in [
        (13, {"pads": [1, 1, 1, 1]}, (3, 3)),
        (14, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, (3, 3)),
        (15, {"pads": [1, 1, 1, 1], "strides": [2, 2]}, (3, 3)),
        (16, {"pads": [0, 0, 1, 1], "strides": [2, 2]}, (3, 3)),
        (17, {"pads": [2, 2, 2, 2]}, (5, 5)),
        (18, {"pads": [2, 2, 2, 2], "strides": [2, 2]}, (5, 5)),
        (19, {"pads": [0, 1, 3, 0], "strides": [3, 1]}, (4, 2)),
        (20, {"pads": [2, 0, 2, 0], "dilations": [2, 3]}, (3, 2)),
        (16, {}, (3, 3)),
        (16, {"pads": [0, 2, 0, 1]}, (1, 3)),
    ]:
        model = block([1, 3, height, 9], windows, taps)
        assert banded(model, integers((1, 3, height, 9), 1)) == [BLOCK], (height, windows, taps)


def test_bands_of_every_number_of_rows():
    """The last band may have few rows, and be the one after the first."""
    numbers: set[int] = set()
    for rows, height, (taps, stride, pad) in itertools.product(
        (4, 7, 12), (11, 16, 21), ((3, 1, 1), (3, 2, 1), (5, 1, 2), (5, 2, 1), (2, 2, 0))
    ):
        model = block([1, 2, height, 7], {"pads": [pad] * 4, "strides": [stride] * 2}, (taps, taps))
        compiled = small(model, band_bytes=rows * 2 * 9 * 24 * 4)
        x = integers((1, 2, height, 7), rows)
        expected = Runner(model).run({"x": x})["y"]
        np.testing.assert_array_equal(compiled.run({"x": x})["y"], expected, strict=True)
        (program,) = compiled._plans
        numbers |= {e.bands.count for e in program.plan.entries if isinstance(e, Entry) and e.bands}
    assert numbers >= {2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_bits_are_those_of_whole_images(dtype: str):
    x = np.random.default_rng(3).standard_normal((2, 5, 33, 18)).astype(dtype)
    model = block([2, 5, 33, 18], {"pads": [1, 1, 1, 1]}, residual=True, random=True, dtype=dtype)
    found = [small(model, threads=threads) for threads in (1, 2, 3, 5)]
    results = [compiled.run({"x": x})["y"] for compiled in found]
    assert all(in_bands(compiled) == [(*BLOCK, "Add")] for compiled in found)
    whole = small(model, banded_bytes=1 << 40)
    expected = whole.run({"x": x})["y"]
    assert in_bands(whole) == []
    for y in results:
        assert y.tobytes() == expected.tobytes()


def test_items_of_a_batch_whose_number_only_a_run_knows():
    model = block(["N", 3, 14, 9], {"pads": [1, 1, 1, 1]}, residual=True)
    feeds = [integers((n, 3, 14, 9), n) for n in (0, 1, 3, 2)]
    assert banded(model, *feeds, threads=3) == [(*BLOCK, "Add")]


def test_other_first_and_second_kernels():
    x = integers((1, 3, 18, 9), 1)
    pads = {"pads": [1, 1, 1, 1]}
    assert banded(block([1, 3, 18, 9], pads, second=False), x) == [BLOCK[:-1]]
    assert banded(block([1, 3, 18, 9], pads, dtype="float64"), x.astype("float64")) == [BLOCK]
    b = sabir.Builder(opsets={"": 21})
    y = b.Relu(
        b.Conv(
            b.input("x", "float", [1, 3, 34, 22]), integers((20, 3, 7, 7), 2), strides=[2, 2], pads=[3] * 4
        )
    )
    b.output(b.MaxPool(y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), "y")
    assert banded(b.model(), integers((1, 3, 34, 22), 4)) == [("Conv", "Relu", "MaxPool")]


def test_blocks_in_a_row_share_no_kernel():
    """The second product of a block may be the first one of the next."""
    b = sabir.Builder(opsets={"": 21})
    y = b.input("x", "float", [1, 4, 16, 9])
    for seed in range(4):
        y = b.Relu(b.Conv(y, integers((4, 4, 1, 1), seed)))
        y = b.Neg(b.Conv(y, integers((4, 1, 3, 3), seed), group=4, pads=[1] * 4))
    b.output(y, "y")
    found = banded(b.model(), integers((1, 4, 16, 9), 1))
    one = ("Conv", "Relu", "Conv", "Neg", "Conv", "Relu")
    assert found == [(*one, "Conv"), (*one, "Conv")]  # the last one pads what the next windows read


def test_what_others_read_stays_in_memory():
    for shown, expected in [
        ("e", []),
        ("n", []),  # reads e
        ("d", [("Conv", "Conv")]),
        ("m", [("Conv", "Conv")]),  # reads d
        ("z", [("Conv", "Conv")]),  # reads d too
        ("y", [("Conv", "Conv", "Conv", "Neg")]),
    ]:
        b = sabir.Builder(opsets={"": 21})
        e = b.Conv(b.input("x", "float", [1, 2, 12, 8]), integers((6, 2, 1, 1), 1))
        d = b.Conv(e, integers((6, 1, 3, 3), 2), group=6, pads=[1] * 4)
        y = b.Conv(d, integers((2, 6, 1, 1), 3))
        others = {"e": e, "d": d, "y": y, "n": b.Neg(e), "m": b.GlobalAveragePool(d)}
        others["z"] = b.Conv(d, integers((2, 6, 1, 1), 4))
        b.output(others[shown], "z")
        b.output(b.Neg(y), "y")
        assert banded(b.model(), integers((1, 2, 12, 8), 1)) == expected, shown


def test_a_second_product_of_other_rows():
    for attributes, kernels in (
        ({"strides": [2, 2]}, 1),
        ({"pads": [1, 0, 1, 0]}, 1),
        ({"strides": [1, 2]}, 2),
    ):
        b = sabir.Builder(opsets={"": 21})
        y = b.Conv(b.input("x", "float", [1, 2, 12, 8]), integers((6, 2, 1, 1), 1))
        y = b.Conv(y, integers((6, 1, 3, 3), 2), group=6, pads=[1] * 4)
        b.output(b.Conv(y, integers((2, 6, 1, 1), 3), **attributes), "y")
        model = b.model()
        banded(model, integers((1, 2, 12, 8), 1))
        compiled = small(model)
        compiled.run({"x": integers((1, 2, 12, 8), 1)})
        (spec,) = [k.spec for k in compiled.explain().kernels if k.kind == "bands"]
        assert spec.count("product float") == kernels, attributes


def test_padding_of_the_batch():
    b = sabir.Builder(opsets={"": 21})
    y = b.Conv(b.input("x", "float", [2, 3, 14, 9]), integers((20, 3, 1, 1), 2))
    y = b.Pad(y, np.array([1, 0, 1, 2, 0, 0, 1, 0]))
    b.output(b.MaxPool(y, kernel_shape=[3, 3]), "y")
    assert banded(b.model(), integers((2, 3, 14, 9), 4)) == []


def test_small_images_need_no_bands():
    model = block([1, 3, 18, 9], {"pads": [1, 1, 1, 1]})
    assert banded(model, integers((1, 3, 18, 9), 1), banded_bytes=1 << 16) == []


def test_a_plan_on_the_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("SABIR_CACHE", str(tmp_path / "cache"))
    feeds = {"x": integers((1, 3, 18, 9), 1)}
    found = [small(block([1, 3, 18, 9], {"pads": [1] * 4})) for _ in range(2)]
    first, second = (compiled.run(feeds)["y"] for compiled in found)
    assert [plan.prepared is None for compiled in found for plan in compiled._plans] == [False, True]
    np.testing.assert_array_equal(first, second)


def test_what_is_said_of_them():
    compiled, feeds = small(block([1, 3, 18, 9], {"pads": [1] * 4})), {"x": integers((1, 3, 18, 9), 1)}
    compiled.run(feeds)
    (kernel,) = [k for k in compiled.explain().kernels if k.kind == "bands"]
    assert kernel.spec.count("product float") == 2
    assert kernel.spec.count("windows sum") == 1
    (timing,) = [t for t in compiled.profile(feeds, runs=1).timings if t.kind == "bands"]
    products, windows = 2 * 18 * 9 * 24 * (3 + 3), 2 * 18 * 9 * 24 * 9
    assert timing.flops == products + windows


def test_decisions_on_bands():
    """Each image has bands, or a reason against them."""
    pads = {"pads": [1] * 4}

    def bands(model: sabir.Model, **thresholds: int) -> list[str]:
        return texts_on(model, "bands", **({"banded_bytes": 0} | thresholds))

    model, line, result = block([1, 3, 18, 9], pads), 11 * 24 * 4, 9 * 24 * 4  # bytes, of padded rows too
    assert bands(model) == ["4 bands of 5 rows"]
    assert bands(model, banded_bytes=1 << 16) == [
        f"whole images, not bands: {19 * line + 18 * result} bytes between the kernels <= 65536 for each of 4 cores"
    ]
    assert bands(model, band_bytes=100) == [
        f"whole images, not bands: {3 * line + result} bytes of a band of one row > 100"
    ]
    for rest, reason in (
        ({"extra": True}, "the product has other results too"),
        ({"size": "N"}, "sizes or strides of the image are symbolic"),
    ):
        b = sabir.Builder(opsets={"": 21})
        e = b.Conv(b.input("x", "float", [1, 2, rest.get("size", 12), 8]), integers((6, 2, 1, 1), 1))
        b.output(b.Conv(e, integers((6, 1, 3, 3), 2), group=6, pads=[1] * 4), "y")
        if "extra" in rest:
            b.output(b.Relu(e), "e")
        shapes = {"x": [1, 2, 12, 8]}
        assert texts_on(b.model(), "bands", shapes=shapes, banded_bytes=0) == [
            f"whole images, not bands: {reason}"
        ]
