"""Products of 8-bit integers, and tensors that such integers represent: exact on every kind of processor."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.products.spec import Product
from support.levels import LEVELS
from support.thresholds import texts_on

BYTES = (np.uint8, np.int8)


def integers(shape, dtype, seed=0):
    """Integers of the whole range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def run(model, feeds, threads=2):
    """Run a model, of which no call may be left to the interpreter; return its output and its products."""
    compiled = Compiled(model, threads=threads)
    (y,) = compiled.run(feeds).values()
    assert compiled.explain().evaluated == ()
    plans = [p.plan for p in compiled._plans]
    specs = [e.choices[-1][2] for plan in plans for e in plan.entries]
    return y, [s for s in specs if isinstance(s, Product)]


@pytest.fixture(params=LEVELS, ids=lambda level: level or "host")
def _level(request, monkeypatch):
    """A kind of processor."""
    monkeypatch.setenv("SABIR_CPU", request.param)
    try:
        Compiled(sabir.parse('<ir_version: 10, opset_import: ["" : 21]> g (float x) => (y) { y = Exp (x) }'))
    except sabir.SabirError:
        pytest.skip(f"this processor has no {request.param}")
    return request.param


@pytest.mark.usefixtures("_level")
def test_products_are_exact():
    shapes = [(1, 1, 1), (1, 7, 50), (3, 4, 16), (9, 130, 33), (40, 63, 97), (2, 66, 5), (5, 9, 48)]
    kinds_of_operands = itertools.cycle(itertools.product(BYTES, BYTES))
    for number, ((m, k, n), (left, right)) in enumerate(zip(shapes, kinds_of_operands, strict=False)):
        a, w = integers((m, k), left, number), integers((k, n), right, number + 1)
        kinds = [(None, None), (0, 0), (m, n), (0, n)][number % 4]
        zeros = [
            None if size is None else integers(size or (), x.dtype, number)
            for size, x in zip(kinds, (a, w), strict=True)
        ]
        b = sabir.Builder(21)
        x = b.input("x", left.__name__, ["m", k])
        y = b.MatMulInteger(x, w, *zeros)
        b.output(y, "y")
        low = [np.zeros((), np.int64) if z is None else z.astype(np.int64) for z in zeros]
        low[0] = low[0][:, None] if np.ndim(low[0]) else low[0]
        expected = (a.astype(np.int64) - low[0]) @ (w.astype(np.int64) - low[1])
        found, (product,) = run(b.model(), {"x": a})
        np.testing.assert_array_equal(found, expected, f"{m}x{k}x{n} {left} {right}")
        assert product.element == "int32"


@pytest.mark.usefixtures("_level")
def test_no_sum_saturates():
    """Two products of 255 by -128, and by 127, exceed 16 bits."""
    for least in (-128, 127):
        b = sabir.Builder(21)
        w = np.full((1001, 40), least, np.int8)
        b.output(b.MatMulInteger(b.input("x", "uint8", [2, 1001]), w), "y")
        found, _ = run(b.model(), {"x": np.full((2, 1001), 255, np.uint8)})
        assert (found == 1001 * 255 * least).all()


@pytest.mark.usefixtures("_level")
def test_both_operands_may_vary():
    b = sabir.Builder(21)
    x, w = b.input("x", "int8", [2, "m", "k"]), b.input("w", "uint8", [2, "k", "n"])
    zeros = b.input("p", "int8", []), b.input("q", "uint8", [])
    b.output(b.MatMulInteger(x, w, *zeros), "y")
    feeds = {"x": integers((2, 5, 31), np.int8), "w": integers((2, 31, 50), np.uint8, 1)}
    found, _ = run(b.model(), feeds | {"p": np.int8(-7), "q": np.uint8(200)})
    left, right = (feeds[name].astype(np.int64) - zero for name, zero in (("x", -7), ("w", 200)))
    np.testing.assert_array_equal(found, left @ right)


