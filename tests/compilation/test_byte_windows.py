"""Convolutions of each channel alone over integers of 8 bits: exact, on every kind of processor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.windows.kernel import Sliding
from support.levels import LEVELS
from support.thresholds import texts_on

BYTES = (np.uint8, np.int8)
# channels, sizes, taps, stride, dilation, padding
WINDOWS = [
    (1, (5, 5), (3, 3), 1, 1, 1), (7, (9, 11), (3, 3), 1, 1, 1), (16, (6, 17), (3, 3), 2, 1, 1),
    (17, (8, 8), (5, 5), 1, 1, 2), (33, (7, 10), (3, 3), 2, 2, 2), (15, (9, 9), (7, 7), 1, 1, 3),
    (31, (23,), (5,), 2, 1, 2), (18, (4, 5, 6), (2, 3, 2), 1, 1, 0), (5, (6, 7), (3, 2), 3, 1, 0),
    (3, (1, 1), (1, 1), 1, 1, 0),
]  # fmt: skip


def integers(shape, dtype, seed=0):
    """Integers of the whole range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def compiled_run(model, feeds, threads=2):
    """Run a model without the interpreter; return its output and how its windows are added up."""
    compiled = Compiled(model, threads=threads)
    (y,) = compiled.run(feeds).values()
    assert compiled.explain().evaluated == ()
    specs = [e.choices[-1][2] for p in compiled._plans for e in p.plan.entries]
    return y, [s for s in specs if isinstance(s, Sliding)]


def convolved(x, w, zero, less, window):
    """The convolution of each channel by its definition, in int64."""
    stride, dilation, pad = window
    axes = x.ndim - 2
    low = np.pad(x.astype(np.int64) - zero, [(0, 0)] * 2 + [(pad, pad)] * axes)
    counts = [
        (n - (k - 1) * dilation - 1) // stride + 1 for n, k in zip(low.shape[2:], w.shape[2:], strict=True)
    ]
    y = np.zeros((*x.shape[:2], *counts), np.int64)
    for tap in np.ndindex(*w.shape[2:]):
        starts = [t * dilation for t in tap]
        cut = [slice(s, s + (n - 1) * stride + 1, stride) for s, n in zip(starts, counts, strict=True)]
        factor = w[:, 0, *tap].astype(np.int64) - less
        y += low[:, :, *cut] * factor.reshape(-1, *[1] * axes)
    return y


@pytest.fixture(params=LEVELS, ids=lambda level: level or "host")
def _level(request, monkeypatch):
    """A kind of processor."""
    monkeypatch.setenv("SABIR_CPU", request.param)
    try:
        Compiled(sabir.parse('<ir_version: 10, opset_import: ["" : 21]> g (float x) => (y) { y = Exp (x) }'))
    except sabir.SabirError:
        pytest.skip(f"this processor has no {request.param}")


@pytest.mark.usefixtures("_level")
def test_windows_are_exact():
    kinds = itertools.cycle(itertools.product(BYTES, BYTES))
    for number, (case, (left, right)) in enumerate(zip(WINDOWS, kinds, strict=False)):
        channels, sizes, taps, *window = case
        x = integers((2, channels, *sizes), left, number)
        w = integers((channels, 1, *taps), right, number + 1)
        zero, less = integers((), left, number), integers((), right, number + 2)
        model = convolution(x, w, zero, less, window)
        found, slides = compiled_run(model, {"x": x})
        expected = convolved(x, w, int(zero), int(less), window)
        np.testing.assert_array_equal(found, expected, str(case))
        assert [s.dot is not None for s in slides] == [True] * (channels > 1)
        empty, _ = compiled_run(model, {"x": x[:0]})
        assert empty.shape == (0, *expected.shape[1:])


def convolution(x, w, zero, less, window):
    """The model of a convolution of each channel alone."""
    stride, dilation, pad = window
    b, axes = sabir.Builder(21), x.ndim - 2
    facts = {"strides": [stride] * axes, "dilations": [dilation] * axes, "pads": [pad] * 2 * axes}
    fed = b.input("x", str(x.dtype), ["n", *x.shape[1:]])
    b.output(b.ConvInteger(fed, w, zero, less, group=len(w), **facts), "y")
    return b.model()


