"""Products by weights in blocks of 2, 4 and 8 bits: MatMulNBits, and DequantizeLinear before MatMul."""

import itertools
import re

import numpy as np
import pytest

import sabir
from sabir.compilation import Compiled
from sabir.compilation.backends.cpu.products.formats import dot_of
from sabir.compilation.backends.cpu.products.spec import Product
from sabir.compilation.native import host
from sabir.elements import element
from support.lowered import kernels_only

COLUMNS = (1, 15, 16, 17, 47, 48, 49, 97, 200)  # around the lanes of vectors and the widths of panels
ROWS = (0, 1, 2, 5, 17, 70)


class Weights:
    """Random weights in blocks as MatMulNBits stores them, and as floats in double."""

    def __init__(self, bits, size, depth, columns, *, zeros="", level=0):
        random = np.random.default_rng(bits * 1000 + columns)
        blocks, per_byte = -(-depth // size), 8 // bits
        numbers = random.integers(0, 1 << bits, (columns, blocks, size))
        self.packed = packed(numbers, bits)
        self.scales = random.uniform(0.5, 1, (columns, blocks)).astype(np.float32)
        points = random.integers(0, 1 << bits, (columns, -(-blocks // per_byte) * per_byte))
        self.zeros = {
            "": None,
            "packed": packed(points, bits),
            "float": points[:, :blocks].astype(np.float32),
        }[zeros]
        less = points[:, :blocks, None] if zeros else 1 << (bits - 1)
        wide = (numbers - less) * self.scales[..., None].astype(np.float64)
        self.floats = wide.reshape(columns, -1)[:, :depth].T
        self.attributes = {
            "K": depth,
            "N": columns,
            "bits": bits,
            "block_size": size,
            "accuracy_level": level,
        }

    def model(self, *, bias=None, constant=True):
        """Return the model of the product, and the feeds of the weights if these are not constant."""
        b, feeds = sabir.Builder(opsets={"": 21, "com.microsoft": 1}), {}
        inputs = []
        for name, x in {"w": self.packed, "s": self.scales, "z": self.zeros}.items():
            if x is None or constant:
                inputs.append(x if x is None else b.initializer(name, x))
            else:
                feeds[name] = x
                inputs.append(b.input(name, element(x.dtype).name, list(x.shape)))
        more = [None, b.initializer("bias", bias)] if bias is not None else []
        x = b.input("x", "float", ["n", self.attributes["K"]])
        y = b.op("MatMulNBits", x, *inputs, *more, domain="com.microsoft", **self.attributes)
        b.output(b.Relu(y) if bias is not None else y, "y")
        return b.model(), feeds


def packed(numbers, bits):
    """Integers as bytes along the last axis, the first one in the lowest bits."""
    fields = numbers.reshape(*numbers.shape[:-1], -1, 8 // bits)
    return (fields << np.arange(0, 8, bits)).sum(-1).astype(np.uint8)


def rows_of(count, depth):
    return np.random.default_rng(count).standard_normal((count, depth)).astype(np.float32)


def products_of(compiled):
    entries = [e for p in compiled._plans for e in p.plan.entries]
    return [c[2] for e in entries for c in e.choices if isinstance(c[2], Product)]


@pytest.mark.parametrize(
    ("bits", "zeros"), [*itertools.product((2, 4, 8), ("", "packed")), (2, "float"), (4, "float")]
)
def test_values(bits, zeros):
    """Columns around the lanes, one row and many, and a last block that is partial."""
    for columns, (size, depth) in itertools.product(COLUMNS, ((16, 48), (32, 40))):
        weights = Weights(bits, size, depth, columns, zeros=zeros)
        model, _ = weights.model()
        for count in ROWS:
            x = rows_of(count, depth)
            y = kernels_only(model, {"x": x})["y"]
            np.testing.assert_allclose(y, x.astype(float) @ weights.floats, rtol=1e-4, atol=1e-3)


def test_weights_are_read_in_words():
    weights = Weights(4, 32, 64, 96)
    compiled = Compiled(weights.model()[0])
    compiled.run({"x": rows_of(1, 64)})
    (product,) = {p.narrow for p in products_of(compiled)}
    assert product == "uint4"
    assert all(p.words and p.centred and not p.zeros for p in products_of(compiled))


def test_an_epilogue_joins_the_product():
    bias = np.linspace(-9, 9, 50, dtype=np.float32)
    weights = Weights(4, 16, 64, 50, zeros="packed")
    x = rows_of(7, 64)
    compiled = Compiled(weights.model(bias=bias)[0])
    y = compiled.run({"x": x})["y"]
    np.testing.assert_allclose(
        y, np.maximum(x.astype(float) @ weights.floats + bias, 0), rtol=1e-4, atol=1e-3
    )
    assert [len(p.plan.entries) for p in compiled._plans] == [1]


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_weights_may_be_fed(bits):
    weights = Weights(bits, 16, 48, 50, zeros="packed")
    model, feeds = weights.model(constant=False)
    x = rows_of(3, 48)
    y = kernels_only(model, {"x": x, **feeds})["y"]
    np.testing.assert_allclose(y, x.astype(float) @ weights.floats, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("bits", "zeros"), [(4, ""), (4, "packed"), (4, "float"), (8, ""), (8, "packed")])
def test_level_4_rounds_blocks_of_rows(bits, zeros):
    """Both engines round the same steps; the sums of a block are exact."""
    for columns, (size, depth) in itertools.product((1, 17, 48, 97, 200), ((16, 48), (32, 40), (256, 600))):
        model, _ = Weights(bits, size, depth, columns, zeros=zeros, level=4).model()
        for count in ROWS:
            x = rows_of(count, depth)
            x[:1, :size] = 0
            exact = sabir.Session(model, engine="reference").run({"x": x})["y"]
            found = kernels_only(model, {"x": x})["y"]
            np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-3 * (1 << bits) / 16)


def test_level_4_is_within_two_hundredths_of_the_range():
    weights = Weights(4, 32, 768, 500, level=4)
    x = rows_of(20, 768)
    exact = x.astype(float) @ weights.floats
    found = Compiled(weights.model()[0]).run({"x": x})["y"]
    assert 0 < abs(found - exact).max() < 0.02 * np.ptp(exact)


@pytest.mark.parametrize(("bits", "level"), [(2, 0), (4, 0), (8, 0), (4, 4), (8, 4)])
def test_rows_have_their_bits_in_every_batch_and_number_of_threads(bits, level):
    weights = Weights(bits, 32, 768, 200, zeros="packed", level=level)
    model, x = weights.model()[0], rows_of(150, 768)
    one, two = (Compiled(model, threads=threads) for threads in (1, 2))
    whole = one.run({"x": x})["y"]
    assert two.run({"x": x})["y"].tobytes() == whole.tobytes()
    for first, count in ((0, 1), (3, 4), (7, 5), (20, 8), (40, 17)):
        for compiled in (one, two):
            part = compiled.run({"x": x[first : first + count]})["y"]
            assert part.tobytes() == whole[first : first + count].tobytes()


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2"])
def test_dequantized_weights_are_packed_in_words(kind):
    """In both orders of the matrix; blocks that are no whole words are read as bytes."""
    dtype, random = element(kind).dtype, np.random.default_rng(3)
    bits = element(kind).bits
    low = -(1 << bits - 1) if kind.startswith("i") else 0
    for size, columns, is_turned in itertools.product((16, 12), (17, 96), (False, True)):
        numbers, points = (random.integers(low, low + (1 << bits), (n * 3, columns)) for n in (size, 1))
        scales = random.uniform(0.5, 1, points.shape).astype(np.float32)
        operands = [numbers.astype(dtype), scales, points.astype(dtype)]
        b = sabir.Builder(25)
        if is_turned:
            operands = [np.ascontiguousarray(o.T) for o in operands]
            w = b.Transpose(b.DequantizeLinear(*operands, axis=1, block_size=size))
        else:
            w = b.DequantizeLinear(*operands, axis=0, block_size=size)
        b.output(b.MatMul(b.input("x", "float", ["n", size * 3]), w), "y")
        compiled, floats = Compiled(b.model()), (numbers - points.repeat(size, 0)) * scales.repeat(size, 0)
        for count in (1, 40):
            x = rows_of(count, size * 3)
            y = compiled.run({"x": x})["y"]
            np.testing.assert_allclose(y, x.astype(float) @ floats, rtol=1e-4, atol=1e-3)
        assert {p.words for p in products_of(compiled)} == {size * bits % 32 == 0}


@pytest.mark.parametrize("size", [16, 256])
def test_scales_of_halves_are_read_as_they_are_stored(size):
    weights = Weights(4, size, 256, 60)
    b = sabir.Builder(opsets={"": 21, "com.microsoft": 1})
    scales = weights.scales.astype(np.float16)
    x = b.input("x", "float16", ["n", 256])
    y = b.op("MatMulNBits", x, weights.packed, scales, domain="com.microsoft", **weights.attributes)
    b.output(y, "y")
    compiled, x = Compiled(b.model()), rows_of(3, 256).astype(np.float16)
    y = compiled.run({"x": x})["y"]
    exact = sabir.Session(b.model(), engine="reference").run({"x": x})["y"]
    np.testing.assert_allclose(y.astype(float), exact.astype(float), rtol=2e-3, atol=1e-2)
    assert {p.scaled for p in products_of(compiled)} == {"float16"}


def test_large_blocks_and_weights_out_of_order_run_as_their_bodies():
    places = np.random.default_rng(1).permutation(np.repeat([0, 1], 1024)).astype(np.int32)
    weights = Weights(4, 1024, 2048, 20)
    for more in ([], [None, places]):
        b = sabir.Builder(opsets={"": 21, "com.microsoft": 1})
        inputs = b.input("x", "float", ["n", 2048]), weights.packed, weights.scales, *more
        b.output(b.op("MatMulNBits", *inputs, domain="com.microsoft", **weights.attributes), "y")
        feeds = {"x": rows_of(2, 2048)}
        exact = sabir.Session(b.model(), engine="reference").run(feeds)["y"]
        np.testing.assert_allclose(kernels_only(b.model(), feeds)["y"], exact, rtol=1e-3, atol=0.1)


@pytest.mark.parametrize(
    ("target", "instruction"),
    [("x86-64-v3", "vcvtdq2ps"), ("x86-64-v4", "vperm(?:d|ps)"), ("neoverse-n1", "scvtf")],
)
@pytest.mark.parametrize("level", [0, 4])
def test_processors_convert_integers_by_their_instructions(target, instruction, level):
    """AVX-512 looks up the eight integers of a word; others shift and convert them."""
    compiled = Compiled(Weights(4, 32, 64, 480, level=level).model()[0])
    plan = compiled.compile({"x": rows_of(1, 64)}, target=target)
    code = "\n".join(plan.listing("asm"))
    assert len(re.findall(rf"\b{instruction}\b", code)) >= 8


def test_products_of_bytes_multiply_rounded_rows():
    compiled = Compiled(Weights(4, 32, 64, 480, level=4).model()[0])
    compiled.run({"x": rows_of(1, 64)})
    assert {p.rounded for p in products_of(compiled)} == {True}
    assert {p.dotted for p in products_of(compiled)} == {dot_of(host()) == "vpdpbusd"}