@pytest.mark.usefixtures("_level")
def test_convolutions_are_exact():
    cases = [
        # channels, filters, groups, taps, padding, stride, dilation
        (3, 8, 1, 3, 1, 1, 1), (5, 33, 1, 1, 0, 2, 1), (8, 6, 2, 3, 2, 1, 2), (6, 6, 6, 3, 1, 2, 1),
        (1, 4, 1, 5, 2, 1, 1),
    ]  # fmt: skip
    for number, (channels, filters, group, taps, pad, stride, dilation) in enumerate(cases):
        x = integers((2, channels, 9, 11), BYTES[number % 2], number)
        w = integers((filters, channels // group, taps, taps), BYTES[number // 2 % 2], number + 1)
        zero, each = integers((), x.dtype, number), integers(filters, w.dtype, number)
        facts = {"group": group, "pads": [pad] * 4, "strides": [stride] * 2, "dilations": [dilation] * 2}
        for is_fed in (False, True)[: 1 + (number < 2)]:
            b = sabir.Builder(21)
            fed = b.input("z", str(x.dtype), []) if is_fed else zero
            b.output(
                b.ConvInteger(b.input("x", str(x.dtype), ["n", channels, 9, 11]), w, fed, each, **facts), "y"
            )
            found, _ = run(b.model(), {"x": x} | ({"z": zero} if is_fed else {}))
            np.testing.assert_array_equal(found, convolved(x, w, zero, each, facts), str(cases[number]))


def convolved(x, w, zero, each, facts):
    """The convolution by its definition, in int64."""
    (group, pad), (stride,), (dilation,) = (
        (facts["group"], facts["pads"][0]), set(facts["strides"]), set(facts["dilations"]),
    )  # fmt: skip
    low = np.pad(x.astype(np.int64) - zero, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    weights = w.astype(np.int64) - each.reshape(-1, 1, 1, 1)
    reach = (w.shape[2] - 1) * dilation + 1
    rows, columns = ((n - reach) // stride + 1 for n in low.shape[2:])
    y = np.zeros((len(x), len(w), rows, columns), np.int64)
    for f in range(len(w)):
        first = f // (len(w) // group) * w.shape[1]
        for c, i, j in np.ndindex(*w.shape[1:]):
            part = low[:, first + c, i * dilation :, j * dilation :][:, ::stride, ::stride]
            y[:, f] += weights[f, c, i, j] * part[:, :rows, :columns]
    return y


def test_a_row_has_the_same_bits_in_every_batch_and_on_any_number_of_threads():
    w, scales = integers((67, 45), np.int8), np.random.default_rng(0).random(45).astype(np.float32)
    b = sabir.Builder(21)
    x = b.input("x", "float", ["n", 67])
    d = representing(b, x, np.float32(0.02), np.uint8(7))
    b.output(b.Softmax(b.MatMul(d, b.DequantizeLinear(w, scales, axis=1))), "y")
    model = b.model()
    rows = np.random.default_rng(1).standard_normal((50, 67)).astype(np.float32)
    whole, _ = run(model, {"x": rows}, threads=1)
    for count, threads in ((1, 1), (1, 2), (3, 2), (50, 2)):
        found, _ = run(model, {"x": rows[:count]}, threads)
        assert found.tobytes() == whole[:count].tobytes()


# ---------------------------------------------------------------- quantization


def numbers():
    """Floats of all sizes, ties between integers, what is not finite, and subnormal numbers."""
    rng = np.random.default_rng(3)
    bits = rng.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32)
    ties = (np.arange(-600, 600) / 2).astype(np.float32)
    near = [np.nextafter(ties, np.float32(to)) for to in (-np.inf, np.inf)]
    special = np.float32([0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-40, 3.4e38])
    return np.concatenate([bits, ties, *near, special])


@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
def test_quantization_has_the_bits_of_a_division(kind):
    limits, x = np.iinfo(kind), numbers()
    for scale, zero in itertools.product(
        [1, 0.1, 1 / 3, 0.0078431, 3e-13, 7e11, 1e-40, 0], [limits.min, 0, 100, limits.max]
    ):
        step = np.float32(scale)
        with np.errstate(all="ignore"):
            feed = x * step if 1e-30 < scale < 1e6 else x
            q = np.rint(np.float32(feed) / step) + zero
        expected = np.where(np.isnan(q), limits.min, np.clip(q, limits.min, limits.max)).astype(kind)
        b = sabir.Builder(21)
        b.output(b.QuantizeLinear(b.input("x", "float", ["n"]), step, np.array(zero, kind)), "y")
        found, _ = run(b.model(), {"x": feed})
        np.testing.assert_array_equal(found, expected, f"{scale} {zero}")


def representing(b, x, scale, zero):
    """Quantize and dequantize as exporters do."""
    return b.DequantizeLinear(b.QuantizeLinear(x, scale, zero), scale, zero)


def test_represented_operands_become_products_of_integers():
    """Within one step of the exact result: the sums are exact, and the scales are multiplied in float."""
    rng, f = np.random.default_rng(5), np.float32
    x = rng.standard_normal((2, 6, 8, 8)).astype(f)
    w, v = integers((10, 6, 3, 3), np.int8), integers((10, 10), np.uint8, 1)
    each, step = rng.random(10).astype(f) * f(0.01), f(0.05)
    for kind, zero in ((np.uint8, 120), (np.int8, -3)):
        b = sabir.Builder(21)
        low = np.array(zero, kind)
        a = representing(b, b.input("x", "float", ["n", 6, 8, 8]), f(0.03), low)
        y = b.Conv(a, b.DequantizeLinear(w, each, axis=0), pads=[1] * 4)
        y = representing(b, b.Relu(y), step, low)
        y = b.MatMul(b.Transpose(y, perm=[0, 2, 3, 1]), b.DequantizeLinear(v, f(0.003), np.uint8(128)))
        b.output(b.QuantizeLinear(y, step, low), "y")
        model = b.model()
        found, products = run(model, {"x": x})
        assert [p.element for p in products] == ["int32", "int32"]
        expected = sabir.Session(model, engine="reference").run({"x": x})["y"]
        assert np.abs(found.astype(int) - expected.astype(int)).max() <= 1


def test_what_is_gathered_of_represented_rows_is_dequantized_alone():
    table = integers((1000, 24), np.int8)
    b = sabir.Builder(21)
    rows = b.DequantizeLinear(b.input("t", "int8", [1000, 24]), np.float32(0.5), np.int8(3))
    b.output(b.Exp(b.Gather(rows, b.input("i", "int64", ["n"]))), "y")
    compiled = Compiled(b.model(), threads=1)
    feeds = {"t": table, "i": np.int64([5, -1, 999])}
    (y,) = compiled.run(feeds).values()
    np.testing.assert_allclose(y, np.exp((table[feeds["i"]] - 3.0) * 0.5), rtol=1e-6)
    assert all(t.flops < table.size for t in compiled.profile(feeds, runs=1).timings)


def test_scalars_that_share_their_operands_are_computed_once():
    """Computed by each reader, the last one would take 2**60 steps."""
    steps = "  ".join(f"s{i + 1} = Mul (s{i}, s{i})" for i in range(60))
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float s0, float[n] x) => (y) {{
        {steps}  y = Mul (x, s60) }}"""
    found, _ = run(sabir.parse(text), {"s0": np.float32(1), "x": np.float32([2, 3])})
    np.testing.assert_array_equal(found, [2, 3])


def test_decisions_on_instructions():
    b = sabir.Builder(21)
    b.output(b.MatMulInteger(b.input("x", "uint8", [5, 31]), integers((31, 50), np.int8)), "y")
    for target, expected in (
        ("x86-64-v3", "instruction pmaddwd, not vpdpbusd: the processor has neither avx512vnni nor avxvnni"),
        ("aarch64", "instruction sadalp, not usdot: the processor has neither i8mm nor dotprod"),
        ("neoverse-n1", "instruction sdot, not usdot: the processor has no i8mm"),
        ("neoverse-v1", "instruction usdot"),
    ):
        assert texts_on(b.model(), "instruction", target=target) == [expected]