@pytest.mark.usefixtures("_level")
def test_no_sum_saturates():
    """Products of 255 by -255, which only 17 bits hold."""
    for least, zero in ((-128, 127), (127, -128)):
        b = sabir.Builder(21)
        w = np.full((20, 1, 3, 3), least, np.int8)
        x = b.input("x", "uint8", [1, 20, 4, 4])
        b.output(b.ConvInteger(x, w, np.uint8(0), np.int8(zero), group=20), "y")
        found, _ = compiled_run(b.model(), {"x": np.full((1, 20, 4, 4), 255, np.uint8)})
        assert (found == 9 * 255 * (least - zero)).all()


def test_zero_points_that_a_run_decides_or_channels_have():
    x, w = integers((1, 9, 6, 6), np.uint8), integers((9, 1, 3, 3), np.int8, 1)
    for fed, less in itertools.product((False, True), (integers(9, np.int8, 2), np.int8(5))):
        b = sabir.Builder(21)
        data = b.input("x", "uint8", [1, 9, 6, 6])
        zero = b.input("z", "uint8", []) if fed else np.uint8(77)
        b.output(b.ConvInteger(data, w, zero, less, group=9, pads=[1] * 4), "y")
        found, _ = compiled_run(b.model(), {"x": x} | ({"z": np.uint8(77)} if fed else {}))
        np.testing.assert_array_equal(found, convolved(x, w, 77, np.int64(less), (1, 1, 1)))


def quantized_model(form, left, right, *, by_channel):
    """A convolution of each of 21 channels, as QLinearConv or between quantizations."""
    rng, f = np.random.default_rng(3), np.float32
    w = integers((21, 1, 3, 3), right, 4)
    scales = (rng.random(21) * 0.01 + 0.001).astype(f) if by_channel else f(0.004)
    low = np.zeros(21, right) if by_channel else np.array(3, right)
    zero, after = np.array(7, left), np.array(11, left)
    b = sabir.Builder(21)
    x = b.input("x", left.__name__, ["n", 21, 9, 9])
    facts = {"group": 21, "pads": [1] * 4, "strides": [2, 1]}
    if form == "QLinearConv":
        b.output(b.QLinearConv(x, f(0.02), zero, w, scales, low, f(0.05), after, **facts), "y")
    else:
        data, weights = b.DequantizeLinear(x, f(0.02), zero), b.DequantizeLinear(w, scales, low, axis=0)
        b.output(b.QuantizeLinear(b.Relu(b.Conv(data, weights, **facts)), f(0.05), after), "y")
    return b.model()


@pytest.mark.parametrize("form", ["QLinearConv", "Conv"])
def test_quantized_windows_are_those_of_the_interpreter(form):
    """All bits of QLinearConv, whose sums are integers; within a step where the interpreter sums floats."""
    for (left, right), by_channel in itertools.product(itertools.product(BYTES, BYTES), (False, True)):
        model = quantized_model(form, left, right, by_channel=by_channel)
        x = integers((3, 21, 9, 9), left, 5)
        found, slides = compiled_run(model, {"x": x}, threads=1)
        assert all(s.dot is not None for s in slides)
        expected = sabir.Session(model, engine="reference").run({"x": x})["y"]
        difference = np.abs(found.astype(int) - expected.astype(int))
        assert difference.max() <= (form == "Conv")
        again, _ = compiled_run(model, {"x": x[1:2]}, threads=2)
        assert again.tobytes() == found[1:2].tobytes()


def test_decisions_on_windows():
    def found(taps, **thresholds):
        b = sabir.Builder(21)
        x, w = b.input("x", "uint8", [1, 16, 40, 40]), np.ones((16, 1, taps, taps), np.int8)
        b.output(b.ConvInteger(x, w, np.uint8(3), group=16), "y")
        return texts_on(b.model(), "windows", **thresholds)

    assert found(3) == ["7 windows at a time"]
    assert found(7) == ["2 windows at a time, not 8: 224 products in the code > 64"]
    assert found(7, window_products=1 << 10) == ["8 windows at a time"]
    assert found(3, window_places=2) == ["2 windows at a time"]
